//! The configuration files of known clients: their paths, their keys and the form of an entry.

use clap::ValueEnum;
use mcp_resources_client::{ClientConfig, ConfigError};
use mcp_resources_runtime::transport::document_text;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnownClient {
    // .mcp.json of the project
    ClaudeCode,
    // claude_desktop_config.json of the user
    ClaudeDesktop,
    // .vscode/mcp.json of the project
    Vscode,
    // .cursor/mcp.json of the project
    Cursor,
    // .codex/config.toml of the user
    Codex,
    // .gemini/settings.json of the project
    Gemini,
    // goose/config.yaml of the user
    Goose,
    // zed/settings.json of the user
    Zed,
    // opencode.json of the project
    Opencode,
    // .codeium/windsurf/mcp_config.json of the user
    Windsurf,
}

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// JSON, with comments.
    Json,
    Toml,
    Yaml,
}

impl KnownClient {
    /// The name of its product.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "Goose",
            Self::Zed => "Zed",
            Self::Opencode => "opencode",
            Self::Windsurf => "Windsurf",
        }
    }

    /// The file for new entries. The project is the current directory.
    pub(crate) fn file(self) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => Some(".mcp.json".into()),
            Self::Vscode => Some(".vscode/mcp.json".into()),
            Self::Cursor => Some(".cursor/mcp.json".into()),
            Self::Gemini => Some(".gemini/settings.json".into()),
            Self::Opencode => {
                let commented = Path::new("opencode.jsonc");
                Some(if commented.exists() { commented.into() } else { "opencode.json".into() })
            }
            Self::ClaudeDesktop => {
                application("Claude").map(|folder| folder.join("claude_desktop_config.json"))
            }
            Self::Codex => self.folder().map(|folder| folder.join("config.toml")),
            Self::Goose => self.folder().map(|folder| folder.join("config.yaml")),
            Self::Zed => self.folder().map(|folder| folder.join("settings.json")),
            Self::Windsurf => self.folder().map(|folder| folder.join("mcp_config.json")),
        }
    }

    /// The file of the user, where [`Self::file`] is one of the project.
    pub(crate) fn file_of_user(self) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => Some(home()?.join(".claude.json")),
            Self::Vscode => self.folder().map(|folder| folder.join("User/mcp.json")),
            Self::Cursor => self.folder().map(|folder| folder.join("mcp.json")),
            Self::Gemini => self.folder().map(|folder| folder.join("settings.json")),
            Self::Opencode => self.folder().map(|folder| folder.join("opencode.json")),
            Self::ClaudeDesktop | Self::Codex | Self::Goose | Self::Zed | Self::Windsurf => None,
        }
    }

    /// The folder of its settings: where it is, the client is or was on this machine.
    fn folder(self) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => Some(home()?.join(".claude")),
            Self::ClaudeDesktop => application("Claude"),
            Self::Vscode => application("Code"),
            Self::Cursor => Some(home()?.join(".cursor")),
            Self::Codex => variable("CODEX_HOME").or_else(|| Some(home()?.join(".codex"))),
            Self::Gemini => Some(home()?.join(".gemini")),
            // Both keep to these folders on macOS too.
            Self::Goose => xdg("goose"),
            Self::Opencode => xdg("opencode"),
            Self::Zed => match cfg!(target_os = "macos") {
                true => Some(home()?.join(".config/zed")),
                false => xdg("zed"),
            },
            Self::Windsurf => Some(home()?.join(".codeium/windsurf")),
        }
    }

    /// The name of its program.
    fn program(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("claude"),
            Self::ClaudeDesktop => None,
            Self::Vscode => Some("code"),
            Self::Cursor => Some("cursor"),
            Self::Codex => Some("codex"),
            Self::Gemini => Some("gemini"),
            Self::Goose => Some("goose"),
            Self::Zed => Some("zed"),
            Self::Opencode => Some("opencode"),
            Self::Windsurf => Some("windsurf"),
        }
    }

    /// Whether the client seems to be on this machine: its settings, or its program in `PATH`.
    pub(crate) fn is_here(self) -> bool {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let is_program =
            |name: &str| std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
        self.folder().is_some_and(|folder| folder.is_dir())
            || self.file_of_user().is_some_and(|file| file.is_file())
            || self.program().is_some_and(is_program)
    }

    /// Whether one entry serves all projects. The client then starts servers in a directory of its own choice.
    pub(crate) fn is_for_user(self) -> bool {
        self.file_of_user().is_none()
    }

    /// The syntax of its files.
    pub(crate) fn format(self) -> FileFormat {
        match self {
            Self::Codex => FileFormat::Toml,
            Self::Goose => FileFormat::Yaml,
            _ => FileFormat::Json,
        }
    }

    /// The key of the servers in the file.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Zed => "context_servers",
            Self::Opencode => "mcp",
            _ => "mcpServers",
        }
    }

    /// The step that makes the client load a new entry.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::ClaudeCode => "start Claude Code in this directory and approve the server",
            Self::ClaudeDesktop => "restart Claude Desktop",
            Self::Vscode => "open the file in VS Code and press Start",
            Self::Cursor => "enable the server in Cursor's settings, under MCP",
            Self::Codex => "start Codex; /mcp shows the server",
            Self::Gemini => "start Gemini CLI in this directory; /mcp shows the server",
            Self::Goose => "start a new session of Goose",
            Self::Zed => "look for the server in the settings of Zed's agent panel",
            Self::Opencode => "start opencode in this directory",
            Self::Windsurf => "refresh the servers in Windsurf's settings, under Cascade",
        }
    }
}

/// The files that names are looked up in, in this order: those of the project, then those of the user.
pub(crate) fn known() -> Vec<PathBuf> {
    let project = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"].into_iter().map(PathBuf::from);
    let own = [".claude.json", ".cursor/mcp.json"].into_iter().filter_map(|name| Some(home()?.join(name)));
    let desktop = KnownClient::ClaudeDesktop.file();
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
    variable("HOME")
}

/// The folder of the user's application settings.
fn application(name: &str) -> Option<PathBuf> {
    match cfg!(target_os = "macos") {
        true => Some(home()?.join("Library/Application Support").join(name)),
        false => xdg(name),
    }
}

/// A folder of settings where the XDG base directories have it.
fn xdg(name: &str) -> Option<PathBuf> {
    let base = variable("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?;
    Some(base.join(name))
}

/// A path from the environment; an empty one is none.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
