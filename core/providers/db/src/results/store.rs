//! The storage of a cache's results.

use super::disk::{Disk, ForeignFile};
use super::entry::{ResultEntry, ResultKey, ResultsError, Summary};
use super::memory::ResultTable;
use super::options::ResultOptions;
use mcp_resources_engine::option::OptionError;

/// In memory, or in a file.
#[derive(Debug)]
pub(super) enum ResultStore {
    Memory(ResultTable),
    Disk(Box<Disk>),
}

/// A value, and the results that expired on the way.
pub(super) struct GoneResult<T> {
    pub(super) gone: Vec<ResultKey>,
    pub(super) rest: T,
}

impl ResultStore {
    pub(super) fn new(options: &ResultOptions) -> Result<Self, OptionError> {
        let Some(file) = &options.file else { return Ok(Self::Memory(ResultTable::new(options.limits()))) };
        let disk = Disk::check(file, options.limits());
        disk.map(|disk| Self::Disk(Box::new(disk)))
            .map_err(|what| OptionError::sentence(format!("results: the file {} {what}", file.display())))
    }

    /// Stores a result, which must not exceed the limit. Returns whether it replaces one, and the results that are
    /// gone.
    pub(super) fn put(
        &mut self,
        key: &ResultKey,
        entry: &ResultEntry,
        now: u64,
    ) -> Result<(bool, Vec<ResultKey>), ResultsError> {
        match self {
            Self::Memory(table) => {
                let mut gone = table.expire(now);
                let (is_replaced, more) = table.put(key.clone(), entry.clone());
                gone.extend(more);
                Ok((is_replaced, gone))
            }
            Self::Disk(disk) => disk.put(key, entry, now),
        }
    }

    /// The result that `principal` sees under an id at `now`, unless `admits` refuses its size.
    pub(super) fn get<E>(
        &mut self,
        id: &str,
        principal: Option<&str>,
        now: u64,
        admits: impl FnOnce(u64) -> Result<(), E>,
    ) -> Result<Option<Result<ResultEntry, E>>, ResultsError> {
        match self {
            Self::Memory(table) => {
                let found = table.get(id, principal, now);
                Ok(found.map(|entry| admits(entry.content.len() as u64).map(|()| entry)))
            }
            Self::Disk(disk) => disk.get(id, principal, now, admits),
        }
    }

    pub(super) fn remove(&mut self, key: &ResultKey, now: u64) -> Result<bool, ResultsError> {
        match self {
            Self::Memory(table) => Ok(table.remove(key, now)),
            Self::Disk(disk) => disk.remove(key, now),
        }
    }

    /// The number of results, after removing the expired ones.
    pub(super) fn len(&mut self, now: u64) -> Result<GoneResult<usize>, ResultsError> {
        let gone = self.expire(now)?;
        let rest = match self {
            Self::Memory(table) => table.len(),
            Self::Disk(disk) => disk.len()?,
        };
        Ok(GoneResult { gone, rest })
    }

    /// Removes expired results.
    pub(super) fn expire(&mut self, now: u64) -> Result<Vec<ResultKey>, ResultsError> {
        match self {
            Self::Memory(table) => Ok(table.expire(now)),
            Self::Disk(disk) => disk.expire(now),
        }
    }

    /// The changes that other processes made since the last call.
    pub(super) fn foreign<'i>(
        &mut self,
        watched: impl Iterator<Item = &'i str>,
    ) -> Result<ForeignFile, ResultsError> {
        match self {
            Self::Memory(_) => Ok(ForeignFile::default()),
            Self::Disk(disk) => disk.foreign(watched),
        }
    }

    /// Visits the results that `principal` sees at `now`, ordered by id, until `each` stops.
    pub(super) fn walk(
        &mut self,
        after: Option<&str>,
        principal: &str,
        now: u64,
        each: &mut dyn FnMut(Summary) -> bool,
    ) -> Result<(), ResultsError> {
        match self {
            Self::Memory(table) => {
                table.walk(after, principal, now, each);
                Ok(())
            }
            Self::Disk(disk) => disk.walk(after, principal, now, each),
        }
    }
}
