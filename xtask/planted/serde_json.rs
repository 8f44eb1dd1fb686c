//! Reads and writes JSON.
mod harness;

use std::hint::black_box;

use serde_json::{Map, Number, Value, json};

const TEXT: &str = r#"{"name": "a \u00e9\n\"quoted\" text", "numbers": [1, -2, 3.25, 1e10, 18446744073709551615],
 "nested": {"list": [[], [true, false, null], {"deep": {"deeper": [1, 2, {"last": "x"}]}}]}, "empty": {}}"#;

fn work() -> usize {
    let mut value: Value = serde_json::from_str(black_box(TEXT)).expect("JSON");
    let again: Value = serde_json::from_slice(TEXT.as_bytes()).expect("JSON");
    let read: Value = serde_json::from_reader(TEXT.as_bytes()).expect("JSON");
    assert!(value == again && again == read);
    let list: Vec<Vec<u32>> = serde_json::from_str(black_box("[[1, 2], [], [3]]")).expect("lists");
    let wrong: Result<Vec<u32>, _> = serde_json::from_str(black_box("[1, \"two\"]"));
    let broken = serde_json::from_str::<Value>(black_box("{\"a\": [1, 2")).expect_err("cut");
    value["nested"]["more"] = json!({"a": [1, 2.5, "x"], "b": null});
    if let Some(name) = value.pointer_mut("/name") {
        *name = Value::String("other".into());
    }
    let mut map = Map::new();
    map.insert("one".into(), Value::from(1_u8));
    map.insert("two".into(), Number::from_f64(2.5).map_or(Value::Null, Value::Number));
    map.entry("three").or_insert_with(|| json!([3]));
    map.remove("one");
    let typed: Vec<Value> = serde_json::from_value(value["numbers"].take()).expect("a list");
    let lines = serde_json::to_string(&value).expect("text").len()
        + serde_json::to_string_pretty(&value).expect("text").len()
        + serde_json::to_vec(&list).expect("text").len()
        + serde_json::to_value(&list).expect("a value").to_string().len()
        + format!("{map:?} {value:#} {:?} {broken}", wrong.map_err(|error| error.to_string())).len();
    let stream = serde_json::Deserializer::from_str("1 [2] {\"a\": 3}").into_iter::<Value>();
    lines + typed.len() + stream.filter_map(Result::ok).count()
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
