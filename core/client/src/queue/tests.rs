mod direct;

use super::*;
use mcp_resources_engine::option::{FromOption, OptionValue};
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Generous, because it only limits how long a failing test hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// A queue whose server never answers, the other end of the pipe, and a receiver for its calls of `notify`.
fn queue(options: Vec<(String, OptionValue)>) -> (ClientQueue, OwnedFd, Receiver<()>) {
    let (sender, notified) = channel();
    let notify = move || {
        // Fails if the test is over.
        let _ = sender.send(());
    };
    let (queue, far) = ClientQueue::open(settings(options), crate::runtime().unwrap(), notify).unwrap();
    (queue, far.unwrap(), notified)
}

fn settings(options: Vec<(String, OptionValue)>) -> ClientSettings {
    ClientSettings::from_option(OptionValue::Members(options)).unwrap()
}

fn failed(events: &[(u64, ClientEvent)], call: u64) -> &'static str {
    match events {
        [(number, ClientEvent::Failed(error))] if *number == call => error.kind(),
        other => panic!("{other:?}"),
    }
}

// S-14: every call ends with an event under its number, however it ends.
#[test]
fn each_call_ends_once() {
    let (queue, far, notified) = queue(Vec::new());
    queue.read(7, "a:b".into(), false, QueuedCallOptions::default());
    queue.cancel(7);
    notified.recv_timeout(DEADLINE).unwrap();
    assert_eq!(failed(&queue.take(), 7), "cancelled");
    queue.read(9, "a:b".into(), true, QueuedCallOptions::default());
    drop(far);
    notified.recv_timeout(DEADLINE).unwrap();
    assert_eq!(failed(&queue.take(), 9), "unreachable");
    assert!(locked(&queue.calls).is_empty());
}

/// A stream that was never opened is closed with the client, although the client is still there.
#[test]
fn an_unused_stream_is_closed() {
    let (queue, far, notified) = queue(Vec::new());
    queue.close(1);
    notified.recv_timeout(DEADLINE).unwrap();
    assert!(matches!(queue.take()[..], [(1, ClientEvent::Done)]));
    let mut far = std::os::unix::net::UnixStream::from(far);
    far.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
}

/// A loop that takes nothing does not use unlimited memory for droppable events; ends of calls are kept.
#[test]
fn droppable_events_are_limited() {
    let (queue, _far, _rings) = queue(Vec::new());
    for _ in 0..2 * MOST_WAITING {
        queue.table.put(0, ClientEvent::Note("server".into(), "a note".into()));
    }
    queue.table.put(1, ClientEvent::Done);
    let events = queue.take();
    assert_eq!(events.len(), MOST_WAITING + 1);
    assert!(matches!(events.last(), Some((1, ClientEvent::Done))));
}

// S-10: the error about a wrong option names it, and what is allowed.
#[test]
fn a_wrong_option_is_named() {
    let set = |name: &str, value: OptionValue| {
        let settings = ClientSettings::from_option(OptionValue::Members(vec![(name.into(), value)]));
        settings.map(drop).map_err(|error| error.to_string())
    };
    let error = set("revision", "2020-01-01".into()).unwrap_err();
    assert!(error.starts_with("\"2020-01-01\" is no revision"), "{error}");
    let error = set("resource", "a:b".into()).unwrap_err();
    assert!(error.contains("did you mean \"resources\"?"), "{error}");
    assert!(set("cwd", OptionValue::Bytes(b"/\xff".to_vec())).is_ok());
}
