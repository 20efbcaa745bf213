//! The audit log as a file: one JSON object on a line for each entry.
//!
//! Law: a line is whole or not there. A file that was moved or deleted is made again at its path, so a rotation needs no signal
//! and loses nothing.

use super::audit::AuditSink;
use super::regular::{kind, without_waiting};
use mcp_resources_engine::guard::AuditRecord;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file with one JSON object on a line for each entry.
#[derive(Debug)]
pub struct AuditFile {
    file: Arc<File>,
    /// The path at which the file is looked for again; `None` for a pipe or a device, which stays open.
    place: Option<LogPlace>,
    lines: Vec<u8>,
    /// Whether the last line may be incomplete.
    is_torn: bool,
    rotation: Option<AuditRotation>,
}

/// When a log is moved away, and how many older ones stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRotation {
    /// The size in bytes from which the next entries begin a new file.
    pub max_bytes: u64,
    /// The number of older files: `FILE.1` is the latest. With 0 the log begins anew.
    pub keep: u32,
}

/// A regular file, and its number on its device.
#[derive(Clone, Debug)]
struct LogPlace {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl AuditFile {
    /// Opens the file for appending. A new file is readable by its owner only. If it is moved or deleted later, a new one is
    /// made at the same path. A named pipe must have a reader already.
    ///
    /// # Errors
    /// The system's error, with the path; also if it is a block device, or a pipe that no process reads.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        Self::opened(path).map_err(|error| {
            io::Error::new(error.kind(), format!("audit: {} cannot be opened: {error}", path.display()))
        })
    }

    fn opened(path: &Path) -> io::Result<Self> {
        let refused = |reason: &str| io::Error::new(io::ErrorKind::Unsupported, reason);
        if let Ok(metadata) = std::fs::metadata(path)
            && (metadata.file_type().is_block_device() || metadata.file_type().is_socket())
        {
            return Err(refused("it is a device or a socket; name a file"));
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = without_waiting(&mut options).open(path).map_err(|error| {
            let is_pipe = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
            if is_pipe && error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
                return refused("it is a pipe that no process reads; start its reader first, or name a file");
            }
            error
        })?;
        let metadata = file.metadata()?;
        let place = match kind(&metadata) {
            None => Some(LogPlace::new(path, &metadata)?),
            Some(_) => {
                // It has its own thread, which may wait for the reader.
                rustix::fs::fcntl_setfl(
                    &file,
                    rustix::fs::fcntl_getfl(&file)? - rustix::fs::OFlags::NONBLOCK,
                )?;
                None
            }
        };
        let is_torn = place.is_some() && ends_within_a_line(path, &metadata);
        Ok(Self { file: Arc::new(file), place, lines: Vec::new(), is_torn, rotation: None })
    }

    /// Moves the file to `FILE.1` when it has grown to a size, `FILE.1` to `FILE.2`, and so on. Default: never. Pipes and devices
    /// stay.
    #[must_use]
    pub fn rotated(mut self, rotation: AuditRotation) -> Self {
        self.rotation = Some(rotation);
        self
    }

    /// Moves a file away that has reached its size. If that fails, it grows further.
    fn rotate(&self) {
        let (Some(AuditRotation { max_bytes, keep }), Some(place)) = (self.rotation, &self.place) else {
            return;
        };
        let is_full = self.file.metadata().is_ok_and(|metadata| metadata.len() >= max_bytes);
        // Another process may have moved it.
        if !is_full || !place.is_there() {
            return;
        }
        for number in (1..keep).rev() {
            // There may be fewer.
            let _ = std::fs::rename(place.older(number), place.older(number + 1));
        }
        let _ = match keep {
            0 => std::fs::remove_file(&place.path),
            _ => std::fs::rename(&place.path, place.older(1)),
        };
    }

    /// Opens a new file if the old one is no longer at its path, because it was rotated or deleted. If that fails, the
    /// old one is used further.
    fn follow(&mut self) {
        let Some(place) = &self.place else { return };
        if !place.is_there()
            && let Ok(new) = Self::opened(&place.path)
        {
            *self = Self { lines: std::mem::take(&mut self.lines), rotation: self.rotation, ..new };
        }
    }

    /// Appends `lines`: all of them, or none.
    fn append(&mut self) -> io::Result<()> {
        let mut rest = &*self.lines;
        let failed = loop {
            if rest.is_empty() {
                self.is_torn = false;
                return Ok(());
            }
            match (&*self.file).write(rest) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        let written = self.lines.len() - rest.len();
        if written > 0 {
            let was_torn = self.is_torn;
            self.is_torn = self.take_back(written).is_err() || was_torn;
        }
        Err(failed)
    }

    /// Removes the beginning of `lines` from the end of the file, if it is there.
    fn take_back(&self, written: usize) -> io::Result<()> {
        let place = self.place.as_ref().filter(|place| place.is_there()).ok_or(io::ErrorKind::NotFound)?;
        let end = (&*self.file).stream_position()?;
        let start = end.checked_sub(written as u64).ok_or(io::ErrorKind::InvalidInput)?;
        let mut found = vec![0; written];
        File::open(&place.path)?.read_exact_at(&mut found, start)?;
        // Another process may have appended since.
        if self.file.metadata()?.len() != end || Some(&*found) != self.lines.get(..written) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.file.set_len(start)
    }
}

impl AuditSink for AuditFile {
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
        self.rotate();
        self.follow();
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
        entries.iter().for_each(|entry| entry.write_line(&mut self.lines));
        self.append()
    }

    /// Whole lines are appended in one write, so lines of two processes do not mix.
    fn fork(&self) -> Option<Box<dyn AuditSink>> {
        let file = self.file.clone();
        let place = self.place.clone();
        Some(Box::new(Self { file, place, lines: Vec::new(), is_torn: false, rotation: self.rotation }))
    }
}

impl LogPlace {
    fn new(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, device: metadata.dev(), inode: metadata.ino() })
    }

    /// The path of an older file.
    fn older(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Whether the file is still at its path.
    fn is_there(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }
}

/// Whether a file has a last line without an end: another process was interrupted while it wrote.
fn ends_within_a_line(path: &Path, metadata: &Metadata) -> bool {
    let Some(last) = metadata.len().checked_sub(1) else { return false };
    let mut byte = [0];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut byte, last));
    read.is_ok() && byte != *b"\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u64) -> Vec<AuditRecord> {
        (1..=count).map(|dropped| AuditRecord::Dropped { time: 1, dropped }).collect()
    }

    /// The numbers of the lines, each of which is JSON.
    fn numbers(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        let number = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["dropped"].as_u64().unwrap()
        };
        text.lines().map(number).collect()
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("mcp-resources-audit-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    // S-19, S-20: a file that has grown to its size is moved away, and as many stay as were asked for.
    #[test]
    fn a_file_is_rotated_by_its_size() {
        let folder = folder("rotated");
        let path = folder.join("log");
        let older = |number: u32| folder.join(format!("log.{number}"));
        let rotation = AuditRotation { max_bytes: 1, keep: 2 };
        let mut file = AuditFile::open(&path).unwrap().rotated(rotation);
        for count in 1..=4 {
            file.take(&entries(count)).unwrap();
        }
        assert_eq!(numbers(&path), [1, 2, 3, 4]);
        assert_eq!((numbers(&older(1)), numbers(&older(2))), (vec![1, 2, 3], vec![1, 2]));
        assert!(!older(3).exists());
        file.rotation = Some(AuditRotation { max_bytes: 1, keep: 0 });
        file.take(&entries(1)).unwrap();
        assert_eq!((numbers(&path), numbers(&older(1))), (vec![1], vec![1, 2, 3]));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    // S-19: what was written in part is taken back, so that every line is JSON.
    #[test]
    fn a_write_that_fails_leaves_no_part_of_a_line() {
        let folder = folder("torn");
        let path = folder.join("log");
        let mut file = AuditFile::open(&path).unwrap();
        file.take(&entries(2)).unwrap();
        let whole = std::fs::metadata(&path).unwrap().len();
        // As a full disk leaves it: half of what was to be written.
        entries(3).iter().for_each(|entry| entry.write_line(&mut file.lines));
        file.lines.drain(..usize::try_from(whole).unwrap());
        let half = file.lines.len() / 2;
        (&*file.file).write_all(&file.lines[..half]).unwrap();
        assert!(file.take_back(half + 1).is_err());
        file.take_back(half).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole);
        file.take(&entries(1)).unwrap();
        assert_eq!(numbers(&path), [1, 2, 1]);
        // Another process has appended since: nothing is taken back.
        (&*file.file).write_all(b"{").unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"x\n").unwrap();
        file.lines = b"{".to_vec();
        assert!(file.take_back(1).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    // S-19: a line that a killed process left is ended first.
    #[test]
    fn a_torn_line_of_another_process_is_ended() {
        let folder = folder("killed");
        let path = folder.join("log");
        std::fs::write(&path, "{\"tim").unwrap();
        AuditFile::open(&path).unwrap().take(&entries(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("{\"tim\n{") && text.lines().count() == 2, "{text}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    // S-19: records go to the file at the path, whatever happened to the one before.
    #[test]
    fn a_file_that_is_moved_or_deleted_is_made_again() {
        let folder = folder("moved");
        let path = folder.join("log");
        let old = folder.join("log.1");
        let mut file = AuditFile::open(&path).unwrap();
        file.take(&entries(1)).unwrap();
        std::fs::rename(&path, &old).unwrap();
        file.take(&entries(2)).unwrap();
        assert_eq!((numbers(&old), numbers(&path)), (vec![1], vec![1, 2]));
        std::fs::remove_file(&path).unwrap();
        file.take(&entries(1)).unwrap();
        assert_eq!(numbers(&path), [1]);
        std::fs::rename(&old, &path).unwrap();
        file.take(&entries(2)).unwrap();
        assert_eq!(numbers(&path), [1, 1, 2]);
        // Nothing can be made there: the old file is used further.
        std::fs::rename(&path, &old).unwrap();
        std::fs::create_dir(&path).unwrap();
        file.take(&entries(1)).unwrap();
        assert_eq!(numbers(&old), [1, 1, 2, 1]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    // S-19: opening a pipe does not wait for its reader.
    #[test]
    fn a_pipe_needs_a_reader() {
        let folder = folder("pipe");
        let path = folder.join("log");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = AuditFile::open(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("it is a pipe that no process reads; start its reader first, or name a file"),
            "{error}"
        );
        let mut options = OpenOptions::new();
        let reader = without_waiting(options.read(true)).open(&path).unwrap();
        AuditFile::open(&path).unwrap().take(&entries(1)).unwrap();
        let mut line = Vec::new();
        io::Read::read_to_end(&mut io::BufReader::new(reader), &mut line).unwrap();
        assert!(line.ends_with(b"\"dropped\":1}\n"), "{line:?}");
        assert!(AuditFile::open(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
