//! Searches and replaces by patterns.
mod harness;

use std::hint::black_box;

use regex_lite::{Captures, Regex, RegexBuilder};

const TEXT: &str = "On 2026-12-02 foo@example.org wrote to Bar_7@mail.example.com: \"42 apples, 7 pears\"; again 1999-01-31.\nLine two.";

fn work() -> usize {
    let date = Regex::new(black_box(r"(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})")).expect("a pattern");
    let mail = RegexBuilder::new(r"\b[a-z0-9._%+-]+@(?:[a-z0-9-]+\.)+[a-z]{2,}\b").case_insensitive(true).build().expect("a pattern");
    let lines = Regex::new(r"(?mx) ^ (\w+) [^\n]*? ([.;:]) $ # comment").expect("a pattern");
    let wrong = Regex::new(black_box(r"a(b[c-d]{2,1}|e")).expect_err("a wrong pattern");
    let replaced = date.replace_all(TEXT, "$day.$month.$year");
    let shouted = mail.replace_all(&replaced, |captures: &Captures<'_>| captures[0].to_uppercase());
    let parts: Vec<&str> = Regex::new(r"[,;:]\s*|\s{2,}").expect("a pattern").split(&shouted).collect();
    let names: usize = date.capture_names().flatten().map(str::len).sum();
    let found = mail.find_iter(TEXT).map(|found| found.len()).sum::<usize>();
    let all = lines.captures_iter(TEXT).map(|captures| captures.iter().flatten().count()).sum::<usize>();
    let is_there = Regex::new(r"^(?i:on)\b.*?(?:apples|pears){1,3}").expect("a pattern").is_match(TEXT);
    parts.len() + names + found + all + usize::from(is_there) + wrong.to_string().len() + regex_lite::escape("a.b*c").len()
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
