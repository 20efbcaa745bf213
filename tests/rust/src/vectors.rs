//! Others' files, which are not kept here: the official cases of RFC 6570 and the schemas of the protocol.
//!
//! They are looked for in the directory that `MCP_RESOURCES_VECTORS` names, by default `../shared` beside the project.

use std::path::PathBuf;

/// The directory of this name among the vectors, if it is there.
pub fn directory(name: &str) -> Option<PathBuf> {
    let vectors =
        std::env::var_os("MCP_RESOURCES_VECTORS").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let directory = project().join(vectors).join(name);
    directory.is_dir().then_some(directory)
}

/// The root of the project.
pub fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
