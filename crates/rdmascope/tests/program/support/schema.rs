//! A small validator for the published JSON Schemas: it knows every keyword that they use, and
//! refuses all others.

use serde_json::Value;

/// Returns the errors of a value, each with its path.
pub(crate) fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check(schema, schema, value, "", &mut errors);
    errors
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
    let Value::Object(keywords) = schema else {
        if *schema == Value::Bool(false) {
            errors.push(format!("{at}: not allowed"));
        }
        return;
    };
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                check(root, root.pointer(pointer).unwrap(), value, at, errors);
            }
            "type" if !is_type(rule, value) => errors.push(format!("{at}: {value} is no {rule}")),
            "const" if rule != value => errors.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => errors.push(format!("{at}: {value}")),
            "minimum" if value.as_f64() < rule.as_f64() => errors.push(format!("{at}: {value} < {rule}")),
            "maximum" if value.as_f64() > rule.as_f64() => errors.push(format!("{at}: {value} > {rule}")),
            "required" => {
                let missing = rule.as_array().unwrap().iter().filter_map(Value::as_str);
                let missing = missing.filter(|name| value.is_object() && value.get(name).is_none());
                errors.extend(missing.map(|name| format!("{at}: no {name}")));
            }
            "properties" => {
                let known = rule.as_object().unwrap().iter();
                let present = known.filter_map(|(name, rule)| Some((name, rule, value.get(name)?)));
                present.for_each(|(name, rule, value)| {
                    check(root, rule, value, &format!("{at}/{name}"), errors);
                });
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                let more = value.as_object().into_iter().flatten();
                let more = more.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                let has_numbers = keywords.contains_key("patternProperties");
                let more = more.filter(|(name, _)| !has_numbers || !is_number(name));
                more.for_each(|(name, value)| check(root, rule, value, &format!("{at}/{name}"), errors));
            }
            "patternProperties" => {
                // The one pattern that schemas use is that of numbers as keys.
                for (pattern, rule) in rule.as_object().unwrap() {
                    assert_eq!(pattern, NUMBERS, "a pattern that this validator does not know");
                    let more = value.as_object().into_iter().flatten().filter(|(name, _)| is_number(name));
                    more.for_each(|(name, value)| check(root, rule, value, &format!("{at}/{name}"), errors));
                }
            }
            "items" => {
                let from = keywords.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                let items = value.as_array().into_iter().flatten().enumerate().skip(from);
                items.for_each(|(i, item)| check(root, rule, item, &format!("{at}/{i}"), errors));
            }
            "prefixItems" => {
                let pairs = rule.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten());
                pairs.enumerate().for_each(|(i, (rule, item))| {
                    check(root, rule, item, &format!("{at}/{i}"), errors);
                });
            }
            "minItems" if length(value) < rule.as_u64() => errors.push(format!("{at}: too short")),
            "maxItems" if length(value) > rule.as_u64() => errors.push(format!("{at}: too long")),
            "anyOf" | "oneOf" => {
                let fits = |rule: &&Value| {
                    let mut errors = Vec::new();
                    check(root, rule, value, at, &mut errors);
                    errors.is_empty()
                };
                let fitting = rule.as_array().unwrap().iter().filter(fits).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    errors.push(format!("{at}: {value} fits {fitting} of {keyword}"));
                }
            }
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" | "format" | "pattern"
            | "type" | "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
            other => panic!("the schema uses {other:?}, which this validator does not know"),
        }
    }
}

/// The pattern of keys that are numbers.
const NUMBERS: &str = r"^\d+$";

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit())
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("the schema uses the type {other:?}"),
    };
    match rule {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        name => is(name.as_str().unwrap()),
    }
}
