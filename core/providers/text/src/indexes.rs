//! The search indexes of a provider: one for each declaration, in memory or in a file.
//!
//! ```text
//!   option `index` ──▶ IndexFile, which what was declared together shares ──▶ Indexes of a process: open ──▶ Index
//! ```
//!
//! Law: no lock is taken while that of an index is held. A file that another process has open leaves this one with an index in
//! memory, and the log says so.

use crate::search::Index;
use mcp_resources_engine::option::{OptionError, PathStep};
use mcp_resources_runtime::sync::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The location of an index: a file, or memory.
#[derive(Debug)]
pub struct IndexFile(Option<PathBuf>);

/// The indexes of one process.
#[derive(Debug)]
pub struct Indexes(Vec<(Arc<IndexFile>, Mutex<Option<Index>>)>);

impl IndexFile {
    /// An index in memory if there is no `file`. `kind` is the provider's, for the message.
    ///
    /// # Errors
    /// The file is something else than an index, or cannot be made.
    pub fn new(kind: &str, file: Option<PathBuf>) -> Result<Arc<Self>, OptionError> {
        if let Some((file, reason)) = file.as_deref().and_then(|file| Some((file, Index::refuses(file)?))) {
            let reason = format!("{kind}: the index {} {reason}", file.display());
            return Err(OptionError::sentence(reason).under(PathStep::Name("index".into())));
        }
        Ok(Arc::new(Self(file)))
    }

    /// # Errors
    /// `other` is that of another declaration, and the same file.
    pub fn is_beside(self: &Arc<Self>, kind: &str, other: &Arc<Self>) -> Result<(), OptionError> {
        match &self.0 {
            Some(file) if !Arc::ptr_eq(self, other) && self.0 == other.0 => {
                let file = file.display();
                let reason = format!("{kind}: two declarations have the index {file}; give each its own");
                Err(OptionError::sentence(reason))
            }
            _ => Ok(()),
        }
    }

    fn open(&self, log: &dyn Fn(&str)) -> Option<Index> {
        let opened = match &self.0 {
            None => Index::memory().map(|index| (index, None)),
            Some(file) => Index::file(file).or_else(|error| in_memory(file, &error)),
        };
        match opened {
            Ok((index, said)) => {
                said.iter().for_each(|what| log(what));
                Some(index)
            }
            Err(error) => {
                log(&format!("there is no search index: {error}"));
                None
            }
        }
    }
}

fn in_memory(file: &Path, error: &rusqlite::Error) -> Result<(Index, Option<String>), rusqlite::Error> {
    let what = format!("the index {} cannot be used: {error}; it is in memory for now", file.display());
    Index::memory().map(|index| (index, Some(what)))
}

impl Indexes {
    /// Indexes of these files, none of them open yet.
    pub fn new<'i>(files: impl Iterator<Item = &'i Arc<IndexFile>>) -> Self {
        let mut all: Vec<(Arc<IndexFile>, Mutex<Option<Index>>)> = Vec::new();
        for file in files {
            if !all.iter().any(|(other, _)| Arc::ptr_eq(other, file)) {
                all.push((file.clone(), Mutex::new(None)));
            }
        }
        Self(all)
    }

    /// Opens an index if it is closed, and removes the texts that belong to none of `names`.
    pub fn open(&self, file: &Arc<IndexFile>, names: &[&str], log: &dyn Fn(&str)) {
        let Some(place) = self.place(file) else { return };
        let mut place = place.lock();
        if place.is_none() {
            *place = file.open(log);
            if let Some(index) = &mut *place {
                let _ = index.keep(names);
            }
        }
    }

    /// Asks one; `None` if it is not open.
    pub fn with<T>(&self, file: &Arc<IndexFile>, ask: impl FnOnce(&mut Index) -> T) -> Option<T> {
        self.place(file)?.lock().as_mut().map(ask)
    }

    /// Closes all indexes.
    pub fn close(&self) {
        for (_, index) in &self.0 {
            *index.lock() = None;
        }
    }

    fn place(&self, file: &Arc<IndexFile>) -> Option<&Mutex<Option<Index>>> {
        self.0.iter().find(|(other, _)| Arc::ptr_eq(other, file)).map(|(_, index)| index)
    }
}
