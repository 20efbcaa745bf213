//! Compares the files of a working tree with the index.
//!
//! ```text
//!   entry ──lstat──▶ as in the index? ──no──▶ its contents, converted as `git add` would ──hash──▶ as in the index?
//! ```
//!
//! Law: contents are read from regular files only, and no program is run: filters such as that of Git LFS are not
//! applied. Files behind a symbolic link are not part of the working tree.

use super::index::{GitIndex, IndexEntry};
use super::parts::{Areas, PartError};
use super::repository::Handle;
use gix::ObjectId;
use gix::attrs::Search;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::bstr::BStr;
use gix::filter::plumbing::Pipeline;
use gix::filter::plumbing::pipeline::{CrlfRoundTripCheck, Options};
use gix::glob::pattern::Case;
use gix::hash;
use gix::index::entry::{Flags, Mode, Stat, stat};
use gix::objs::Kind;
use mcp_resources_engine::error::ReadError;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest file of attributes, in bytes.
const ATTRIBUTES: u64 = 16 << 20;
/// The largest file that is converted, in bytes, because that takes memory. Larger ones are compared as they are.
const CONVERTED: u64 = 256 << 20;

/// The working tree of one repository.
pub(super) struct WorktreeFiles<'w> {
    handle: &'w Handle<'w>,
    root: &'w Path,
    areas: Areas,
    /// The last directory that was found to be one, without links.
    directory: Vec<u8>,
    converter: Option<Converter>,
}

/// The conversions of `git add`.
struct Converter {
    pipeline: Pipeline,
    attributes: Search,
    names: MetadataCollection,
    /// The directories whose attributes are in use, from the root on.
    directories: Vec<PathBuf>,
    /// The number of attribute lists that precede those of directories.
    own: usize,
}

impl<'w> WorktreeFiles<'w> {
    pub(super) fn new(handle: &'w Handle<'w>, root: &'w Path) -> Self {
        let areas = Areas::new(vec![root.to_owned()]);
        Self { handle, root, areas, directory: Vec::new(), converter: None }
    }

    /// The difference between a file and its entry, which has no conflict; `None` if there is none.
    pub(super) fn change(
        &mut self,
        index: &GitIndex,
        entry: &IndexEntry,
    ) -> Result<Option<&'static str>, ReadError> {
        if entry.flags.contains(Flags::ASSUME_VALID) {
            return Ok(None);
        }
        let is_skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
        if is_skipped && !self.handle.open.config.is_sparse {
            return Ok(None);
        }
        let Some(facts) = self.facts(&entry.path) else {
            return Ok(if is_skipped { None } else { Some("deleted") });
        };
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            return Ok(Some("added"));
        }
        if entry.mode.is_submodule() {
            return Ok(if facts.is_dir() { None } else { Some("type_changed") });
        }
        if facts.is_dir() {
            return Ok(Some("deleted"));
        }
        let config = &self.handle.open.config;
        let kind = facts.file_type();
        let is_link = entry.mode == Mode::SYMLINK;
        if !kind.is_file() && !kind.is_symlink() || config.symlinks && is_link != kind.is_symlink() {
            return Ok(Some("type_changed"));
        }
        let is_executable = facts.permissions().mode() & 0o100 != 0;
        if config.file_mode && !is_link && is_executable != (entry.mode == Mode::FILE_EXECUTABLE) {
            return Ok(Some("modified"));
        }
        let options = stat::Options {
            trust_ctime: config.trust_ctime,
            check_stat: config.check_stat,
            ..stat::Options::default()
        };
        let now = stat_of(&facts);
        let is_racy = i64::from(entry.stat.mtime.secs) >= index.written;
        // An entry without a size was written when its file had just changed.
        let is_unsure = entry.stat.size == 0 && entry.id != ObjectId::empty_blob(hash::Kind::Sha1);
        if entry.stat.matches(&now, options) && !is_racy && !is_unsure {
            return Ok(None);
        }
        if entry.stat.size != now.size && entry.stat.size != 0 {
            return Ok(Some("modified"));
        }
        let id = self.id(index, entry, &facts)?;
        Ok((id != Some(entry.id)).then_some("modified"))
    }

    /// The metadata of the entry at a path, if no link leads to it.
    fn facts(&mut self, path: &[u8]) -> Option<fs::Metadata> {
        let parent =
            path.iter().rposition(|byte| *byte == b'/').and_then(|at| path.get(..at)).unwrap_or_default();
        if self.directory != parent {
            let mut from = 0;
            while let Some(at) = parent.get(from..).filter(|rest| !rest.is_empty()) {
                let end = at.iter().position(|byte| *byte == b'/').map_or(parent.len(), |at| from + at);
                if !fs::symlink_metadata(self.at(parent.get(..end)?)).ok()?.is_dir() {
                    return None;
                }
                from = end + 1;
            }
            self.directory = parent.to_vec();
        }
        fs::symlink_metadata(self.at(path)).ok()
    }

    /// The id that the contents of a file would have; `None` if they cannot be read.
    fn id(
        &mut self,
        index: &GitIndex,
        entry: &IndexEntry,
        facts: &fs::Metadata,
    ) -> Result<Option<ObjectId>, ReadError> {
        let path = self.at(&entry.path);
        if facts.file_type().is_symlink() {
            let Ok(target) = fs::read_link(&path) else { return Ok(None) };
            return Ok(blob_id(target.as_os_str().as_bytes()));
        }
        let file = match self.areas.open(&path) {
            Ok(file) => file,
            Err(PartError::NotFound | PartError::NoFile | PartError::Outside) => return Ok(None),
            Err(error) => {
                self.handle.context.log(&format!("{} cannot be compared: {error}", path.display()));
                return Ok(None);
            }
        };
        let handle = self.handle;
        let limit = file.len();
        let is_cancelled: &dyn Fn() -> bool = &|| handle.context.is_cancelled();
        let mut reader = CancellableReader { file: &file, at: 0, limit, is_cancelled };
        if limit > CONVERTED {
            let id = stream_id(&mut reader, limit);
            return handle.check().map(|()| id);
        }
        let mut converter = match self.converter.take() {
            Some(converter) => converter,
            None => Converter::new(handle)?,
        };
        let id = converter.id(self, index, entry, reader, file.len());
        self.converter = Some(converter);
        handle.check()?;
        id
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        if path.is_empty() { self.root.to_owned() } else { self.root.join(OsStr::from_bytes(path)) }
    }

    /// The attributes of a directory: its file, or that of the index where it is not checked out.
    fn attributes(&self, index: &GitIndex, directory: &Path) -> Option<Vec<u8>> {
        let path = self.root.join(directory).join(".gitattributes");
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_file() => self.areas.read(&path, ATTRIBUTES).ok().map(|(text, _)| text),
            Ok(_) => None,
            Err(_) => {
                let entry = index.entry(directory.join(".gitattributes").as_os_str().as_bytes())?;
                let (kind, size) = self.handle.header(entry.id).ok()?;
                (kind == Kind::Blob && size <= ATTRIBUTES).then_some(())?;
                self.handle.data(entry.id).ok().map(|data| data.to_vec())
            }
        }
    }
}

impl Converter {
    fn new(handle: &Handle<'_>) -> Result<Self, ReadError> {
        let options = Options {
            drivers: Vec::new(),
            eol_config: handle.open.config.line_ends,
            crlf_roundtrip_check: CrlfRoundTripCheck::Skip,
            encodings_with_roundtrip_check: Vec::new(),
        };
        let pipeline = Pipeline::new(gix::command::Context::default(), hash::Kind::Sha1, options);
        let mut names = MetadataCollection::default();
        let attributes = Search::new_globals(std::iter::empty::<PathBuf>(), &mut Vec::new(), &mut names);
        let attributes = attributes.map_err(|_| ReadError::Failed)?;
        Ok(Self { pipeline, own: attributes.num_pattern_lists(), attributes, names, directories: Vec::new() })
    }

    /// Loads the attributes that apply in the directory of a path.
    fn enter(&mut self, files: &WorktreeFiles<'_>, index: &GitIndex, path: &Path) -> Result<(), ReadError> {
        let wanted: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        if self.directories.first() == wanted.first() && !self.directories.is_empty() {
            return Ok(());
        }
        while self.attributes.num_pattern_lists() > self.own {
            self.attributes.pop_pattern_list();
        }
        for directory in wanted.iter().rev() {
            if let Some(text) = files.attributes(index, directory) {
                let source = files.root.join(directory).join(".gitattributes");
                // Macros count in the root alone.
                let is_root = directory.as_os_str().is_empty();
                let added = self.attributes.add_patterns_buffer(
                    &text,
                    source,
                    Some(files.root),
                    &mut self.names,
                    is_root,
                );
                added.map_err(|_| ReadError::Failed)?;
            }
        }
        let info = files.handle.open.layout.common_dir.join("info/attributes");
        if let Ok((text, _)) = files.handle.open.areas.read(&info, ATTRIBUTES) {
            let added = self.attributes.add_patterns_buffer(&text, info, None, &mut self.names, true);
            added.map_err(|_| ReadError::Failed)?;
        }
        self.directories = wanted;
        Ok(())
    }

    fn id(
        &mut self,
        files: &WorktreeFiles<'_>,
        index: &GitIndex,
        entry: &IndexEntry,
        reader: CancellableReader<'_>,
        size: u64,
    ) -> Result<Option<ObjectId>, ReadError> {
        let path = Path::new(OsStr::from_bytes(&entry.path));
        self.enter(files, index, path)?;
        let case = if files.handle.open.config.ignore_case { Case::Fold } else { Case::Sensitive };
        let attributes = &self.attributes;
        let names = &self.names;
        let mut matching = |path: &BStr, out: &mut Outcome| {
            out.initialize_with_selection(
                names,
                ["crlf", "ident", "filter", "eol", "text", "working-tree-encoding"],
            );
            attributes.pattern_matching_relative_path(path, case, Some(false), out);
        };
        let mut in_index = |buffer: &mut Vec<u8>| {
            let data = files.handle.data(entry.id);
            Ok(data.ok().map(|data| buffer.extend_from_slice(&data)))
        };
        let converted = self.pipeline.convert_to_git(reader, path, &mut matching, &mut in_index);
        let Ok(mut converted) = converted else { return Ok(None) };
        if let Some(bytes) = converted.as_bytes() {
            return Ok(blob_id(bytes));
        }
        let Some(reader) = converted.as_read() else { return Ok(None) };
        Ok(stream_id(reader, size))
    }
}

/// A file whose reads fail when the request is cancelled.
struct CancellableReader<'f> {
    file: &'f super::parts::PartFile,
    at: u64,
    /// Its size when it was opened; later growth is ignored.
    limit: u64,
    is_cancelled: &'f dyn Fn() -> bool,
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_cancelled)() || self.at > self.limit {
            return Err(io::Error::other("nobody waits for the contents"));
        }
        let end = buffer.len().min(super::parts::CHUNK);
        let part = buffer.get_mut(..end).unwrap_or_default();
        let read = self.file.read_at(part, self.at).map_err(|error| io::Error::other(error.to_string()))?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The id of a file with `size` bytes; `None` if it has another size, or cannot be read.
fn stream_id(reader: &mut dyn Read, size: u64) -> Option<ObjectId> {
    let mut hasher = hash::hasher(hash::Kind::Sha1);
    hasher.update(format!("blob {size}\0").as_bytes());
    let mut chunk = vec![0; super::parts::CHUNK];
    let mut total = 0_u64;
    loop {
        let read = reader.read(&mut chunk).ok()?;
        if read == 0 {
            break;
        }
        hasher.update(chunk.get(..read)?);
        total += read as u64;
    }
    hasher.try_finalize().ok().filter(|_| total == size)
}

fn blob_id(bytes: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(hash::Kind::Sha1, Kind::Blob, bytes).ok()
}

/// The metadata of a file in the form of the index: the low bits of each number.
fn stat_of(facts: &fs::Metadata) -> Stat {
    let time = |seconds: i64, nanoseconds: i64| stat::Time {
        secs: seconds as u32,
        nsecs: u32::try_from(nanoseconds).unwrap_or_default(),
    };
    Stat {
        mtime: time(facts.mtime(), facts.mtime_nsec()),
        ctime: time(facts.ctime(), facts.ctime_nsec()),
        dev: facts.dev() as u32,
        ino: facts.ino() as u32,
        uid: facts.uid(),
        gid: facts.gid(),
        size: facts.len() as u32,
    }
}
