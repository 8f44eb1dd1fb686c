//! JSON Schema, as much of it as the schema here uses: a keyword that is not known fails the test.

use serde_json::Value;

/// Checks `value` against `schema`; the errors name the path.
pub(crate) fn check(root: &Value, schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else { panic!("the schema of {path} is no object") };
    for (keyword, argument) in keywords {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let name =
                    argument.as_str().and_then(|text| text.strip_prefix("#/$defs/")).unwrap_or_default();
                let target = root.get("$defs").and_then(|definitions| definitions.get(name));
                check(
                    root,
                    target.unwrap_or_else(|| panic!("no definition {argument}")),
                    value,
                    path,
                    errors,
                );
            }
            "anyOf" => {
                let fits = |schema: &Value| {
                    let mut errors = Vec::new();
                    check(root, schema, value, path, &mut errors);
                    errors.is_empty()
                };
                if !argument.as_array().is_some_and(|any| any.iter().any(fits)) {
                    errors.push(format!("{path}: fits none of anyOf"));
                }
            }
            "type" => {
                let types: Vec<&str> = match argument {
                    Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if !types.iter().any(|name| is_type(value, name)) {
                    errors.push(format!("{path}: not {argument}: {value}"));
                }
            }
            "const" if argument == value => {}
            "enum" if argument.as_array().is_some_and(|values| values.contains(value)) => {}
            "const" | "enum" => errors.push(format!("{path}: {value} is not {argument}")),
            "minimum" if value.as_f64().is_none_or(|value| Some(value) >= argument.as_f64()) => {}
            "maximum" if value.as_f64().is_none_or(|value| Some(value) <= argument.as_f64()) => {}
            "minimum" | "maximum" => errors.push(format!("{path}: {value} is beyond {argument}")),
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, argument, item, &format!("{path}/{at}"), errors);
                }
            }
            "properties" => {
                for (name, schema) in argument.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        check(root, schema, value, &format!("{path}/{name}"), errors);
                    }
                }
            }
            "required" => {
                for name in argument.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.is_object() && value.get(name).is_none() {
                        errors.push(format!("{path}: {name} is missing"));
                    }
                }
            }
            other => panic!("keyword {other} of {path} is not known to this test"),
        }
    }
}

/// The names of an object's fields that its schema does not describe, at every depth.
pub(crate) fn undescribed(root: &Value, schema: &Value, value: &Value, path: &str, names: &mut Vec<String>) {
    let mut schema = schema;
    if let Some(of_array) = schema.get("anyOf").and_then(Value::as_array) {
        schema =
            of_array.iter().find(|schema| schema.get("type") != Some(&Value::from("null"))).unwrap_or(schema);
    }
    if let Some(name) =
        schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"))
    {
        schema = &root["$defs"][name];
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match schema.get("properties").and_then(|properties| properties.get(name)) {
                    Some(schema) => undescribed(root, schema, value, &format!("{path}/{name}"), names),
                    None => names.push(format!("{path}/{name}")),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                undescribed(root, &schema["items"], item, path, names);
            }
        }
        _ => {}
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other} is not known to this test"),
    }
}
