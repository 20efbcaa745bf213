//! Completion of the git provider's variables.
//!
//! Law: a client can expand the template with a value unchanged. Names have `~2F` for a slash. Paths are whole, and
//! percent-encoded if the template does not encode them; those of directories end with a slash. Only served names and
//! paths are suggested.

use super::commits::CommitWalk;
use super::objects::{RawEntry, raw_entries};
use super::references;
use super::repository::Handle;
use super::revision::GitRevision;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::answers::COMPLETED;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::uri_path::{self, join};
use mcp_resources_runtime::provider::RequestContext;

/// The names of references that begin with the typed text, with a slash or with `~2F`.
pub(super) fn revisions(
    handle: &Handle<'_>,
    typed: &str,
    context: &RequestContext<'_>,
) -> Result<Vec<String>, ReadError> {
    let plain = path::decoded(typed).unwrap_or_default();
    let fits = |encoded: &str, name: &str| {
        encoded.starts_with(typed) || !plain.is_empty() && name.starts_with(&*plain)
    };
    let may = |encoded: &str| context.permits(&handle.own.uri_of("log", encoded));
    let mut values = Vec::new();
    if "HEAD".starts_with(typed) && may("HEAD") {
        values.push("HEAD".to_owned());
    }
    let named = references::all(handle)?;
    let named = named.into_iter().filter(|named| fits(&named.encoded, &named.name) && may(&named.encoded));
    values.extend(named.map(|named| named.encoded).take(COMPLETED));
    Ok(values)
}

/// The ids of the newest commits that begin with the typed text.
pub(super) fn ids(
    handle: &Handle<'_>,
    typed: &str,
    context: &RequestContext<'_>,
) -> Result<Vec<String>, ReadError> {
    /// The most commits that are visited.
    const NEWEST: usize = 1_000;
    let Some(head) = handle.head()? else { return Ok(Vec::new()) };
    let typed = typed.to_ascii_lowercase();
    let mut values = Vec::new();
    let mut walk = CommitWalk::new(handle, head, None)?;
    for _ in 0..NEWEST {
        let Some((id, _)) = walk.next()? else { break };
        let id = id.to_string();
        if id.starts_with(&typed) && context.permits(&handle.own.uri_of("commit", &id)) {
            values.push(id);
        }
        if values.len() == COMPLETED {
            break;
        }
    }
    Ok(values)
}

/// The variable that a path is completed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathOf {
    /// `{+path}` of a directory.
    Tree,
    /// `{+path}` of a file.
    Blob,
    /// `{?path}`, which clients percent-encode when they expand the template.
    Log,
}

/// The paths of a revision that begin with the typed text, percent-encoded or not, in one directory.
pub(super) fn paths(
    handle: &Handle<'_>,
    revision: &str,
    typed: &str,
    of: PathOf,
    context: &RequestContext<'_>,
) -> Result<Vec<String>, ReadError> {
    let own = handle.own;
    let (above, start) = typed.rsplit_once('/').unwrap_or(("", typed));
    let directory = path::decoded(above).and_then(|above| match &*above {
        "" => Some(Vec::new()),
        above => uri_path::decode(above),
    });
    let revision = GitRevision::parse(revision).ok_or(ReadError::NotFound)?;
    let directory = directory.filter(|path| own.selection.admits(path, true)).ok_or(ReadError::NotFound)?;
    let tree = handle.tree_of(handle.resolve("ref", &revision)?)?;
    let entry =
        handle.entry(tree, &directory)?.filter(|entry| entry.mode.is_tree()).ok_or(ReadError::NotFound)?;
    let data = handle.tree(entry.id)?;
    let encoded = revision.to_string();
    let typed = TypedPrefix::new(start);
    let mut values = Vec::new();
    for raw in raw_entries(&data) {
        if values.len() == COMPLETED || context.is_cancelled() {
            break;
        }
        let Some(entry) = Some(raw).filter(|raw| typed.fits(raw.name)).and_then(RawEntry::parsed) else {
            continue;
        };
        let is_dir = entry.mode.is_tree();
        if !(is_dir || of != PathOf::Tree && entry.mode.is_blob_or_symlink()) {
            continue;
        }
        let path = join(&directory, raw.name);
        let kind = if is_dir { "tree" } else { "blob" };
        if own.selection.admits_entry(&path, is_dir) && context.permits(&own.uri_at(kind, &encoded, &path)) {
            let encoded =
                if of == PathOf::Log { uri_path::unencoded(&path) } else { uri_path::encode(&path) };
            values.push(encoded + if is_dir { "/" } else { "" });
        }
    }
    Ok(values)
}

/// The beginning of a name as it was typed.
struct TypedPrefix<'t> {
    encoded: &'t str,
    /// Without its percent-encoding.
    plain: Option<String>,
    /// The possible beginnings of a matching name: up to the first escape, a name is encoded as it is. So most names
    /// are rejected without encoding them.
    starts: [Option<Vec<u8>>; 2],
}

impl<'t> TypedPrefix<'t> {
    fn new(encoded: &'t str) -> Self {
        let unescaped = |typed: &str| typed.split(['%', '~']).next().unwrap_or_default().as_bytes().to_vec();
        let plain = path::decoded(encoded);
        let start = unescaped(encoded);
        let other = plain.as_deref().map(unescaped).filter(|other| *other != start);
        Self { encoded, plain, starts: [Some(start), other] }
    }

    fn fits(&self, name: &[u8]) -> bool {
        if !self.starts.iter().flatten().any(|start| name.starts_with(start)) {
            return false;
        }
        uri_path::encode(name).starts_with(self.encoded)
            || self.plain.as_ref().is_some_and(|plain| uri_path::text(name).starts_with(&**plain))
    }
}
