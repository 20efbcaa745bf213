//! Writes audit records to a file, or passes them to a function, on a thread of its own.
//!
//! Law: a request never waits for a sink. Records that a slow or failing sink misses are counted, and the count is
//! passed to it when it works again.
#![expect(clippy::disallowed_macros, reason = "a file, a thread, and standard error where the file fails")]

use super::consumer_signal::ConsumerSignal;
use crate::sync::Mutex;
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::guard::AuditRecord;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::JoinHandle;

/// Takes audit records. It may block, because it has its own thread.
pub trait AuditSink: Send + 'static {
    /// Takes entries, oldest first.
    ///
    /// # Errors
    /// On an error the entries are lost; the sink gets their number when it works again.
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()>;

    /// Makes a second sink to the same destination for a process that is forked from this one; `self` stays with the
    /// parent's thread. Default: none, and a forked process records nothing.
    fn fork(&self) -> Option<Box<dyn AuditSink>> {
        None
    }
}

/// A function that is called for each entry.
impl<F: FnMut(&AuditRecord) + Send + 'static> AuditSink for F {
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
        entries.iter().for_each(self);
        Ok(())
    }
}

impl AuditSink for Box<dyn AuditSink> {
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
        (**self).take(entries)
    }

    fn fork(&self) -> Option<Box<dyn AuditSink>> {
        (**self).fork()
    }
}

/// The thread between an engine and a sink. It starts with the first record, so a process may fork before it serves.
/// When this is dropped, the thread ends after all current records.
///
/// A process forked later has no such thread: it records, flushes and waits for nothing until it calls
/// [`AuditLog::forked`].
pub struct AuditLog {
    signal: Arc<AuditSignal>,
    engine: Arc<Engine>,
    /// The sink for a forked process.
    spare: Mutex<Option<Box<dyn AuditSink>>>,
}

impl AuditLog {
    /// Takes the records of `engine` from now on; the engine must have been made with
    /// [`Options::audit`](mcp_resources_engine::engine::EngineOptions::audit).
    pub fn new(engine: Arc<Engine>, sink: impl AuditSink) -> Self {
        let signal = Arc::new(AuditSignal::default());
        let spare = Mutex::new(sink.fork());
        let worker = AuditWorker { engine: engine.clone(), sink, signal: signal.clone(), missed: 0 };
        *signal.work.lock() = Some(Box::new(move || worker.run()));
        engine.watch_audit_records(&Waker::from(signal.clone()));
        Self { signal, engine, spare }
    }

    /// Makes the log of a process that was just forked from one with `log`. The thread, its sink and its queue belong
    /// to the parent; a new thread starts with the next record. `None` if the sink cannot be [forked](AuditSink::fork).
    #[must_use]
    pub fn forked(log: Self) -> Option<Self> {
        if !log.signal.is_left_behind() {
            return Some(log);
        }
        let engine = log.engine.clone();
        let spare = log.spare.lock().take();
        // The parent's thread may have held one of its locks at the fork, so it is not touched again.
        std::mem::forget(log);
        engine.watch_audit_records(Waker::noop());
        engine.take_audit_records(&mut Vec::new());
        spare.map(|sink| Self::new(engine, sink))
    }

    /// Waits until the sink has taken all current records, but at most one second.
    pub fn flush(&self) {
        let signal = &self.signal;
        if signal.records.has_items() && !signal.is_running() {
            signal.start();
        }
        if signal.is_running() {
            signal.records.flush();
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let signal = &self.signal;
        self.flush();
        signal.records.close();
        // A closure that was never started holds the signal and the engine.
        let unused = signal.work.lock().take();
        drop(unused);
        let Some((thread, process)) = signal.thread.lock().take() else { return };
        if process != std::process::id() {
            // The thread belongs to the parent: it cannot be joined, and its handle must not be dropped.
            std::mem::forget(thread);
        } else if thread.is_finished() || signal.records.is_idle() {
            // A thread inside a sink that hangs is left running.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

/// The signal that the thread waits for; it also starts the thread.
#[derive(Default)]
struct AuditSignal {
    records: Arc<ConsumerSignal>,
    /// The closure for the thread, until the thread is started.
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The thread, and the id of its process.
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
}

impl AuditSignal {
    fn is_running(&self) -> bool {
        self.thread.lock().as_ref().is_some_and(|(_, process)| *process == std::process::id())
    }

    /// Whether the thread belongs to another process. A held lock was held by a thread at the fork.
    fn is_left_behind(&self) -> bool {
        match self.thread.try_lock() {
            Some(thread) => thread.as_ref().is_some_and(|(_, process)| *process != std::process::id()),
            None => true,
        }
    }

    /// Starts the thread, once. If the system has no thread left, the next record and the next flush try again.
    fn start(self: &Arc<Self>) {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return;
        }
        let signal = self.clone();
        // The thread takes the closure itself, so that it is kept if the thread cannot be started.
        let body = move || {
            let work = signal.work.lock().take();
            if let Some(work) = work {
                work();
            }
        };
        let started = std::thread::Builder::new().name("mcp-audit".into()).spawn(body);
        *thread = started.ok().map(|thread| (thread, std::process::id()));
    }
}

impl Wake for AuditSignal {
    fn wake(self: Arc<Self>) {
        self.records.wake_by_ref();
        self.start();
    }
}

struct AuditWorker<S> {
    engine: Arc<Engine>,
    sink: S,
    signal: Arc<AuditSignal>,
    /// The number of entries that the sink could not take.
    missed: u64,
}

impl<S: AuditSink> AuditWorker<S> {
    fn run(mut self) {
        let waker = Waker::from(self.signal.clone());
        let mut entries = Vec::new();
        loop {
            self.engine.watch_audit_records(&waker);
            self.engine.take_audit_records(&mut entries);
            if !entries.is_empty() {
                self.pass_on(&mut entries);
            } else if !self.signal.records.wait() {
                return;
            }
        }
    }

    fn pass_on(&mut self, entries: &mut Vec<AuditRecord>) {
        if self.missed > 0 {
            let time = entries.iter().map(AuditRecord::time).min().unwrap_or_default();
            entries.insert(0, AuditRecord::Dropped { time, dropped: self.missed });
        }
        match self.sink.take(entries) {
            Ok(()) => self.missed = 0,
            Err(error) => self.failed(&error, entries),
        }
        entries.clear();
    }

    fn failed(&mut self, error: &io::Error, entries: &[AuditRecord]) {
        if self.missed == 0 {
            eprintln!("mcp-resources: the audit log cannot be written: {error}");
        }
        let lost = entries.iter().filter(|entry| matches!(entry, AuditRecord::Request(_))).count() as u64;
        let lost_records = entries.iter().map(|entry| match entry {
            AuditRecord::Dropped { dropped, .. } => *dropped,
            _ => 1,
        });
        self.missed = lost_records.sum();
        self.engine.lose_audit_records(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::super::AuditFile;
    use super::*;
    use mcp_resources_engine::catalog::{Edit, ItemSource};
    use mcp_resources_engine::connection::{Arrival, Connection, ConnectionKind};
    use mcp_resources_engine::engine::{EngineOptions, ServerInfo};
    use mcp_resources_engine::now::Now;
    use mcp_resources_engine::principal::Principal;
    use mcp_resources_engine::resource::Resource;
    use std::sync::mpsc::channel;

    fn engine() -> Arc<Engine> {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let mut options = EngineOptions::default();
        options.audit = true;
        options.metrics = true;
        options.limits.audit_queue = 10;
        let engine = Engine::new(info, options).unwrap();
        let source = ItemSource::Text("secret contents".into());
        let edit = Edit::AddResource { resource: Resource::new("test://a"), source };
        engine.publish(vec![edit], Now::default()).unwrap();
        engine
    }

    fn read(connection: &mut Connection, id: u32) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"test://a","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let arrival =
            Arrival { message: message.as_bytes(), principal: &Principal::new("alice"), header_check: None };
        let _ = connection.message(arrival, Now::default(), &mut Vec::new());
    }

    // S-19: lines of JSON, appended, without contents, in a file that only its owner can read.
    #[test]
    fn a_file() {
        let path = std::env::temp_dir().join(format!("mcp-resources-audit-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let engine = engine();
        let mut connection = engine.connect(ConnectionKind::Stdio);
        for round in 1..=2 {
            let log = AuditLog::new(engine.clone(), AuditFile::open(&path).unwrap());
            read(&mut connection, round);
            log.flush();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), round as usize, "{text}");
            drop(log);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with('\n') && !text.contains("secret"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::remove_file(&path).unwrap();
    }

    // S-19: a slow sink delays no request; missed records are counted and reported in their place.
    #[test]
    fn a_slow_sink_misses_the_newest() {
        let engine = engine();
        let mut connection = engine.connect(ConnectionKind::Stdio);
        let ((begun, begins), (go, goes), (sender, receiver)) = (channel(), channel::<()>(), channel());
        let sink = move |entry: &AuditRecord| {
            let _ = begun.send(());
            let _ = goes.recv();
            let _ = sender.send(entry.clone());
        };
        let log = AuditLog::new(engine.clone(), sink);
        read(&mut connection, 1);
        begins.recv().unwrap();
        for id in 2..=31 {
            read(&mut connection, id);
        }
        drop(go);
        drop(log);
        let entries: Vec<_> = receiver.iter().collect();
        assert_eq!(entries.len(), 12);
        assert!(matches!(entries.last(), Some(AuditRecord::Dropped { dropped: 20, .. })), "{entries:?}");
        assert!(engine.metrics_text().unwrap().contains("\nmcp_resources_audit_dropped_total 20\n"));
    }

    /// A process may fork between making a server and serving: the thread starts only with the first record.
    #[test]
    fn the_thread_starts_with_the_first_record() {
        let engine = engine();
        let mut connection = engine.connect(ConnectionKind::Stdio);
        let holders = Arc::strong_count(&engine);
        let (sender, receiver) = channel();
        let log =
            AuditLog::new(engine.clone(), move |entry: &AuditRecord| sender.send(entry.clone()).unwrap());
        log.flush();
        assert!(!log.signal.is_running());
        read(&mut connection, 1);
        assert!(log.signal.is_running());
        log.flush();
        assert_eq!(receiver.try_iter().count(), 1);
        drop(log);
        assert_eq!(Arc::strong_count(&engine), holders);
    }

    /// A log without records does not keep its engine alive.
    #[test]
    fn a_log_without_a_record_keeps_nothing() {
        let engine = engine();
        drop(AuditLog::new(engine.clone(), |_: &AuditRecord| ()));
        assert_eq!(Arc::strong_count(&engine), 1);
    }

    /// Failed writes are reported once writing works again.
    #[test]
    fn a_sink_that_fails() {
        struct Broken(u32, std::sync::mpsc::Sender<AuditRecord>);
        impl AuditSink for Broken {
            fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
                self.0 += 1;
                if self.0 < 3 {
                    return Err(io::Error::other("full"));
                }
                entries.iter().for_each(|entry| self.1.send(entry.clone()).unwrap());
                Ok(())
            }
        }
        let (sender, receiver) = channel();
        let engine = engine();
        let mut connection = engine.connect(ConnectionKind::Stdio);
        let log = AuditLog::new(engine.clone(), Broken(0, sender));
        for id in 1..=3 {
            read(&mut connection, id);
            log.flush();
        }
        drop(log);
        let entries: Vec<_> = receiver.iter().collect();
        assert!(matches!(entries[..], [AuditRecord::Dropped { dropped: 2, .. }, AuditRecord::Request(_)]));
        assert!(engine.metrics_text().unwrap().contains("\nmcp_resources_audit_dropped_total 2\n"));
    }
}
