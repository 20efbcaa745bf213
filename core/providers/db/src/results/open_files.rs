//! Checks whether the files of an open SQLite database were removed or replaced.
//!
//! Law: SQLite finds the log of a database by its name. So the log of a file that is gone must not stay where another file would
//! take it for its own, and the log of another file must not be removed when a connection to the one that is gone is closed.

use mcp_resources_provider_kit::file_id::FileId;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::ffi::OsString;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The database, its log, and the index of the log.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];

/// Identifies the open files.
#[derive(Debug)]
pub(super) struct OpenFiles {
    path: PathBuf,
    ids: [Option<FileId>; 3],
}

impl OpenFiles {
    /// Those that belong to a path now.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.into(), ids: ENDS.map(|end| identify(&with_end(path, end))) }
    }

    /// Whether the database at a path is this one.
    pub(super) fn are_at(&self, path: &Path) -> bool {
        self.ids.first() == Some(&identify(path))
    }

    /// Removes the log and its index of a database that is no longer there. Those of another database stay.
    pub(super) fn remove_leftovers(&self, path: &Path) {
        for (end, id) in ENDS.iter().zip(&self.ids).skip(1) {
            let file = with_end(path, end);
            if id.is_some() && identify(&file) == *id {
                // If it stays, opening the database finds that it does not fit.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// A connection is about to be closed: the files at the path stay as they are if they are of another database.
    pub(super) fn let_be(&self, connection: &Connection) {
        if !self.are_at(&self.path) {
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// Makes the file, for this user alone: results may be private.
pub(super) fn create(file: &Path) -> Result<(), String> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err("cannot be made: its directory does not exist; create that, or name another file".into())
        }
        Err(error) => Err(format!("cannot be made: {error}; name another file")),
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(end);
    name.into()
}

fn identify(file: &Path) -> Option<FileId> {
    std::fs::metadata(file).ok().as_ref().map(FileId::from)
}
