//! The wire fixtures (`tests/fixtures/wire`) through engine and connection, with an in-memory host.

pub(crate) mod answer;
#[cfg(test)]
pub(crate) mod case;
#[cfg(test)]
mod cases;
pub(crate) mod catalog;
#[cfg(test)]
pub(crate) mod compare;
pub(crate) mod events;
#[cfg(test)]
pub(crate) mod expand;
#[cfg(test)]
pub(crate) mod host;

use mcp_resources_engine::now::Now;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Tick 0 at 2025-01-01T00:00:00Z.
pub(crate) const START: Now = Now { tick: 0, unix: 1_735_689_600_000 };

/// JSON without spaces and with sorted members: the same text in every language.
pub(crate) fn write(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(write).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            let text = |(name, value): (&String, &Value)| format!("{}:{}", write(&json!(name)), write(value));
            format!("{{{}}}", sorted.into_iter().map(text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
