//! Reads the options of a provider from a file in YAML or JSON.
//!
//! Law: the file is of bounded size. No text of it is in an error: it may be a secret.

use crate::values::{self, FileValue, ValueLimits};
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_runtime::transport::{YamlSchema, open_to_read};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest file, in bytes.
const MOST: u64 = 1 << 20;
const LIMITS: ValueLimits = ValueLimits { values: 100_000, bytes: 4 << 20, depth: 32 };

/// The value of `file`. `kind` is the provider's, for the message.
///
/// # Errors
/// The file is not there, is too large, or is not YAML.
pub fn read(kind: &str, file: &Path) -> Result<OptionValue, OptionError> {
    let refused = |what: &str| OptionError::sentence(format!("{kind}: the file {} {what}", file.display()));
    let mut text = String::new();
    let opened = open_to_read(file).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
    let read = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused("does not exist; create it, or name another file"),
        _ => refused("cannot be read; name another file"),
    })?;
    if read as u64 > MOST {
        return Err(refused("is larger than 1 MiB; name another file"));
    }
    // JSON is YAML too.
    let value = values::yaml(text.strip_prefix('\u{feff}').unwrap_or(&text), LIMITS, YamlSchema::Core)
        .map_err(|fault| refused(&format!("cannot be served: {fault}; mend it")))?;
    Ok(option_value(value))
}

fn option_value(value: FileValue) -> OptionValue {
    match value {
        FileValue::Null => OptionValue::None,
        FileValue::Bool(value) => OptionValue::Bool(value),
        FileValue::Number { number, .. } => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => OptionValue::Integer(whole.into()),
            (None, Some(number)) => OptionValue::Number(number),
            (None, None) => OptionValue::Other,
        },
        FileValue::Text(text) => OptionValue::Text(text),
        FileValue::List(items) => OptionValue::List(items.into_iter().map(option_value).collect()),
        FileValue::Object(members) => {
            let member = |(name, value): (&str, &FileValue)| (name.to_owned(), option_value(value.clone()));
            OptionValue::Members(members.iter().map(member).collect())
        }
    }
}
