//! Completion of roots and paths.
//!
//! Law: a value can be put into the template as it is: a whole path, percent-encoded, a directory with its slash so
//! that completion can continue. Only served paths are suggested.

use super::contents::resolve;
use super::root_directory::{DirectoryEntry, FileKind};
use super::select::Smallest;
use super::tree::{Tree, join};
use mcp_resources_provider_kit::answers::COMPLETED;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::uri_path;
use std::sync::Arc;

/// The names of roots that begin with the typed text.
pub(super) fn roots(trees: &[Arc<Tree>], typed: &str) -> Vec<String> {
    let fits = trees.iter().filter(|tree| tree.name().starts_with(typed));
    fits.map(|tree| tree.name().to_owned()).take(COMPLETED).collect()
}

/// The paths of `root` that begin with the typed text, percent-encoded or not, in one directory.
pub(super) fn paths(
    tree: &Tree,
    typed: &str,
    permits: &dyn Fn(&str) -> bool,
    is_cancelled: &dyn Fn() -> bool,
) -> Option<Vec<String>> {
    if typed.starts_with('/') {
        return None;
    }
    let (above, start) = typed.rsplit_once('/').unwrap_or(("", typed));
    let decoded = path::decoded(above)?;
    let directory = if decoded.is_empty() { Vec::new() } else { uri_path::decode(&decoded)? };
    let plain = path::decoded(start).unwrap_or_default();
    let root = tree.open().ok()?;
    let opened = tree.find(&root, &directory, permits).ok()?;
    let chain = tree.chain(&root, &directory)?;
    let dir = opened.into_dir()?;
    let mut first = Smallest::new(COMPLETED);
    for DirectoryEntry { name, kind } in dir.entries().ok()? {
        if is_cancelled() {
            return None;
        }
        let text = uri_path::text(&name);
        if !(text.starts_with(&plain) || uri_path::encode(&name).starts_with(start)) || !first.wants(&name) {
            continue;
        }
        let own = join(&directory, &name);
        let Some(kind) = resolve(tree, &root, &own, kind, permits) else { continue };
        let is_dir = kind == FileKind::Directory;
        if tree.admits_entry(&chain, &own, is_dir) && permits(&tree.uri(&own, is_dir)) {
            first.push(name, is_dir);
        }
    }
    let values = first
        .into_sorted()
        .0
        .into_iter()
        .map(|(name, is_dir)| uri_path::encode(&join(&directory, &name)) + if is_dir { "/" } else { "" });
    Some(values.collect())
}
