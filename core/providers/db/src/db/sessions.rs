//! Sessions of databases: for requests, and for the check at the start.
//!
//! ```text
//!  worker ──▶ with: a session of the database's pool ──▶ Session ──▶ sqlite | postgres
//!                     └─ closed with the threads: when they have been idle for a while, and when the provider is unmounted
//! ```
//!
//! Law: one request at a time uses a session.

use super::catalog::{DbCatalog, some};
use super::options::DbEngine;
use super::pool::PoolThread;
use super::postgres::Postgres;
use super::session::{DbSession, SessionFault};
use super::source::DbSource;
use super::sqlite::Sqlite;
use mcp_resources_engine::connection::Cancelled;
use mcp_resources_engine::option::OptionError;
use std::cell::RefCell;
use std::sync::Arc;

/// Makes a session. It connects with its first use.
pub(super) fn open(source: &Arc<DbSource>) -> Box<dyn DbSession> {
    match source.engine() {
        DbEngine::Sqlite => Box::new(Sqlite::new(source.clone())),
        DbEngine::Postgres => Box::new(Postgres::new(source.clone())),
    }
}

thread_local! {
    /// The pools that this thread has used, which learn of its end.
    static POOLS: RefCell<Vec<PoolThread>> = const { RefCell::new(Vec::new()) };
}

/// Calls `ask` with a session, on a worker of the mount, for a request that may be cancelled.
pub(super) fn with<T>(
    source: &Arc<DbSource>,
    request: Option<Cancelled>,
    ask: impl FnOnce(&mut dyn DbSession) -> Result<T, SessionFault>,
) -> Result<T, SessionFault> {
    POOLS.with_borrow_mut(|pools| {
        if !pools.iter().any(|pool| pool.uses(&source.pool)) {
            pools.push(PoolThread::new(&source.pool));
        }
    });
    let mut pooled = source.pool.take(request.as_ref(), || open(source))?;
    let session = pooled.get()?;
    session.attend(request);
    ask(session)
}

impl DbSource {
    /// Opens the database once to check the declaration, and closes it again.
    ///
    /// # Errors
    /// A file is absent, a table or statement cannot be served, or nothing is declared; or a Postgres server refuses
    /// the user, the password or the name of the database. An unreachable server is not an error here; requests will
    /// fail until it is back.
    pub(super) fn check(self: &Arc<Self>) -> Result<(), OptionError> {
        let wrong =
            |what: &str| Err(OptionError::sentence(format!("db: the database {:?}: {what}", self.name)));
        let is_empty = self.tables.is_empty() && self.views.is_empty();
        let catalog = match self.read_catalog() {
            Ok(catalog) => Some(catalog),
            Err(SessionFault::Down(what)) if self.engine() == DbEngine::Sqlite => return wrong(&what),
            Err(SessionFault::Refused(what)) => return wrong(&what),
            Err(SessionFault::Down(what)) => {
                let _ = self.down.set(what);
                None
            }
            Err(_) => None,
        };
        if is_empty {
            let all = match &catalog {
                Some(catalog) if !catalog.all.is_empty() => format!("; it has {}", some(&catalog.all)),
                _ => String::new(),
            };
            return wrong(&format!(
                "nothing of it is served; name tables: `tables: [NAME]`, or db:NAME=URL,TABLE with the command{all}"
            ));
        }
        match catalog.as_ref().and_then(|catalog| catalog.faults.first()) {
            Some(fault) => wrong(fault),
            None => Ok(()),
        }
    }

    /// Reads the catalog on a thread of its own: the calling thread may be inside a tokio runtime, which forbids another.
    fn read_catalog(self: &Arc<Self>) -> Result<Arc<DbCatalog>, SessionFault> {
        let source = self.clone();
        let ended = || SessionFault::Down("it cannot be opened".into());
        let thread = std::thread::Builder::new().name("mcp-db-check".into());
        let checking = thread.spawn(move || open(&source).catalog()).map_err(|_| ended())?;
        checking.join().map_err(|_| ended())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::options::Database;
    use std::sync::atomic::{AtomicUsize, Ordering};

    // S-20: many threads share as many sessions as are allowed, and the last thread closes them.
    #[test]
    fn sessions_are_shared_up_to_the_limit() {
        let database = Database::new("sqlite:/nonexistent.db").tables(["t"]).connections(2);
        let source = DbSource::new("x".into(), database).unwrap();
        let (used, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _thread = PoolThread::new(&source.pool);
                    for _ in 0..50 {
                        let mut session = source.pool.take(None, || open(&source)).unwrap();
                        most.fetch_max(used.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        session.get().unwrap().attend(None);
                        std::thread::yield_now();
                        used.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(source.pool.counts(), [0, 0, 0]);
    }
}
