//! Reads, changes and writes JSON.
mod harness;

use std::hint::black_box;

use json::{JsonValue, array, object};

const TEXT: &str = r#"{"name": "a \u00e9\n\"quoted\" text that is not short at all", "numbers": [1, -2, 3.25, 1e10, 18446744073709551615],
 "nested": {"list": [[], [true, false, null], {"deep": {"deeper": [1, 2, {"last": "x"}]}}]}, "empty": {}}"#;

fn work() -> usize {
    let mut value = json::parse(black_box(TEXT)).expect("JSON");
    let again = value.clone();
    let made = object! { "a": [1, 2.5, "x"], "b": null, "c": { "d": array![true, "a text of more than thirty bytes, for sure"] } };
    value["nested"]["more"] = made;
    value["list"] = (0..12).map(JsonValue::from).collect::<Vec<_>>().into();
    value["list"].push("tail").expect("an array");
    value["list"].array_remove(2);
    value.remove("empty");
    value.insert("added", 7.5).expect("an object");
    let taken = value["name"].take_string().unwrap_or_default();
    let broken = json::parse(black_box("{\"a\": [1, 2")).expect_err("cut").to_string();
    let wrong = json::parse(black_box("{\"a\": tru}")).expect_err("no value").to_string();
    let mut out = Vec::new();
    value.write(&mut out).expect("memory");
    value.write_pretty(&mut out, 2).expect("memory");
    let members: usize = value.entries().map(|(key, inner)| key.len() + inner.len()).sum();
    let deep = again["nested"]["list"][2]["deep"]["deeper"].members().filter_map(JsonValue::as_u32).sum::<u32>();
    let text = json::stringify(black_box(vec![Some("one"), None])).len() + json::stringify_pretty(again.clone(), 4).len() + format!("{again:?}").len();
    taken.len() + broken.len() + wrong.len() + out.len() + members + deep as usize + text + usize::from(value == again)
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
