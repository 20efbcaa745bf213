//! Providers whose contents a program puts there: there is no program under `serve`.

use crate::document::ServeDocument;
use crate::log::{ConfigLog, ConfigMessage};
use mcp_resources_engine::option::OptionValue;

/// The options of an entry as `serve` takes them. Metrics measure this machine, because nothing else can give them values.
///
/// # Errors
/// There would be nothing to serve.
pub(crate) fn served(kind: &str, options: OptionValue) -> Result<OptionValue, String> {
    if kind != "metrics" {
        return Ok(options);
    }
    let mut members = match options {
        OptionValue::None => Vec::new(),
        OptionValue::Members(members) => members,
        other => return Ok(other),
    };
    match members.iter().find(|(name, _)| name == "host") {
        Some((_, OptionValue::Bool(false))) => {
            return Err(
                "metrics: host is false, and only a program can push other series; leave host out".into()
            );
        }
        Some(_) => {}
        None => members.push(("host".into(), true.into())),
    }
    Ok(OptionValue::Members(members))
}

/// Says which entries stay empty.
pub(crate) fn warn_of_empty(document: &ServeDocument, log: &ConfigLog) {
    for (kind, options) in document.declared() {
        let fix = match kind {
            "memory" => "leave it out, or write a server of your own",
            "results" if !has_file(options) => {
                "name the file in which a program keeps them, as {file: results.db}"
            }
            _ => continue,
        };
        let text = format!("{kind} stays empty: only a program can put something into it; {fix}");
        log(ConfigMessage::Warning(&text));
    }
}

fn has_file(options: &OptionValue) -> bool {
    match options {
        OptionValue::Members(members) => {
            members.iter().any(|(name, value)| name == "file" && !matches!(value, OptionValue::None))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_measure_this_machine() {
        let host = || OptionValue::Members(vec![("host".into(), true.into())]);
        assert_eq!(served("metrics", OptionValue::None), Ok(host()));
        assert_eq!(served("metrics", OptionValue::Members(Vec::new())), Ok(host()));
        assert_eq!(served("metrics", host()), Ok(host()));
        let other = OptionValue::Members(vec![("host".into(), false.into())]);
        assert!(served("metrics", other.clone()).unwrap_err().contains("leave host out"));
        assert_eq!(served("clock", other.clone()), Ok(other));
    }
}
