//! A server that this process has started, with all of its descendants.
//!
//! Law: a thread waits for the child, so that it is reaped even if the runtime ends. Its group is signalled only until
//! the child is reaped, because after that another process may have its number.

use super::guard;
use super::stderr::LastLines;
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum time for a child to exit after its stdin is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program with its arguments and environment.
pub(super) struct ChildProgram<'t> {
    pub(super) program: &'t str,
    pub(super) args: &'t [String],
    pub(super) env: &'t BTreeMap<String, String>,
    pub(super) directory: Option<&'t Path>,
}

/// A child that leads its own process group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Child {
    group: Arc<ProcessGroup>,
    exited: Exited,
}

/// Reports how the child has exited.
#[derive(Clone, Debug)]
pub(super) struct Exited {
    status: watch::Receiver<Option<ExitStatus>>,
    stderr: LastLines,
}

/// The id of the group; `None` once the child is reaped.
#[derive(Debug)]
struct ProcessGroup(Mutex<Option<Pid>>);

impl ChildProgram<'_> {
    /// Starts the program.
    ///
    /// # Errors
    /// The program that cannot be started, the reason, and the remedy.
    pub(super) fn start(&self) -> Result<(Child, ChildStdin, ChildStdout), String> {
        // Started before the child, so that there is never a child without its threads.
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("mcp-child".into());
        thread.spawn(move || reap(&receiver)).map_err(|error| self.failed(&error))?;
        let (stderr, follow) = LastLines::begin().map_err(|error| self.failed(&error))?;
        let mut command = Command::new(self.program);
        command.args(self.args).envs(self.env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(|error| self.failed(&error))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        // The thread waits for this.
        let _ = child.stderr.take().map(|stderr| follow.send(stderr));
        let leader = Pid::from_raw(child.id().cast_signed());
        leader.into_iter().for_each(|leader| guard::report(leader, true));
        let group = Arc::new(ProcessGroup(Mutex::new(leader)));
        let (tell, status) = watch::channel(None);
        // The thread waits for this, and ends only after the child.
        let _ = sender.send((child, group.clone(), tell));
        let child = Child { group, exited: Exited { status, stderr } };
        let (input, output) = pipes.ok_or_else(|| format!("{:?} has no pipes", self.program))?;
        let input = ChildStdin::from_std(input).map_err(|error| self.failed(&error))?;
        let output = ChildStdout::from_std(output).map_err(|error| self.failed(&error))?;
        Ok((child, input, output))
    }

    fn failed(&self, error: &std::io::Error) -> String {
        let program = self.program;
        if let Some(directory) = self.directory.filter(|directory| !directory.is_dir()) {
            let directory = directory.display();
            return format!("{program:?} cannot be started: its directory {directory} is not there");
        }
        let fix = match error.kind() {
            ErrorKind::NotFound => ". Is it installed, and on the PATH?",
            ErrorKind::PermissionDenied => ". Is it a program, and may this user run it?",
            _ => "",
        };
        format!("{program:?} cannot be started: {error}{fix}")
    }
}

impl Child {
    /// Returns a receiver for the child's exit.
    pub(super) fn exited(&self) -> Exited {
        self.exited.clone()
    }

    /// Waits for the child to exit after its stdin is closed; sends SIGTERM 2 s later, and kills it 2 s after that
    ///.
    pub(super) async fn end(mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(PATIENCE, self.exited.wait()).await.is_ok() {
                // Its own messages are passed on before the report about its exit.
                return self.exited.stderr.over().await;
            }
            self.group.signal(signal);
        }
        // A killed child exits at once, unless the system itself hangs.
        let _ = timeout(PATIENCE, self.exited.wait()).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

impl Exited {
    /// Waits for the child to exit, and describes how in a sentence; after a failure with its last lines on stderr.
    pub(super) async fn wait(&mut self) -> String {
        let status = self.status.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        let mut sentence = match status.map(|status| (status.code(), status.signal())) {
            Some((Some(0), _)) => {
                "the server ended with exit status 0: does its program run the server?".into()
            }
            Some((Some(code), _)) => format!("the server ended with exit status {code}"),
            Some((None, Some(signal))) => format!("the server was ended by signal {signal}"),
            _ => return "the server has ended".into(),
        };
        if !status.is_some_and(|status| status.success())
            && let Some(lines) = self.stderr.text().await
        {
            sentence.push_str(": ");
            sentence.push_str(&lines);
        }
        sentence
    }
}

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // Fails if all processes of the group have exited.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills the remaining processes of the group, and clears its id.
    fn finish(&self) {
        if let Some(group) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = kill_process_group(group, Signal::KILL);
            guard::report(group, false);
        }
    }
}

/// The number of bytes written to a child that it has not read yet.
pub(super) fn unread(stdin: &ChildStdin) -> u64 {
    ioctl_fionread(stdin).unwrap_or_default()
}

type ReapJob = (std::process::Child, Arc<ProcessGroup>, watch::Sender<Option<ExitStatus>>);

/// Waits for a child to exit, kills the rest of its group, and reaps it.
fn reap(receiver: &mpsc::Receiver<ReapJob>) {
    let Ok((mut child, group, tell)) = receiver.recv() else { return };
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), unreaped), Err(Errno::INTR)) {}
    }
    group.finish();
    tell.send_replace(child.wait().ok());
}
