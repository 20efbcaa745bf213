//! What the examples share: where their data is. Each of them is one file beside this folder.

use std::path::PathBuf;

/// A file or folder of `examples/data`.
pub fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "data", name].iter().collect()
}
