//! W6: one subscriber of many resources, and one update of each, told over the same pipe. W10: a file that changes.
//! W17: a row that does.

use crate::client;
use crate::figures::{Figures, mib};
use crate::files;
use crate::measure::Setting;
use crate::process::{Launch, Server};
use memchr::memmem;
use std::error::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const ACKNOWLEDGED: &[u8] = b"notifications/subscriptions/acknowledged";
const UPDATED: &[u8] = b"notifications/resources/updated";

/// What a server gets after the last acknowledgement.
const SETTLE: Duration = Duration::from_millis(100);

/// What a server gets for a second notification of one change.
const QUIET: Duration = Duration::from_millis(20);

/// Starts the server, subscribes to every resource, and updates one after the other.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut run = WatchingClient::new(launch)?;
    run.subscribe((0..setting.requests).map(|number| format!("bench://sub/{number}")), setting.modern)?;
    // A server may acknowledge before it has written down who listens.
    std::thread::sleep(SETTLE);
    let cpu = run.server.cpu_ns()?;
    let start = Instant::now();
    let mut latencies = Vec::new();
    for number in 0..setting.requests {
        if start.elapsed() > setting.time {
            break;
        }
        latencies.push(u64::try_from(run.update(number, setting.modern)?.as_nanos())?);
    }
    let cpu = run.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    let done = u64::try_from(latencies.len())?;
    Ok(Figures::of_requests(latencies, done, wall, cpu))
}

/// Starts the server, subscribes to the file at `path`, whose URI is `uri`, and changes it time and again: the next time when
/// the server has said all that it has to say of the last.
pub(crate) fn measure_file(
    launch: &Launch,
    path: &Path,
    uri: &str,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    let file = OpenOptions::new().write(true).open(path)?;
    let figures = measure_changes(launch, uri, files::PAGE_URI, setting, |number| {
        let begun = Instant::now();
        file.write_all_at(format!("{number:08}\n").as_bytes(), 0)?;
        Ok(begun)
    });
    // As it was made.
    file.set_len(0)?;
    figures
}

/// The same with `change`, which returns the time from which the notification is late. `other` is a resource that can be read.
pub(crate) fn measure_changes(
    launch: &Launch,
    uri: &str,
    other: &str,
    setting: &Setting,
    mut change: impl FnMut(u64) -> Result<Instant, Box<dyn Error>>,
) -> Result<Figures, Box<dyn Error>> {
    let mut run = WatchingClient::new(launch)?;
    run.subscribe([uri.to_owned()].into_iter(), setting.modern)?;
    std::thread::sleep(SETTLE);
    let cpu = run.server.cpu_ns()?;
    let start = Instant::now();
    let mut latencies = Vec::new();
    for number in 0..setting.requests {
        if start.elapsed() > setting.time {
            break;
        }
        let changed = change(number)?;
        run.until(|incoming| memmem::find(incoming, UPDATED).is_some())?;
        latencies.push(u64::try_from(changed.elapsed().as_nanos())?);
        std::thread::sleep(QUIET);
        run.drain(number + 1_000_000, other, setting.modern)?;
    }
    let cpu = run.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    let done = u64::try_from(latencies.len())?;
    let figures = Figures::of_requests(latencies, done, wall, cpu);
    Ok(figures.with("after_mib", mib(run.server.resident()?)))
}

/// A client that is told of changes.
pub(crate) struct WatchingClient {
    pub(crate) server: Server,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
}

impl WatchingClient {
    pub(crate) fn new(launch: &Launch) -> Result<Self, Box<dyn Error>> {
        Ok(Self { server: Server::start(launch, None)?, incoming: Vec::new(), chunk: vec![0; 1 << 16] })
    }

    /// Subscribes to these resources, with one request or with one for each.
    pub(crate) fn subscribe(
        &mut self,
        uris: impl Iterator<Item = String>,
        modern: bool,
    ) -> Result<(), Box<dyn Error>> {
        let mut request = Vec::new();
        if modern {
            let uris: Vec<String> = uris.collect();
            client::listen_to(&mut request, "0", &uris, false)?;
            return self.listen(request);
        }
        self.server.write(client::INITIALIZE)?;
        self.until(|incoming| has_answer(incoming, 0))?;
        self.server.write(client::INITIALIZED)?;
        for (id, uri) in (1..).zip(uris) {
            request.clear();
            client::subscribe(&mut request, id, &uri)?;
            request.push(b'\n');
            self.server.write(&request)?;
            self.until(|incoming| has_answer(incoming, id))?;
        }
        Ok(())
    }

    /// Sends a `subscriptions/listen`, and waits for its acknowledgement.
    pub(crate) fn listen(&mut self, mut request: Vec<u8>) -> Result<(), Box<dyn Error>> {
        request.push(b'\n');
        self.server.write(&request)?;
        self.until(|incoming| memmem::find(incoming, ACKNOWLEDGED).is_some())
    }

    /// Ends the subscriptions to these resources, each after the answer to the one before.
    pub(crate) fn unsubscribe(&mut self, uris: &[String]) -> Result<(), Box<dyn Error>> {
        let mut request = Vec::new();
        for (id, uri) in (1_000_000..).zip(uris) {
            request.clear();
            client::unsubscribe(&mut request, id, uri)?;
            request.push(b'\n');
            self.server.write(&request)?;
            self.until(|incoming| has_answer(incoming, id))?;
        }
        Ok(())
    }

    /// From the request that makes the change to the notification of it; returns how long that took.
    fn update(&mut self, number: u64, modern: bool) -> Result<Duration, Box<dyn Error>> {
        let told = format!("bench://sub/{number}\"");
        let mut request = Vec::new();
        client::read(&mut request, number + 1_000_000, &format!("bench://touch/{number}"), modern)?;
        let start = Instant::now();
        self.server.write(&request)?;
        let mut heard = None;
        self.until(|incoming| {
            let is_told = memmem::find(incoming, UPDATED).is_some()
                && memmem::find(incoming, told.as_bytes()).is_some();
            if is_told && heard.is_none() {
                heard = Some(start.elapsed());
            }
            is_told && has_answer(incoming, number + 1_000_000)
        })?;
        heard.ok_or_else(|| "no update".into())
    }

    /// Drops what the server has written so far: what comes before the answer to a read.
    fn drain(&mut self, id: u64, uri: &str, modern: bool) -> Result<(), Box<dyn Error>> {
        let mut request = Vec::new();
        client::read(&mut request, id, uri, modern)?;
        self.server.write(&request)?;
        self.until(|incoming| has_answer(incoming, id))
    }

    /// Reads until it holds for what has come, which is then dropped.
    fn until(&mut self, mut holds: impl FnMut(&[u8]) -> bool) -> Result<(), Box<dyn Error>> {
        while !(self.incoming.ends_with(b"\n") && holds(&self.incoming)) {
            if memmem::find(&self.incoming, b"\"error\":").is_some() {
                return Err(client::shown(&self.incoming).into());
            }
            let read = self.server.read(&mut self.chunk)?;
            self.incoming.extend_from_slice(&self.chunk[..read]);
        }
        self.incoming.clear();
        Ok(())
    }
}

/// Whether the answer with this id is among the messages.
fn has_answer(incoming: &[u8], id: u64) -> bool {
    let id = format!("\"id\":{id}");
    memmem::find_iter(incoming, id.as_bytes())
        .any(|at| incoming.get(at + id.len()).is_some_and(|byte| !byte.is_ascii_digit()))
}
