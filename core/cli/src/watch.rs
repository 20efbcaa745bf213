//! `watch`: prints the contents of resources now and after each change.
//!
//! Law: while the reader of stdout stalls, only the newest line of each URI is kept, and only the writer's thread waits.

use crate::Outcome;
use crate::args::WatchArgs;
use crate::error::Failed;
use crate::output::{self, plain};
use mcp_resources_client::Client;
use mcp_resources_engine::client::{Change, ClientError};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The most URIs with a pending line; a server may also report resources under the watched ones.
const MOST: usize = 10_000;

/// Follows the resources until a signal arrives or the reader closes stdout.
pub(crate) async fn run(args: &WatchArgs, client: &Client) -> Outcome {
    let lines = WatchLines::default();
    let closed = lines.clone().written_by_a_thread()?;
    let follow = async {
        let (sender, mut changes) = mpsc::channel(64);
        let mut uris = args.uri.clone();
        uris.sort_unstable();
        uris.dedup();
        for uri in uris {
            let mut watch = client.watch(&uri);
            let sender = sender.clone();
            tokio::spawn(async move {
                while let Some(change) = watch.next().await {
                    if sender.send((uri.clone(), change)).await.is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut failed = None;
        while let Some((uri, change)) = changes.recv().await {
            match change {
                Ok(change) => lines.put(&change.uri, line(&change, args.json)),
                // The other watches continue.
                Err(error) => {
                    output::say("error", &about(&uri, &error));
                    failed = Some(1);
                }
            }
        }
        failed.unwrap_or(0)
    };
    tokio::select! {
        status = follow => {
            lines.drained().await;
            Ok(status)
        }
        error = closed => Err(error.map_or(Failed::StdoutClosed, Failed::from)),
    }
}

/// The message of a failure, with its URI if the text does not have it.
fn about(uri: &str, error: &ClientError) -> String {
    match error.uri() {
        Some(_) => error.to_string(),
        None => format!("{error} ({uri})"),
    }
}

fn line(change: &Change, is_json: bool) -> String {
    let contents = change.contents.as_deref();
    if is_json {
        let contents = contents.map(|contents| output::contents_json(&change.uri, contents));
        return output::json(&json!({ "uri": change.uri, "contents": contents }).to_string()).into_owned();
    }
    let time = jiff::Zoned::now().strftime("%H:%M:%S");
    let what = contents.map_or_else(|| "gone".to_owned(), |contents| output::size(output::bytes(contents)));
    format!("{time}  {}  {what}", plain(&change.uri))
}

/// The pending lines for stdout: the newest one of each URI.
#[derive(Clone, Default)]
struct WatchLines(Arc<(Mutex<PendingLines>, Condvar)>);

#[derive(Default)]
struct PendingLines {
    order: VecDeque<String>,
    lines: HashMap<String, String>,
    is_writing: bool,
    /// Notified when no line is pending.
    drained: Option<oneshot::Sender<()>>,
}

impl WatchLines {
    /// Replaces the pending line of this URI. If there are too many, the oldest is dropped.
    fn put(&self, uri: &str, line: String) {
        let mut waiting = self.lock();
        if waiting.lines.insert(uri.to_owned(), line).is_none() {
            waiting.order.push_back(uri.to_owned());
            if waiting.order.len() > MOST
                && let Some(oldest) = waiting.order.pop_front()
            {
                waiting.lines.remove(&oldest);
            }
        }
        drop(waiting);
        self.0.1.notify_one();
    }

    /// Ends when everything is written.
    async fn drained(&self) {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if waiting.order.is_empty() && !waiting.is_writing {
                return;
            }
            waiting.drained = Some(sender);
        }
        let _ = receiver.await;
    }

    /// Starts the thread that writes. The receiver gets its error. It ends with the process.
    fn written_by_a_thread(self) -> Result<oneshot::Receiver<io::Error>, Failed> {
        let (sender, receiver) = oneshot::channel();
        let write = move || {
            loop {
                let line = self.next();
                let mut out = io::stdout().lock();
                let written = writeln!(out, "{line}").and_then(|()| out.flush());
                drop(out);
                if let Err(error) = written {
                    // Fails only if the task that waited has ended.
                    let _ = sender.send(error);
                    return;
                }
                self.written();
            }
        };
        let thread = std::thread::Builder::new().name("stdout".into()).spawn(write);
        thread.map(|_| receiver).map_err(|error| Failed::new(format!("no thread can be started: {error}")))
    }

    fn next(&self) -> String {
        let mut waiting = self.lock();
        loop {
            if let Some(line) = waiting.order.pop_front().and_then(|uri| waiting.lines.remove(&uri)) {
                waiting.is_writing = true;
                return line;
            }
            waiting = self.0.1.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn written(&self) {
        let mut waiting = self.lock();
        waiting.is_writing = false;
        if waiting.order.is_empty()
            && let Some(drained) = waiting.drained.take()
        {
            let _ = drained.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingLines> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_of_a_uri_replaces_what_waits() {
        let lines = WatchLines::default();
        for number in 0..3 {
            lines.put("a:1", format!("a{number}"));
            lines.put("a:2", format!("b{number}"));
        }
        assert_eq!((lines.next(), lines.next()), ("a2".to_owned(), "b2".to_owned()));
        for number in 0..=MOST {
            lines.put(&number.to_string(), number.to_string());
        }
        assert_eq!(lines.next(), "1");
        let waiting = lines.lock();
        assert_eq!((waiting.order.len(), waiting.lines.len()), (MOST - 1, MOST - 1));
    }
}
