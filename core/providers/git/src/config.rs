//! The configuration of a repository, as far as it affects reading.
//!
//! Law: it is not trusted. Settings that name a program or a path, and includes, are not read. What would make git refuse the
//! repository makes this provider refuse it.

use super::layout::{LayoutRefusal, refusal};
use super::parts::{Areas, PartError};
use gix::config::File;
use gix::filter::plumbing::eol::{AutoCrlf, Configuration, Mode};
use std::path::Path;

/// The largest configuration, in bytes.
const LARGEST: u64 = 4 << 20;
/// Extensions that a repository of version 0 may have, and those that version 1 allows in addition, in lower case.
const ALWAYS: [&str; 4] = ["noop", "partialclone", "preciousobjects", "worktreeconfig"];
const SINCE_VERSION_1: [&str; 6] = [
    "compatobjectformat",
    "noop-v1",
    "objectformat",
    "refstorage",
    "relativeworktrees",
    "submodulepathconfig",
];

/// The configuration of one repository.
#[derive(Debug)]
pub(super) struct RepositoryConfig {
    /// Whether objects may not have been fetched.
    pub(super) is_partial: bool,
    /// Whether existing files count that are not checked out.
    pub(super) is_sparse: bool,
    /// Whether the file system keeps the executable bit.
    pub(super) file_mode: bool,
    pub(super) symlinks: bool,
    pub(super) ignore_case: bool,
    pub(super) trust_ctime: bool,
    pub(super) check_stat: bool,
    pub(super) line_ends: Configuration,
}

impl RepositoryConfig {
    pub(super) fn read(areas: &Areas, git_dir: &Path, common_dir: &Path) -> Result<Self, LayoutRefusal> {
        let shared = file(areas, &common_dir.join("config"))?;
        let is_on = |file: &File, key: &str| file.boolean(key).ok().flatten();
        check(&shared)?;
        let own = match is_on(&shared, "extensions.worktreeConfig") {
            Some(true) => file(areas, &git_dir.join("config.worktree"))?,
            _ => File::default(),
        };
        let flag = |key: &str, default: bool| is_on(&own, key).or(is_on(&shared, key)).unwrap_or(default);
        let text = |key: &str| {
            let found = own.string(key).or_else(|| shared.string(key));
            found.map(|value| value.to_ascii_lowercase())
        };
        let remotes = shared.sections_by_name("remote").into_iter().flatten();
        let is_promisor = |section: gix::config::file::SectionRef<'_>| {
            section.value("promisor").is_some_and(|value| &*value.to_ascii_lowercase() == b"true")
                || section.value("partialclonefilter").is_some()
        };
        let auto_crlf = match text("core.autocrlf").as_deref() {
            Some(b"input") => AutoCrlf::Input,
            _ if flag("core.autocrlf", false) => AutoCrlf::Enabled,
            _ => AutoCrlf::Disabled,
        };
        let eol = match text("core.eol").as_deref() {
            Some(b"lf") => Some(Mode::Lf),
            Some(b"crlf") => Some(Mode::CrLf),
            _ => None,
        };
        Ok(Self {
            is_partial: shared.string("extensions.partialClone").is_some()
                || remotes.into_iter().any(is_promisor),
            is_sparse: flag("core.sparseCheckout", false)
                && !flag("sparse.expectFilesOutsideOfPatterns", false),
            file_mode: flag("core.fileMode", true),
            symlinks: flag("core.symlinks", true),
            ignore_case: flag("core.ignoreCase", false),
            trust_ctime: flag("core.trustctime", true),
            check_stat: text("core.checkStat").as_deref() != Some(b"minimal"),
            line_ends: Configuration { auto_crlf, eol },
        })
    }
}

/// A repository without this file has the defaults.
fn file(areas: &Areas, path: &Path) -> Result<File, LayoutRefusal> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = match areas.read(path, LARGEST) {
        Ok((text, _)) => text,
        Err(PartError::NotFound) => return Ok(File::default()),
        Err(error) => return Err(refusal(format!("has a {name} that cannot be read: {error}"))),
    };
    let meta = gix::config::file::Metadata::default();
    File::from_bytes_no_includes(&text, meta, gix::config::file::init::Options::default()).map_err(|_| {
        refusal(format!("has a {name} that is no configuration; `git config --list` says which line"))
    })
}

/// Refuses what git refuses.
fn check(file: &File) -> Result<(), LayoutRefusal> {
    let wrong = |what: &str| {
        refusal(format!("has {what} in its config, which is not supported; `git status` says more"))
    };
    let version = match file.string("core.repositoryFormatVersion") {
        None => 0,
        Some(text) => std::str::from_utf8(&text)
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok())
            .unwrap_or(u32::MAX),
    };
    if version > 1 {
        return Err(wrong("another core.repositoryFormatVersion than 0 and 1"));
    }
    let sections = file.sections_by_name("extensions").into_iter().flatten();
    for name in
        sections.flat_map(|section| section.value_names().map(|name| name.to_string()).collect::<Vec<_>>())
    {
        let known = name.to_ascii_lowercase();
        let is_newer = SINCE_VERSION_1.contains(&&*known);
        if version == 0 && is_newer || version == 1 && !is_newer && !ALWAYS.contains(&&*known) {
            return Err(wrong(&format!("extensions.{name}")));
        }
    }
    let format = |key: &str| file.string(key).map(|value| value.to_ascii_lowercase());
    if format("extensions.objectFormat").is_some_and(|format| &*format != b"sha1") {
        let reason = "has other ids than SHA-1, which are not supported; name a repository with SHA-1 ids";
        return Err(refusal(reason.into()));
    }
    if format("extensions.refStorage").is_some_and(|format| &*format != b"files") {
        let reason = "keeps its references in another way than in files, such as a reftable, which is not supported; \
                      `git refs migrate --ref-format=files` changes that";
        return Err(refusal(reason.into()));
    }
    Ok(())
}
