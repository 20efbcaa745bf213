//! Where the records of requests go: to a file, or to a function, on a thread of its own (S-19).
//!
//! Law: whoever serves a request never waits for a sink. What a slow or broken one misses is counted, and told to it when it
//! works again. Rotation is left to the platform: the file is opened once.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a host module: a file, a thread, and standard error where the file fails"
)]

use crate::engine::Engine;
use crate::guard::AuditEntry;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long [`AuditLog::flush`] waits at most for a sink that is slow.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes the records of requests. It may block: it has a thread to itself.
pub trait AuditSink: Send + 'static {
    /// Takes some entries, oldest first.
    ///
    /// # Errors
    /// They are lost. The sink is told how many when it works again.
    fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()>;
}

/// A function that is called for each entry.
impl<F: FnMut(&AuditEntry) + Send + 'static> AuditSink for F {
    fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()> {
        entries.iter().for_each(self);
        Ok(())
    }
}

impl AuditSink for Box<dyn AuditSink> {
    fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()> {
        (**self).take(entries)
    }
}

/// A file that gets one JSON object on a line for each entry.
#[derive(Debug)]
pub struct AuditFile {
    file: File,
    lines: Vec<u8>,
    /// A line may have been written in part.
    is_torn: bool,
}

impl AuditFile {
    /// Opens the file for appending. One that is made is readable by its owner alone.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { file: options.open(path)?, lines: Vec::new(), is_torn: false })
    }
}

impl AuditSink for AuditFile {
    fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()> {
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
        entries.iter().for_each(|entry| entry.write_line(&mut self.lines));
        let written = self.file.write_all(&self.lines);
        self.is_torn = written.is_err();
        written
    }
}

/// The thread between an engine and a sink. It ends, after all that was recorded, when this is dropped.
pub struct AuditLog {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Begins to take what `engine` records; it must have been made with
    /// [`Options::audit`](crate::engine::Options::audit).
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(engine: Arc<Engine>, sink: impl AuditSink) -> io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let worker = Worker { engine, sink, bell: bell.clone(), missed: 0 };
        let thread = std::thread::Builder::new().name("mcp-audit".into()).spawn(move || worker.run())?;
        Ok(Self { bell, thread: Some(thread) })
    }

    /// Waits until the sink has taken all that is recorded now; a second at most.
    pub fn flush(&self) {
        let mut state = self.bell.lock();
        state.asked += 1;
        let asked = state.asked;
        self.bell.change.notify_all();
        let waits = |state: &mut State| state.done < asked && !state.gone;
        drop(self.bell.change.wait_timeout_while(state, PATIENCE, waits));
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.flush();
        self.bell.lock().closed = true;
        self.bell.change.notify_all();
        // One that is inside a sink that hangs is left there.
        if let Some(thread) = self.thread.take().filter(|thread| thread.is_finished() || self.bell.is_idle())
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

/// What the thread waits for.
#[derive(Default)]
struct Bell {
    state: Mutex<State>,
    change: Condvar,
}

#[derive(Default)]
struct State {
    rung: bool,
    closed: bool,
    /// The thread is inside no sink.
    idle: bool,
    gone: bool,
    /// How often a flush was asked for, and how many are done.
    asked: u64,
    done: u64,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        self.lock().idle
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.lock().rung = true;
        self.change.notify_all();
    }
}

struct Worker<S> {
    engine: Arc<Engine>,
    sink: S,
    bell: Arc<Bell>,
    /// How many entries the sink could not take.
    missed: u64,
}

impl<S: AuditSink> Worker<S> {
    fn run(mut self) {
        let waker = Waker::from(self.bell.clone());
        let (mut entries, mut asked) = (Vec::new(), 0);
        loop {
            self.engine.watch_records(&waker);
            self.engine.take_records(&mut entries);
            if !entries.is_empty() {
                self.pass_on(&mut entries);
                continue;
            }
            let mut state = self.bell.lock();
            state.done = asked;
            state.idle = true;
            self.bell.change.notify_all();
            let waits = |state: &mut State| !state.rung && !state.closed && state.asked == asked;
            let mut state = self.bell.change.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            asked = state.asked;
            if state.closed && !state.rung {
                state.gone = true;
                return;
            }
            (state.rung, state.idle) = (false, false);
        }
    }

    fn pass_on(&mut self, entries: &mut Vec<AuditEntry>) {
        if self.missed > 0 {
            let time = entries.iter().map(AuditEntry::time).min().unwrap_or_default();
            entries.insert(0, AuditEntry::Dropped { time, dropped: self.missed });
        }
        match self.sink.take(entries) {
            Ok(()) => self.missed = 0,
            Err(error) => self.failed(&error, entries),
        }
        entries.clear();
    }

    fn failed(&mut self, error: &io::Error, entries: &[AuditEntry]) {
        if self.missed == 0 {
            eprintln!("mcp-resources: the audit log cannot be written: {error}");
        }
        let lost = entries.iter().filter(|entry| matches!(entry, AuditEntry::Request(_))).count() as u64;
        let told = entries.iter().map(|entry| match entry {
            AuditEntry::Request(_) => 1,
            AuditEntry::Dropped { dropped, .. } => *dropped,
        });
        self.missed = told.sum();
        self.engine.lose_records(lost);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test looks at the file")]
mod tests {
    use super::*;
    use crate::catalog::{Edit, Source};
    use crate::connection::{Arrival, Connection, Peer};
    use crate::engine::{Options, ServerInfo};
    use crate::now::Now;
    use crate::principal::Principal;
    use crate::resource::Resource;
    use std::sync::mpsc::channel;

    fn engine() -> Arc<Engine> {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let mut options = Options { audit: true, metrics: true, ..Options::default() };
        options.limits.audit_queue = 10;
        let engine = Engine::new(info, options).unwrap();
        let source = Source::Text("secret contents".into());
        let edit = Edit::AddResource { resource: Resource::new("test://a"), source };
        engine.publish(vec![edit], Now::default(), &mut Vec::new()).unwrap();
        engine
    }

    fn read(connection: &mut Connection, id: u32) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"test://a","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let arrival =
            Arrival { message: message.as_bytes(), principal: &Principal::new("alice"), mirror: None };
        let _ = connection.message(arrival, Now::default(), &mut Vec::new());
    }

    /// S-19: lines of JSON, appended, without contents, in a file for its owner alone.
    #[test]
    fn a_file() {
        let path = std::env::temp_dir().join(format!("mcp-resources-audit-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let engine = engine();
        let mut connection = engine.connect(Peer::Stdio);
        for round in 1..=2 {
            let log = AuditLog::start(engine.clone(), AuditFile::open(&path).unwrap()).unwrap();
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

    /// S-19: a sink that is slow holds nobody up; what it misses is counted and told in its place.
    #[test]
    fn a_slow_sink_misses_the_newest() {
        let engine = engine();
        let mut connection = engine.connect(Peer::Stdio);
        let ((begun, begins), (go, goes), (tell, told)) = (channel(), channel::<()>(), channel());
        let sink = move |entry: &AuditEntry| {
            let _ = begun.send(());
            let _ = goes.recv();
            let _ = tell.send(entry.clone());
        };
        let log = AuditLog::start(engine.clone(), sink).unwrap();
        read(&mut connection, 1);
        begins.recv().unwrap();
        for id in 2..=31 {
            read(&mut connection, id);
        }
        drop(go);
        drop(log);
        let entries: Vec<_> = told.iter().collect();
        assert_eq!(entries.len(), 12);
        assert!(matches!(entries.last(), Some(AuditEntry::Dropped { dropped: 20, .. })), "{entries:?}");
        assert!(engine.metrics_text().unwrap().contains("\nmcp_resources_audit_dropped_total 20\n"));
    }

    /// What could not be written is told once it can be.
    #[test]
    fn a_sink_that_fails() {
        struct Broken(u32, std::sync::mpsc::Sender<AuditEntry>);
        impl AuditSink for Broken {
            fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()> {
                self.0 += 1;
                if self.0 < 3 {
                    return Err(io::Error::other("full"));
                }
                entries.iter().for_each(|entry| self.1.send(entry.clone()).unwrap());
                Ok(())
            }
        }
        let (tell, told) = channel();
        let engine = engine();
        let mut connection = engine.connect(Peer::Stdio);
        let log = AuditLog::start(engine.clone(), Broken(0, tell)).unwrap();
        for id in 1..=3 {
            read(&mut connection, id);
            log.flush();
        }
        drop(log);
        let entries: Vec<_> = told.iter().collect();
        assert!(matches!(entries[..], [AuditEntry::Dropped { dropped: 2, .. }, AuditEntry::Request(_)]));
        assert!(engine.metrics_text().unwrap().contains("\nmcp_resources_audit_dropped_total 2\n"));
    }
}
