//! Reads of files and directories of a skill.

use super::library::SkillSnapshot;
use super::skill::{self, Skill, digest};
use super::watch::SkillSource;
use mcp_resources_engine::connection::{Contents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_files::open_folder::{AbsentFolder, FolderEntry, OpenFolder};
use mcp_resources_provider_kit::media::{CHILDREN, DIRECTORY, MORE, by_name, mime_type};
use mcp_resources_provider_kit::tracker::{ReadStart, Tracker};
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::{Read, Responder};

/// The target of a URI.
pub(super) struct SkillTarget<'p> {
    pub(super) snapshot: &'p SkillSnapshot,
    pub(super) skill: &'p Skill,
    /// Within the directory of the skill.
    pub(super) path: &'p [u8],
    /// In canonical form.
    pub(super) uri: &'p str,
    /// Before the snapshot was taken.
    pub(super) start: ReadStart,
}

type Answer = Result<ReadResult<'static>, ReadError>;

/// Reads a file, or lists a directory.
pub(super) fn read(
    target: &SkillTarget<'_>,
    tracker: &Tracker<SkillSource>,
    request: &Read,
    reply: &Responder<ReadResult<'static>>,
) -> Answer {
    if !target.snapshot.shows(target.uri, &|uri| request.permits(uri)) {
        return Err(ReadError::NotFound);
    }
    let root = tracker.source.0.roots.get(target.skill.folder).ok_or(ReadError::NotFound)?;
    let folder = root.folder.open().map_err(|_| ReadError::NotFound)?;
    let path = target.skill.path_in_folder(target.path);
    if let Some(level) = folder.level(&path)
        && let Ok((entries, more)) = folder.entries(&level, &path, CHILDREN)
    {
        tracker.saw(target.uri, target.snapshot.mark(target.uri), target.start);
        return directory(target, entries, more, request);
    }
    file(target, &folder, tracker, reply)
}

fn directory(target: &SkillTarget<'_>, mut entries: Vec<FolderEntry>, more: bool, request: &Read) -> Answer {
    let SkillTarget { snapshot, skill, .. } = target;
    let permits = |uri: &str| request.permits(uri);
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let children = entries.into_iter().filter_map(|entry| {
        let own = uri_path::join(target.path, &entry.name);
        let uri = skill.uri_of(&own);
        let mime_type = match snapshot.head(skill, &own) {
            _ if entry.is_dir => Some(DIRECTORY),
            Some(_) => Some(skill::MARKDOWN),
            None => by_name(&own),
        };
        snapshot.shows(&uri, &permits).then(|| {
            let child = Contents::text("").with_uri(uri);
            match mime_type {
                Some(mime_type) => child.with_mime_type(mime_type),
                None => child,
            }
        })
    });
    let mut contents: Vec<_> = children.collect();
    if more && let Some(last) = contents.pop() {
        contents.push(last.with_meta(MORE));
    }
    if contents.is_empty() {
        // A read has something: an empty directory has itself.
        contents.push(Contents::text("").with_mime_type(DIRECTORY));
    }
    Ok(ReadResult { contents, cache: None })
}

fn file(
    target: &SkillTarget<'_>,
    folder: &OpenFolder<'_>,
    tracker: &Tracker<SkillSource>,
    reply: &Responder<ReadResult<'static>>,
) -> Answer {
    let path = target.skill.path_in_folder(target.path);
    let allow = |size| reply.facts(size).is_ok() && !reply.is_cancelled();
    let (bytes, _) = folder.read(&path, &allow).map_err(|absent| match absent {
        AbsentFolder::NotFound => ReadError::NotFound,
        AbsentFolder::Failed => {
            reply.log(&format!("{} could not be read", String::from_utf8_lossy(&path)));
            ReadError::Failed
        }
        AbsentFolder::TooLarge => {
            let size = folder.stamp(&path).map_or(u64::MAX, |stamp| stamp.size());
            reply.facts(size).err().unwrap_or(ReadError::Failed)
        }
    })?;
    tracker.saw(target.uri, Some(digest(&bytes)), target.start);
    let is_manifest = target.snapshot.head(target.skill, target.path).is_some();
    let mime_type = if is_manifest { skill::MARKDOWN } else { mime_type(target.path, &bytes) };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => Contents::text(text),
        Err(error) => Contents::blob(error.into_bytes()),
    };
    Ok(contents.with_mime_type(mime_type).into())
}
