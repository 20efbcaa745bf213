//! Messages, with `serde_json` as the oracle.

use mcp_resources_engine::jsonrpc::{
    self, DecodeLimits, Decoded, Json, JsonKind, JsonMembers, Malformed, Message, RawParams,
};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The reader takes for JSON what `serde_json` takes for JSON, and what it finds in a message is what stands there.
pub fn decode(data: &[u8]) {
    let decoded = jsonrpc::decode(data, &DecodeLimits::default());
    let text = std::str::from_utf8(data);
    let is_json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    assert_eq!(!matches!(decoded, Decoded::Malformed(Malformed::Parse)), is_json);
    // Not every JSON text has a value: a lone surrogate and a number beyond f64 do not.
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    match decoded {
        Decoded::Message(message) => check_message(&message, &value),
        Decoded::Malformed(Malformed::Parse) => {}
        Decoded::Malformed(malformed) => check_malformed(malformed, &value),
        Decoded::Batch(list) => {
            let elements = value.as_array().map_or(&[][..], Vec::as_slice);
            assert_eq!(list.len(), elements.len());
            for (element, value) in list.iter().zip(elements) {
                match element {
                    Ok(message) => check_message(message, value),
                    Err(malformed) => check_malformed(*malformed, value),
                }
            }
        }
    }
}

fn check_message(message: &Message<'_>, value: &Value) {
    assert_eq!(value["jsonrpc"], "2.0");
    match message {
        Message::Request { id, method, params } => {
            assert!(value["id"].is_string() || value["id"].is_number());
            assert_eq!(parsed(Json::from(*id)), value["id"]);
            check_call(method, params, value);
        }
        Message::Notification { method, params } => {
            assert!(value.get("id").is_none());
            check_call(method, params, value);
        }
        Message::Response { id, result } => {
            assert!(value.get("method").is_none());
            assert!(id.is_none_or(|id| parsed(Json::from(id)) == value["id"]));
            let (name, json) =
                if let Ok(json) = result { ("result", json) } else { ("error", result_err(result)) };
            check_value(*json, &value[name]);
        }
    }
}

fn result_err<'r, 'm>(result: &'r Result<Json<'m>, Json<'m>>) -> &'r Json<'m> {
    let (Ok(json) | Err(json)) = result;
    json
}

fn check_call(method: &str, params: &RawParams<'_>, value: &Value) {
    assert_eq!(value["method"], method);
    match params {
        RawParams::Absent => assert!(value.get("params").is_none()),
        RawParams::Other(json) => {
            assert!(!value["params"].is_object());
            check_value(*json, &value["params"]);
        }
        RawParams::Object { members, meta, raw } => {
            check_members(members, &value["params"]);
            check_value(*raw, &value["params"]);
            let in_value = value["params"].get("_meta").filter(|meta| meta.is_object());
            assert_eq!(meta.is_some(), in_value.is_some());
            if let (Some(meta), Some(in_value)) = (meta, in_value) {
                check_members(meta, in_value);
            }
        }
    }
}

/// Such members have distinct names.
fn check_members(members: &JsonMembers<'_>, value: &Value) {
    assert_eq!(Some(members.len()), value.as_object().map(serde_json::Map::len));
    for (name, member) in members.iter() {
        assert_eq!(members.get(&name), Some(member));
        check_value(member, &value[&*name]);
    }
}

fn check_value(json: Json<'_>, value: &Value) {
    assert_eq!(parsed(json), *value);
    match json.kind() {
        JsonKind::Null => assert!(value.is_null()),
        JsonKind::Bool => assert_eq!(json.as_bool(), value.as_bool()),
        JsonKind::String => assert_eq!(json.as_str().as_deref(), value.as_str()),
        JsonKind::Number => {
            assert!(value.is_number());
            // `serde_json` takes -0 for a fraction.
            assert!(json.raw() == "-0" || json.as_u64() == value.as_u64() && json.as_i64() == value.as_i64());
        }
        JsonKind::Array => {
            let elements: Vec<_> = json.array().into_iter().flatten().collect();
            assert_eq!(Some(elements.len()), value.as_array().map(Vec::len));
            elements
                .into_iter()
                .zip(value.as_array().into_iter().flatten())
                .for_each(|(e, v)| check_value(e, v));
        }
        JsonKind::Object => {
            let members = json.object();
            for (name, value) in value.as_object().into_iter().flatten() {
                let member = members.as_ref().and_then(|members| members.get(name));
                assert!(member.is_some());
                member.into_iter().for_each(|member| check_value(member, value));
            }
        }
    }
}

/// An id to repeat is the one that stands there, and not that of a response.
fn check_malformed(malformed: Malformed<'_>, value: &Value) {
    if let Malformed::Invalid { id: Some(id) } = malformed {
        assert_eq!(parsed(Json::from(id)), value["id"]);
        assert!(value.get("method").is_some() || value.get("result").or(value.get("error")).is_none());
    }
}

/// `Null` for what is no value, which then differs from what stands there.
fn parsed(json: Json<'_>) -> Value {
    serde_json::from_str(json.raw()).unwrap_or_default()
}
