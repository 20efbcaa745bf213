//! W14: servers behind a gateway or a proxy, beside one of them alone.
//!
//! ```text
//!   target/bench/gateway/one.json    one server: `ours-rust` of the fixture, over stdio
//!   target/bench/gateway/ten.json    ten of them, each with a part of the list
//! ```

use crate::client::ListMethod;
use crate::figures::Figures;
use crate::measure::Setting;
use crate::process::Launch;
use crate::walk;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the files are, from the root of the repository.
const FOLDER: &str = "target/bench/gateway";
/// The listed resources of all servers together, and of one of ten.
const LISTED: u32 = 1_000;
const EACH: u32 = 100;

/// What is measured through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GatewayWork {
    /// A read of one server, over stdio.
    Read,
    /// The same over one HTTP connection.
    Http,
    /// A call of a tool of one server, over stdio.
    Tool,
    /// The list of ten servers, to its end.
    List,
    /// 1,000 listeners of one resource of one server, over HTTP.
    Listeners,
}

impl GatewayWork {
    pub(crate) const ALL: [Self; 5] = [Self::Read, Self::Http, Self::Tool, Self::List, Self::Listeners];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "W14-read",
            Self::Http => "W14-http",
            Self::Tool => "W14-tool",
            Self::List => "W14-list",
            Self::Listeners => "W14-listeners",
        }
    }

    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Listeners)
    }

    /// The file of `mcpServers` that it needs.
    pub(crate) fn path(self) -> PathBuf {
        Path::new(FOLDER).join(if self == Self::List { "ten.json" } else { "one.json" })
    }
}

/// Writes both files: `command` starts a server of the fixture. Peers do not read `resources` and `prefix`.
pub(crate) fn write_files(command: &[String]) -> Result<(), Box<dyn Error>> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let entry = |listed: u32| json!({"command": program, "args": args, "env": {"STATIC": listed.to_string(), "TOOLS": "0"}, "resources": "*"});
    let mut ten = Map::new();
    for number in 0..LISTED / EACH {
        let name = format!("s{number}");
        let mut entry = entry(EACH);
        entry["prefix"] = Value::String(name.clone());
        ten.insert(name, entry);
    }
    fs::create_dir_all(FOLDER)?;
    fs::write(GatewayWork::Read.path(), json!({"mcpServers": {"one": entry(0)}}).to_string())?;
    fs::write(GatewayWork::List.path(), json!({ "mcpServers": ten }).to_string())?;
    Ok(())
}

/// Starts it and walks the list of all servers.
pub(crate) fn measure_list(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    walk::measure_lists(launch, ListMethod::Resources, LISTED, number_of, setting)
}

/// The number of an entry over all servers: `s3+bench://r/7` of ours, or `bench://s3/r/7`, is 307.
fn number_of(uri: &str) -> Option<usize> {
    let (server, entry) = match uri.split_once("+bench://r/") {
        Some((server, entry)) => (server.strip_prefix('s')?, entry),
        None => uri.strip_prefix("bench://s")?.split_once("/r/")?,
    };
    Some(server.parse::<usize>().ok()? * usize::try_from(EACH).ok()? + entry.parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn entries_are_numbered_over_all_servers() {
        assert_eq!(number_of("s3+bench://r/7"), Some(307));
        assert_eq!(number_of("bench://s3/r/7"), Some(307));
        assert_eq!(number_of("bench://s3/static"), None);
        assert_eq!(number_of("s3+bench://static"), None);
    }
}
