//! Opens the files of a repository.
//!
//! ```text
//!   path ──looked at──▶ a file? ──open, without waiting──▶ still a file? ──where it really lies──▶ under one of the areas?
//! ```
//!
//! Law: every file of a repository is opened by this module. A FIFO, a socket, a device or a directory in its place is
//! an error, and no open waits for its other end. A file outside the areas, behind any link, is an error at each
//! opening. Files are read, never mapped: a file that is truncated during a read is an error too.

use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Size of one read in bytes.
pub(super) const CHUNK: usize = 64 * 1024;

/// The directories that may hold the parts of a repository, without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Areas(Vec<PathBuf>);

/// Why a part is not read.
#[derive(Debug)]
pub(super) enum PartError {
    NotFound,
    /// A FIFO, a socket, a device or a directory is in its place.
    NoFile,
    /// It is outside the repository.
    Outside,
    /// It has more bytes than this.
    TooLarge(u64),
    Failed(io::Error),
    /// The client does not wait any longer.
    Cancelled,
}

/// A file that is open for reading at any position.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    pub(super) facts: Metadata,
}

/// The metadata that changes when a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartStamp {
    id: FileId,
    size: u64,
    pub(super) modified: FileTime,
    pub(super) changed: FileTime,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("it is not there"),
            Self::NoFile => {
                f.write_str("it is no regular file; remove it, and put the file back in its place")
            }
            Self::Outside => f.write_str("it lies outside the repository; put what it leads to in its place"),
            Self::TooLarge(limit) => write!(f, "it has more than {limit} bytes"),
            Self::Failed(error) => write!(f, "{error}"),
            Self::Cancelled => f.write_str("the client does not wait any longer"),
        }
    }
}

impl From<io::Error> for PartError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::NotFound,
            _ => Self::Failed(error),
        }
    }
}

impl Areas {
    pub(super) fn new(areas: Vec<PathBuf>) -> Self {
        Self(areas)
    }

    /// Opens the file at `path`.
    pub(super) fn open(&self, path: &Path) -> Result<PartFile, PartError> {
        if !fs::metadata(path)?.is_file() {
            return Err(PartError::NoFile);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
        let file = File::from(opened.map_err(io::Error::from)?);
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(PartError::NoFile);
        }
        if !self.holds(&file, &facts, path)? {
            return Err(PartError::Outside);
        }
        Ok(PartFile { file, facts })
    }

    /// All bytes of the file at `path`, which has at most `limit`.
    pub(super) fn read(&self, path: &Path, limit: u64) -> Result<(Vec<u8>, Metadata), PartError> {
        let file = self.open(path)?;
        let bytes = file.read_all(limit)?;
        Ok((bytes, file.facts))
    }

    /// Whether the directory at `path` is in one of the areas.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|real| self.has(&real))
    }

    fn has(&self, real: &Path) -> bool {
        self.0.iter().any(|area| real.starts_with(area))
    }

    /// Whether an open file is in one of the areas.
    fn holds(&self, file: &File, facts: &Metadata, path: &Path) -> Result<bool, PartError> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            if let Ok(real) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
                return Ok(self.has(&real));
            }
        }
        let _ = file;
        let real = fs::canonicalize(path)?;
        let found = fs::symlink_metadata(&real)?;
        Ok(self.has(&real) && FileId::from(&found) == FileId::from(facts))
    }
}

impl PartFile {
    pub(super) fn len(&self) -> u64 {
        self.facts.len()
    }

    pub(super) fn read_all(&self, limit: u64) -> Result<Vec<u8>, PartError> {
        let mut bytes = Vec::new();
        // One byte more, to see its end.
        let mut chunk = vec![0; CHUNK.min(usize::try_from(self.len()).unwrap_or(CHUNK).saturating_add(1))];
        loop {
            let read = self.read_once(&mut chunk, bytes.len() as u64)?;
            bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
            if bytes.len() as u64 > limit {
                return Err(PartError::TooLarge(limit));
            }
            if read == 0 || bytes.len() as u64 == self.len() && read < chunk.len() {
                return Ok(bytes);
            }
        }
    }

    /// Reads up to the length of `buffer`; 0 is the end.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, PartError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_once(rest, offset.saturating_add(filled as u64))? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    /// Reads what one call gives; 0 is the end.
    fn read_once(&self, buffer: &mut [u8], offset: u64) -> Result<usize, PartError> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(PartError::Failed),
            }
        }
    }
}

/// The stamp for checking whether a file is still the same.
pub(super) fn stamp(facts: &Metadata) -> PartStamp {
    PartStamp {
        id: facts.into(),
        size: facts.len(),
        modified: FileTime::modified(facts),
        changed: FileTime::changed(facts),
    }
}
