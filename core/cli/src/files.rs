//! The configuration files of known clients: their paths, their keys and the form of an entry.

use clap::ValueEnum;
use mcp_resources_client::{ClientConfig, ConfigError};
use mcp_resources_runtime::transport::document_text;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Editor {
    // .mcp.json of the project
    ClaudeCode,
    // claude_desktop_config.json of the user
    ClaudeDesktop,
    // .vscode/mcp.json of the project
    Vscode,
    // .cursor/mcp.json of the project
    Cursor,
}

impl Editor {
    /// The file for new entries. The project is the current directory.
    pub(crate) fn file(self) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => Some(".mcp.json".into()),
            Self::Vscode => Some(".vscode/mcp.json".into()),
            Self::Cursor => Some(".cursor/mcp.json".into()),
            Self::ClaudeDesktop => {
                application("Claude").map(|folder| folder.join("claude_desktop_config.json"))
            }
        }
    }

    /// The key of the servers in the file.
    pub(crate) fn key(self) -> &'static str {
        if self == Self::Vscode { "servers" } else { "mcpServers" }
    }

    /// The step that makes the client load a new entry.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::ClaudeCode => "start Claude Code in this directory and approve the server",
            Self::ClaudeDesktop => "restart Claude Desktop",
            Self::Vscode => "open the file in VS Code and press Start",
            Self::Cursor => "enable the server in Cursor's settings, under MCP",
        }
    }
}

/// The files that names are looked up in, in this order: those of the project, then those of the user.
pub(crate) fn known() -> Vec<PathBuf> {
    let project = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"].into_iter().map(PathBuf::from);
    let own = [".claude.json", ".cursor/mcp.json"].into_iter().filter_map(|name| Some(home()?.join(name)));
    let desktop = Editor::ClaudeDesktop.file();
    let vscode = application("Code").map(|folder| folder.join("User/mcp.json"));
    project.chain(own).chain(desktop).chain(vscode).collect()
}

/// The servers of a client's own file, which also holds other things: of a project in it, its `mcpServers` and `servers`.
/// Comments are allowed, as VS Code does. Where names are equal, the first wins.
pub(crate) fn entries(path: &Path) -> Result<Map<String, Value>, String> {
    let value: Value =
        jsonc_parser::parse_to_serde_value(&document_text(path)?, &jsonc_parser::ParseOptions::default())
            .map_err(|error| format!("it is not JSON: {}", error.kind()))?;
    let here = std::env::current_dir().unwrap_or_default();
    let project = value.get("projects").and_then(|projects| projects.get(here.to_str()?));
    let groups = [
        project.and_then(|project| project.get("mcpServers")),
        value.get("mcpServers"),
        value.get("servers"),
    ];
    let mut all = Map::new();
    for (name, entry) in groups.into_iter().flatten().filter_map(Value::as_object).flatten() {
        all.entry(name.as_str()).or_insert_with(|| entry.clone());
    }
    Ok(all)
}

/// One server of such a file as a separate configuration, so that mistakes in other entries do not matter.
pub(crate) fn alone(path: &Path, name: &str, entry: &Value) -> Result<ClientConfig, ConfigError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
    let whole = json!({ "mcpServers": { name: entry } }).to_string();
    ClientConfig::parse(&whole, folder)
        .map_err(|error| ConfigError { message: format!("{}: {}", path.display(), error.message) })
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The folder of the user's application settings.
fn application(name: &str) -> Option<PathBuf> {
    let base = match cfg!(target_os = "macos") {
        true => home()?.join("Library/Application Support"),
        false => match std::env::var_os("XDG_CONFIG_HOME").filter(|base| !base.is_empty()) {
            Some(base) => base.into(),
            None => home()?.join(".config"),
        },
    };
    Some(base.join(name))
}
