//! Whether what was sent is what a case expects.

use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

pub(crate) type Bound = BTreeMap<String, String>;

/// Compares deep-equal, with the matchers of the format. Remembers what `$bind` names.
///
/// # Errors
/// Where the two differ, and how.
pub(crate) fn compare(expected: &Value, actual: &Value, bound: &mut Bound) -> Result<(), String> {
    at("", expected, actual, bound)
}

fn at(path: &str, expected: &Value, actual: &Value, bound: &mut Bound) -> Result<(), String> {
    let differs = || Err(format!("{path}: {actual} instead of {expected}"));
    match (expected, actual) {
        (Value::Object(members), _) if members.keys().any(|name| name.starts_with('$')) => {
            matcher(path, members, actual, bound)
        }
        (Value::Object(members), Value::Object(found)) => {
            if let Some(name) = found.keys().find(|name| !members.contains_key(*name)) {
                return Err(format!("{path}/{name}: {} is not expected", found[name]));
            }
            open(path, members, found, bound)
        }
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            let mut pairs = items.iter().zip(found).enumerate();
            pairs.try_for_each(|(index, (item, found))| at(&format!("{path}/{index}"), item, found, bound))
        }
        (Value::Number(one), Value::Number(other)) if same_number(one, other) => Ok(()),
        _ if expected == actual => Ok(()),
        _ => differs(),
    }
}

/// All `members` are found; there may be more.
fn open(
    path: &str,
    members: &Map<String, Value>,
    found: &Map<String, Value>,
    bound: &mut Bound,
) -> Result<(), String> {
    members.iter().try_for_each(|(name, expected)| match found.get(name) {
        Some(actual) => at(&format!("{path}/{name}"), expected, actual, bound),
        None if expected.get("$any").is_some() => Ok(()),
        None => Err(format!("{path}/{name} is missing, expected {expected}")),
    })
}

fn matcher(
    path: &str,
    members: &Map<String, Value>,
    actual: &Value,
    bound: &mut Bound,
) -> Result<(), String> {
    let (name, given) = members.iter().find(|(name, _)| name.starts_with('$')).expect("it is a matcher");
    let holds = match (name.as_str(), actual) {
        ("$any", _) => true,
        ("$line", Value::String(text)) => !text.is_empty() && !text.contains(['\n', '\r']),
        ("$bind", Value::String(text)) if !text.is_empty() => {
            bound.insert(given.as_str().expect("a name").to_owned(), text.clone());
            true
        }
        ("$in", _) => {
            given.as_array().expect("a list").iter().any(|one| at(path, one, actual, bound).is_ok())
        }
        ("$open", Value::Object(found)) => {
            return open(path, given.as_object().expect("an object"), found, bound);
        }
        ("$set", Value::Array(found)) => return set(path, given.as_array().expect("a list"), found, bound),
        _ => false,
    };
    if holds {
        Ok(())
    } else {
        Err(format!("{path}: {actual} does not match {}", Value::Object(members.clone())))
    }
}

/// Every expected item is found, in any order, and nothing else.
fn set(path: &str, items: &[Value], found: &[Value], bound: &mut Bound) -> Result<(), String> {
    let mut left: Vec<&Value> = found.iter().collect();
    for item in items {
        let Some(index) = left.iter().position(|found| at(path, item, found, bound).is_ok()) else {
            return Err(format!("{path}: {item} is not among {}", Value::from(found.to_vec())));
        };
        left.remove(index);
    }
    if left.is_empty() { Ok(()) } else { Err(format!("{path}: {} is not expected", left[0])) }
}

/// `1` and `1.0` are one number.
fn same_number(one: &Number, other: &Number) -> bool {
    one == other || (one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differs(expected: &Value, actual: &Value) -> bool {
        compare(expected, actual, &mut Bound::new()).is_err()
    }

    /// A comparison that cannot fail would let every case pass.
    #[test]
    fn what_differs_is_found() {
        for (expected, actual) in [
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!({"a": 1}), json!({})),
            (json!(1), json!("1")),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
            (json!([1]), json!([1, 2])),
            (json!({"$in": [1, 2]}), json!(3)),
            (json!({"$open": {"a": 1}}), json!({"b": 1})),
            (json!({"$bind": "x"}), json!("")),
            (json!({"$bind": "x"}), json!(1)),
            (json!({"$set": [1, 2]}), json!([2, 2])),
            (json!({"$set": [1]}), json!([1, 2])),
            (json!({"$line": true}), json!("a\nb")),
            (json!({"x": {"$line": true}}), json!({})),
        ] {
            assert!(differs(&expected, &actual), "{expected} {actual}");
        }
    }

    #[test]
    fn what_matches_is_found() {
        for (expected, actual) in [
            (json!({"a": [1, 2.0]}), json!({"a": [1.0, 2]})),
            (json!({"a": {"$any": true}}), json!({})),
            (json!({"$open": {"a": 1}}), json!({"a": 1, "b": 2})),
            (json!({"$set": [1, 2]}), json!([2, 1])),
            (json!({"$in": [[1], [1, 2]]}), json!([1, 2])),
        ] {
            assert!(!differs(&expected, &actual), "{expected} {actual}");
        }
    }
}
