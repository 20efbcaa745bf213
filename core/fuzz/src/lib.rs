//! Fuzz targets: plain functions that take any bytes and panic if a property does not hold.
//!
//! `cargo test -p mcp-resources-fuzz` drives each of them, on a stable compiler, with its corpus (`corpus/<target>/`)
//! and with some thousand mutations of it, the same ones each time; `MCP_RESOURCES_FUZZ_ITERATIONS` sets how many.
//! With the feature `libfuzzer` they are programs for cargo-fuzz. An input that made a target fail becomes a file of
//! its corpus.

mod apis;
mod bytes;
mod clients;
mod configs;
mod decode;
mod files;
mod fronts;
mod guards;
mod mutate;
mod revisions;
mod uris;

pub use apis::api_url;
pub use bytes::{lines, seal, text};
pub use clients::client;
pub use configs::{config, config_file};
pub use decode::decode;
pub use files::files_path;
pub use fronts::front_matter;
pub use guards::guard;
pub use mutate::Mutator;
pub use revisions::git_ref;
pub use uris::{template, uri};

/// A target and the name of its corpus.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the program and of the folder in `corpus`.
    pub name: &'static str,
    /// Panics if a property does not hold for these bytes.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 14] = [
    Target { name: "decode", run: decode },
    Target { name: "lines", run: lines },
    Target { name: "text", run: text },
    Target { name: "seal", run: seal },
    Target { name: "uri", run: uri },
    Target { name: "template", run: template },
    Target { name: "guard", run: guard },
    Target { name: "client", run: client },
    Target { name: "config", run: config },
    Target { name: "config_file", run: config_file },
    Target { name: "files_path", run: files_path },
    Target { name: "front_matter", run: front_matter },
    Target { name: "git_ref", run: git_ref },
    Target { name: "api_url", run: api_url },
];
