//! A server's process: pinned to this one's core, watched, and asked of the kernel what it has used.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longest life of one server: a measurement that hangs ends with an error.
const LIFE: Duration = Duration::from_secs(120);

/// Keeps this process, and every server that it starts, on the last core it may use.
pub(crate) fn pin_to_one_core() -> Result<(), Box<dyn Error>> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let last = (0..CpuSet::count()).rev().find(|core| allowed.is_set(*core).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(last.ok_or("no core to run on")?)?;
    Ok(sched_setaffinity(this, &one)?)
}

/// How a server is started.
#[derive(Clone)]
pub(crate) struct Launch {
    /// The program and its arguments; `PORT` among them stands for the port.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where its standard error goes; this process's own if nowhere.
    pub(crate) log: Option<String>,
}

/// A running server. It is killed when dropped.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    clock: ClockId,
    _watchdog: Sender<()>,
}

impl Server {
    /// Starts a server; `port` is put in where its command has `PORT`.
    pub(crate) fn start(launch: &Launch, port: Option<u16>) -> Result<Self, Box<dyn Error>> {
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        let mut words = launch.command.iter().map(|word| if word == "PORT" { &port } else { word });
        let errors = match &launch.log {
            Some(path) => Stdio::from(OpenOptions::new().create(true).append(true).open(path)?),
            None => Stdio::inherit(),
        };
        let mut child = Command::new(words.next().ok_or("no command")?)
            .args(words)
            .envs(launch.environment.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no pipe")?;
        Ok(Self { input, output, clock: clock_getcpuclockid(pid)?, _watchdog: watchdog(pid), child })
    }

    /// Writes all of `bytes`, in one write if the pipe takes it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Appends what the server has written; waits for something.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Box<dyn Error>> {
        match self.output.read(buffer)? {
            0 => Err(self.obituary().into()),
            read => Ok(read),
        }
    }

    /// The processor time of all its threads and of the processes that it has started, user and system, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> Result<u64, Box<dyn Error>> {
        let mut all = nanoseconds(self.clock)?;
        for child in children(self.child.id()) {
            all += nanoseconds(clock_getcpuclockid(child)?)?;
        }
        Ok(all)
    }

    /// The memory that it holds, in bytes.
    pub(crate) fn resident(&self) -> Result<u64, Box<dyn Error>> {
        self.memory("smaps_rollup", "Rss:")
    }

    /// The most memory that it has held, in bytes.
    pub(crate) fn peak(&self) -> Result<u64, Box<dyn Error>> {
        self.memory("status", "VmHWM:")
    }

    fn memory(&self, file: &str, line: &str) -> Result<u64, Box<dyn Error>> {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?;
        let kib = text.lines().find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("no memory figure")?.trim().parse::<u64>()? * 1_024)
    }

    /// Why there is no server any longer, if there is none.
    pub(crate) fn ended(&mut self) -> std::io::Result<Option<String>> {
        let status = self.child.try_wait()?;
        Ok(status.map(|_| self.obituary()))
    }

    fn obituary(&mut self) -> String {
        self.input = None;
        match self.child.wait() {
            Ok(status) => format!("the server ended: {status}"),
            Err(error) => format!("the server ended: {error}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nanoseconds(clock: ClockId) -> Result<u64, Box<dyn Error>> {
    let time = clock_gettime(clock)?;
    Ok(u64::try_from(time.tv_sec())? * 1_000_000_000 + u64::try_from(time.tv_nsec())?)
}

/// The processes that a process has started and that run now.
fn children(process: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let text =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let lists: String = tasks.map(text).collect();
    lists.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

/// Kills the server when its life is over, unless the returned sender is dropped before.
fn watchdog(pid: Pid) -> Sender<()> {
    let (sender, receiver) = channel::<()>();
    std::thread::spawn(move || {
        if receiver.recv_timeout(LIFE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    sender
}
