//! Committed files, and the children of directories.
//!
//! Law: a blob has the bytes of the object database. Filters for the working tree are not applied.

use super::answers::Fingerprint;
use super::objects::entries;
use super::repository::Handle;
use super::revision::GitRevision;
use mcp_resources_engine::connection::{Contents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::{CacheHint, CacheScope, Resource};
use mcp_resources_provider_kit::media::{CHILDREN, DIRECTORY, MORE, by_name, mime_type};
use mcp_resources_provider_kit::uri_path::{self, join};
use mcp_resources_runtime::provider::RequestContext;

/// The media type of a symbolic link, whose contents are its target.
const LINK: &str = "inode/symlink";
/// The time for which clients may keep a blob at a whole id, in milliseconds. The blob cannot change, but the options
/// and the guard can.
const DAY: u64 = 24 * 60 * 60 * 1_000;

/// The file at `path`.
pub(super) fn blob(
    handle: &Handle<'_>,
    revision: &GitRevision,
    path: &str,
    context: &RequestContext<'_>,
) -> Result<(ReadResult<'static>, Fingerprint), ReadError> {
    let (path, must_be_dir) = uri_path::path(path).ok_or(ReadError::NotFound)?;
    if must_be_dir || !handle.own.selection.admits(&path, false) {
        return Err(ReadError::NotFound);
    }
    let tree = handle.tree_of(handle.resolve("ref", revision)?)?;
    let entry = handle.entry(tree, &path)?.filter(|entry| entry.mode.is_blob_or_symlink());
    let entry = entry.ok_or(ReadError::NotFound)?;
    let bytes = handle.blob(entry.id, context.most_bytes())?;
    let mime_type = if entry.mode.is_link() { LINK } else { mime_type(&path, &bytes) };
    let contents = match std::str::from_utf8(&bytes) {
        Ok(text) => Contents::text(text.to_owned()),
        Err(_) => Contents::blob(bytes.to_vec()),
    };
    let cache = revision.is_fixed().then_some(CacheHint { ttl_ms: DAY, scope: CacheScope::Private });
    Ok((
        ReadResult { contents: vec![contents.with_mime_type(mime_type)], cache },
        Fingerprint::from_value(Some(entry)),
    ))
}

/// The children of the directory at `path`, each with its URI: the first ones by name.
pub(super) fn tree(
    handle: &Handle<'_>,
    revision: &GitRevision,
    path: &str,
    context: &RequestContext<'_>,
) -> Result<(ReadResult<'static>, Fingerprint), ReadError> {
    let (children, more, mark) = self::children(handle, revision, path, CHILDREN, context)?;
    let mut contents: Vec<_> = children
        .into_iter()
        .map(|child| {
            let contents = Contents::text("").with_uri(child.uri);
            match child.details.mime_type {
                Some(mime_type) => contents.with_mime_type(mime_type),
                None => contents,
            }
        })
        .collect();
    if more && let Some(last) = contents.pop() {
        contents.push(last.with_meta(MORE));
    }
    if contents.is_empty() {
        // A read has something: an empty directory has itself.
        contents.push(Contents::text("").with_mime_type(DIRECTORY));
    }
    Ok((ReadResult { contents, cache: None }, mark))
}

/// The first children of a directory that the client may see, at most `most`; whether there are more; and the mark of
/// the directory.
pub(super) fn children(
    handle: &Handle<'_>,
    revision: &GitRevision,
    path: &str,
    most: usize,
    context: &RequestContext<'_>,
) -> Result<(Vec<Resource>, bool, Fingerprint), ReadError> {
    let (path, _) = uri_path::path(path).ok_or(ReadError::NotFound)?;
    let own = handle.own;
    if !own.selection.admits(&path, true) {
        return Err(ReadError::NotFound);
    }
    let id = handle.resolve("ref", revision)?;
    let entry = handle.entry(handle.tree_of(id)?, &path)?.filter(|entry| entry.mode.is_tree());
    let entry = entry.ok_or(ReadError::NotFound)?;
    let data = handle.tree(entry.id)?;
    let encoded = revision.to_string();
    let mut children = Vec::new();
    let mut more = false;
    for entry in entries(&data) {
        if context.is_cancelled() {
            return Err(ReadError::Failed);
        }
        let is_dir = entry.mode.is_tree();
        let name = join(&path, entry.filename);
        if !(is_dir || entry.mode.is_blob_or_symlink()) || !own.selection.admits_entry(&name, is_dir) {
            continue;
        }
        let uri = own.uri_at(if is_dir { "tree" } else { "blob" }, &encoded, &name);
        if !context.permits(&uri) {
            continue;
        }
        more = children.len() == most;
        if more {
            break;
        }
        let mime_type = match (is_dir, entry.mode.is_link()) {
            (true, _) => Some(DIRECTORY),
            (_, true) => Some(LINK),
            _ => by_name(&name),
        };
        let mut child = Resource::new(uri).name(String::from_utf8_lossy(entry.filename));
        child.details.mime_type = mime_type.map(str::to_owned);
        children.push(child);
    }
    Ok((children, more, Fingerprint::from_value(Some(entry))))
}
