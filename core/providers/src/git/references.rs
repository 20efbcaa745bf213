//! Branches and tags: their names in URIs, and as JSON.

use super::commits::{CommitData, Person, json, subject};
use super::repository::{Context, Handle};
use super::revision::{self, Revision};
use super::watch::{Fingerprint, fingerprint_of_branches, fingerprint_of_tags};
use gix::bstr::ByteSlice;
use gix::objs::{Kind, TagRef};
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use serde::Serialize;

/// The most references of a folder that are visited.
const LARGEST: usize = 100_000;
/// The most that an answer shows.
const SHOWN: usize = 1_000;

/// A reference that can be named in a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RefName {
    /// As in a URI, before percent-encoding.
    pub(super) spelled: String,
    pub(super) name: String,
    pub(super) is_tag: bool,
    /// What it points to: for an annotated tag, the tag.
    pub(super) id: ObjectId,
}

#[derive(Serialize)]
struct Branches {
    /// The branch that HEAD is on; `null` if it is on none.
    head: Option<String>,
    branches: Vec<Branch>,
    more: bool,
}

#[derive(Serialize)]
struct Branch {
    name: String,
    id: String,
    current: bool,
    author: Person,
    subject: String,
    uri: String,
}

#[derive(Serialize)]
struct Tags {
    tags: Vec<Tag>,
    more: bool,
}

#[derive(Serialize)]
struct Tag {
    name: String,
    /// The tagged object, usually a commit.
    id: String,
    /// The tag itself, if it is annotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tagger: Option<Person>,
    subject: String,
    uri: String,
}

/// The references of all folders that are allowed: branches first, then tags, then others, each by name.
pub(super) fn all(handle: &Handle<'_>) -> Result<Vec<RefName>, ReadError> {
    let folders = &handle.own.settings.refs;
    let rank = |folder: &String| match folder.as_str() {
        "heads" => 0,
        "tags" => 1,
        _ => 2,
    };
    let mut folders: Vec<&String> = folders.iter().collect();
    folders.sort_by_key(|folder| rank(folder));
    let mut found = Vec::new();
    for folder in folders {
        found.extend(of_folder(handle, folder)?);
    }
    Ok(found)
}

fn of_folder(handle: &Handle<'_>, folder: &str) -> Result<Vec<RefName>, ReadError> {
    let platform = handle.references().map_err(|_| ReadError::Failed)?;
    let prefix = format!("refs/{folder}/");
    let Ok(found) = platform.prefixed(prefix.as_str()) else { return Ok(Vec::new()) };
    let is_tag = folder == "tags";
    let mut named = Vec::new();
    // Broken references are skipped.
    for reference in found.take(LARGEST).filter_map(Result::ok) {
        let full = reference.name().as_bstr();
        let Some(name) = full.to_str().ok().and_then(|full| full.strip_prefix(&prefix)) else { continue };
        let Some(id) = reference.clone().follow_to_object().ok().map(gix::Id::detach) else { continue };
        let name = match handle.means_another(name, full) {
            true => format!("{folder}/{name}"),
            false => name.to_owned(),
        };
        let spelled = revision::spell(&name);
        // A name that values may not have, such as one that begins with a dash, can only be read by its id.
        if Revision::parse(&spelled).is_some() {
            named.push(RefName { spelled, name, is_tag, id });
        }
    }
    named.sort();
    named.dedup();
    Ok(named)
}

/// The branches that a client may see, as JSON. References of all folders but `tags` count as branches.
pub(super) fn branches(
    handle: &Handle<'_>,
    context: &Context<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let mark = fingerprint_of_branches(handle)?;
    let current = handle.branch()?;
    let head = current.as_deref().and_then(|full| full.strip_prefix("refs/heads/")).map(str::to_owned);
    let mut branches = Branches { head, branches: Vec::new(), more: false };
    for named in all(handle)?.into_iter().filter(|named| !named.is_tag) {
        let uri = handle.own.uri_of("log", &named.spelled);
        if (context.is_cancelled)() {
            return Err(ReadError::Failed);
        }
        if !(context.permits)(&uri) {
            continue;
        }
        if branches.branches.len() == SHOWN {
            branches.more = true;
            break;
        }
        let Ok(data) = CommitData::read(handle, named.id) else { continue };
        let commit = data.decode()?;
        let plain = named.name.strip_prefix("heads/").unwrap_or(&named.name);
        branches.branches.push(Branch {
            current: branches.head.as_deref() == Some(plain),
            id: named.id.to_string(),
            author: Person::new(commit.author, commit.encoding),
            subject: subject(commit.message, commit.encoding),
            name: named.name,
            uri,
        });
    }
    if branches.head.as_ref().is_some_and(|head| !may_name(handle, head, context)) {
        branches.head = None;
    }
    Ok((json(&branches)?, mark))
}

/// Whether a client may know of a branch.
pub(super) fn may_name(handle: &Handle<'_>, branch: &str, context: &Context<'_>) -> bool {
    handle.own.settings.refs.iter().any(|folder| folder == "heads")
        && (context.permits)(&handle.own.uri_of("log", &revision::spell(branch)))
}

/// The tags that a client may see, as JSON.
pub(super) fn tags(handle: &Handle<'_>, context: &Context<'_>) -> Result<(String, Fingerprint), ReadError> {
    let all = all(handle)?;
    let mark = fingerprint_of_tags(&all);
    let mut tags = Tags { tags: Vec::new(), more: false };
    for named in all.into_iter().filter(|named| named.is_tag) {
        let uri = handle.own.uri_of("log", &named.spelled);
        if (context.is_cancelled)() {
            return Err(ReadError::Failed);
        }
        if !(context.permits)(&uri) {
            continue;
        }
        if tags.tags.len() == SHOWN {
            tags.more = true;
            break;
        }
        // A tag whose object is missing is skipped.
        if let Ok(tag) = tag(handle, named, uri) {
            tags.tags.push(tag);
        }
    }
    Ok((json(&tags)?, mark))
}

fn tag(handle: &Handle<'_>, named: RefName, uri: String) -> Result<Tag, ReadError> {
    let id = handle.peel(named.id)?;
    let mut tag =
        Tag { name: named.name, id: id.to_string(), tag: None, tagger: None, subject: String::new(), uri };
    if id == named.id {
        if handle.kind(id)? == Kind::Commit {
            let data = CommitData::read(handle, id)?;
            let commit = data.decode()?;
            tag.subject = subject(commit.message, commit.encoding);
        }
        return Ok(tag);
    }
    let data = handle.tag(named.id)?;
    let annotated = TagRef::from_bytes(&data, hash::Kind::Sha1).map_err(|_| ReadError::Failed)?;
    tag.tag = Some(named.id.to_string());
    tag.tagger = annotated.tagger.map(|tagger| Person::new(tagger, None));
    tag.subject = subject(annotated.message, None);
    Ok(tag)
}
