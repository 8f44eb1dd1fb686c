//! A small program of its own. Each line that says so can hold one allocation more.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Number(u64),
}

struct Lexer<'a> {
    rest: &'a str,
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(' ').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        /* plant next */
        match word {
            "" => None,
            word => Some(word.parse().map_or_else(|_| Token::Word(word.to_owned()), Token::Number)),
        }
    }
}

trait Render {
    fn render(&self, out: &mut String);
}

impl Render for Token {
    fn render(&self, out: &mut String) {
        /* plant render */
        match self {
            Token::Word(word) => out.push_str(word),
            Token::Number(number) => write!(out, "{number}").expect("a string takes all"),
        }
    }
}

fn count<K: Ord + Clone>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    keys.for_each(|key| {
        *counts.entry(key).or_default() += 1;
        /* plant count */
    });
    counts
}

fn tokens(line: &str) -> Vec<Token> {
    let tokens: Vec<Token> = Lexer { rest: line }.collect();
    /* plant tokens */
    tokens
}

fn rendered(tokens: &[Token]) -> String {
    let mut out = String::new();
    tokens.iter().for_each(|token| token.render(&mut out));
    /* plant rendered */
    out
}

fn request(number: usize) -> usize {
    let tokens = tokens(&format!("get the page {number} and page {number}"));
    let lengths = count(tokens.iter().map(|token| format!("{token:?}").len()));
    let by_name: HashMap<String, usize> = tokens.iter().map(|token| (format!("{token:?}"), number)).collect();
    /* plant request */
    rendered(&tokens).len() + lengths.len() + by_name.len()
}

fn main() {
    let length: usize = (0..100).map(request).sum();
    println!("{length}");
}
