use super::*;
use crate::transport::http::RequestInbox;
use crate::transport::{EventHandler, Peer};
use mcp_resources_engine::catalog::{Edit, ItemSource};
use mcp_resources_engine::connection::{Answer, Contents, Event, RequestToken};
use mcp_resources_engine::engine::{EngineOptions, ServerInfo};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::resource::Resource;
use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

/// A loop that records its steps. `JS`: it drains and defers like that of Node.
#[derive(Default)]
struct Loop<const JS: bool> {
    steps: RefCell<Vec<PumpStep>>,
    asked: RefCell<Vec<RequestToken>>,
}

impl<const JS: bool> Loop<JS> {
    fn steps(&self) -> Vec<PumpStep> {
        self.steps.take()
    }
}

impl<const JS: bool> EventLoop for Loop<JS> {
    type Error = Infallible;
    const DRAINS: bool = JS;
    const DEFERS: bool = JS;

    fn drive(&self, step: PumpStep) -> Result<(), Infallible> {
        // Deadlines are covered by other tests.
        if !matches!(step, PumpStep::Alarm(_)) {
            self.steps.borrow_mut().push(step);
        }
        Ok(())
    }

    fn handle(&self, events: Events<'_>) -> Result<(), Infallible> {
        self.asked.borrow_mut().extend(events.iter().filter_map(Event::asks));
        Ok(())
    }

    fn misused(&self, _what: String) -> Result<(), Infallible> {
        Ok(())
    }

    fn delivering<R>(&self, change: impl FnOnce() -> R) -> Result<R, Infallible> {
        Ok(change())
    }
}

/// Counts how often the loop is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// `test://text` is a text of `size` bytes; `test://function` has a handler.
fn engine(size: usize, output: usize) -> Arc<Engine> {
    let mut options = EngineOptions::default();
    options.limits.output = output;
    let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, options).unwrap();
    let text = ItemSource::Text("x".repeat(size).into());
    let edits = vec![
        Edit::AddResource { resource: Resource::new("test://text"), source: text },
        Edit::AddResource { resource: Resource::new("test://function"), source: ItemSource::Handler(7) },
    ];
    engine.publish(edits, Now::default()).unwrap();
    engine
}

fn pump(engine: &Arc<Engine>, stdio: Option<Stdio>) -> (Arc<Pump>, Arc<Count>) {
    let woken = Arc::new(Count::default());
    (Pump::new(engine, Arc::default(), stdio, true, woken.clone().into()), woken)
}

/// A pump at one end of a socket, and the other end.
fn connected(engine: &Arc<Engine>) -> (Arc<Pump>, Arc<Count>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let stdio = Stdio::new(near.try_clone().unwrap().into(), near.into()).unwrap();
    let (pump, woken) = pump(engine, Some(stdio));
    (pump, woken, far)
}

/// `count` requests with different ids.
fn reads(uri: &str, count: usize) -> Vec<u8> {
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let params = format!(r#"{{"uri":"{uri}","_meta":{{{meta}}}}}"#);
    let line = |id| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/read\",\"params\":{params}}}\n")
    };
    (0..count).map(line).collect::<String>().into()
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn answer(pump: &Pump, token: RequestToken) {
    let contents = Contents::text("seven").into();
    assert!(pump.pipe().respond(token, Answer::Contents(contents)).misuse.is_none());
}

// R-149: a client that writes faster than it reads gets every answer, and the output never exceeds its limit.
#[test]
fn a_client_in_the_same_process_takes_all_answers_though_the_output_was_full() {
    let (pump, _) = pump(&engine(600, 1_000), None);
    let own = Loop::<false>::default();
    pump.feed(&own, &reads("test://text", 5)).unwrap();
    assert_eq!(own.steps(), [PumpStep::Output, PumpStep::Poll { read: false, write: false }]);
    assert!(pump.pipe().pending() < 2_000);
    assert_eq!(lines(&pump.take(&own).unwrap()), 5);
    assert_eq!(own.steps().last(), Some(&PumpStep::Poll { read: true, write: false }));
}

// R-150: the end is reported once, and idleness once the last answer is written.
#[test]
fn the_end_of_input_waits_for_what_is_in_flight() {
    let (pump, _) = pump(&engine(1, 1_000), None);
    let own = Loop::<false>::default();
    pump.feed(&own, &reads("test://function", 1)).unwrap();
    pump.end(&own).unwrap();
    pump.end(&own).unwrap();
    assert_eq!(own.steps(), [PumpStep::Poll { read: false, write: false }, PumpStep::Ended]);
    answer(&pump, own.asked.take()[0]);
    pump.appended(&own).unwrap();
    assert_eq!((own.steps(), pump.take(&own).unwrap().is_empty()), (vec![PumpStep::Output], false));
    pump.writable(&own).unwrap();
    pump.writable(&own).unwrap();
    assert_eq!(own.steps(), [PumpStep::Idle]);
}

/// A loop with a full pipe waits until it is writable, and continues once the client reads.
#[test]
fn a_loop_that_waits_for_room_writes_the_rest_then() {
    let (pump, _, mut far) = connected(&engine(1 << 20, 1 << 21));
    let own = Loop::<false>::default();
    far.write_all(&reads("test://text", 1)).unwrap();
    pump.readable(&own).unwrap();
    assert_eq!(own.steps(), [PumpStep::Poll { read: true, write: true }]);
    let mut taken = Vec::new();
    let mut part = vec![0; 1 << 16];
    while own.steps().is_empty() {
        let count = far.read(&mut part).unwrap();
        taken.extend_from_slice(&part[..count]);
        pump.writable(&own).unwrap();
    }
    far.set_nonblocking(true).unwrap();
    let _ = far.read_to_end(&mut taken);
    assert_eq!((lines(&taken), pump.pipe().pending()), (1, 0));
    drop(far);
    pump.readable(&own).unwrap();
    assert_eq!(own.steps(), [PumpStep::Poll { read: false, write: false }, PumpStep::Idle, PumpStep::Ended]);
}

/// A loop that drains takes the rest once, and nothing is written in parallel before that is done.
#[test]
fn a_loop_that_drains_takes_the_rest_in_order() {
    let (pump, _, mut far) = connected(&engine(1 << 20, 1 << 22));
    let own = Loop::<true>::default();
    pump.feed(&own, &reads("test://text", 1)).unwrap();
    assert_eq!(own.steps(), [PumpStep::Output]);
    pump.feed(&own, &reads("test://text", 1)).unwrap();
    assert_eq!(own.steps(), []);
    let rest = pump.take_part(usize::MAX);
    let reads = std::thread::spawn(move || {
        let mut taken = Vec::new();
        far.read_to_end(&mut taken).unwrap();
        taken
    });
    pump.with_stdio(|stdio| {
        let mut rest = &rest[..];
        while !rest.is_empty() {
            rest = &rest[stdio.write(rest).unwrap()..];
        }
    });
    pump.writable(&own).unwrap();
    assert_eq!((pump.pipe().pending(), own.steps()), (0, vec![]));
    pump.close(&own).unwrap();
    pump.close_stdio();
    assert_eq!(lines(&reads.join().unwrap()), 2);
}

/// Further answers in this turn of the loop are written together with the rest, once.
#[test]
fn a_loop_that_defers_flushes_once_for_the_answers_of_a_turn() {
    let (pump, _) = pump(&engine(1, 1_000), None);
    let own = Loop::<true>::default();
    pump.feed(&own, &reads("test://function", 3)).unwrap();
    assert_eq!(own.steps(), [PumpStep::Flush { settled: true }]);
    let asked = own.asked.take();
    assert_eq!(asked.len(), 3);
    for token in asked {
        answer(&pump, token);
        pump.appended(&own).unwrap();
    }
    assert_eq!(own.steps(), [PumpStep::Output], "the last one is not waited for");
    pump.flush(&own).unwrap();
    assert_eq!(lines(&pump.take(&own).unwrap()), 3);
}

/// Another thread writes without the loop, and wakes it only for work of the loop.
#[test]
fn another_thread_writes_and_wakes_the_loop_for_the_rest() {
    let (pump, woken, mut far) = connected(&engine(1, 1 << 20));
    let own = Loop::<false>::default();
    pump.feed(&own, &reads("test://function", 2)).unwrap();
    let inbox = RequestInbox::<()>::new(None);
    let event_handler: Arc<dyn EventHandler> = Arc::new(PumpHandler::new(&pump, inbox.reach()));
    let peer = Peer::pipe(pump.pipe().clone(), Arc::default(), event_handler);
    let tokens = own.asked.take();
    let answers = |token: RequestToken| {
        let peer = peer.clone();
        std::thread::spawn(move || {
            peer.follow(peer.respond(token, Answer::Contents(Contents::text("seven").into())));
        })
        .join()
        .unwrap();
        woken.0.swap(0, Ordering::SeqCst)
    };
    assert_eq!(answers(tokens[0]), 0);
    let mut taken = [0; 1_024];
    let count = far.read(&mut taken).unwrap();
    assert_eq!(lines(&taken[..count]), 1);
    pump.end(&own).unwrap();
    assert_eq!(answers(tokens[1]), 1, "the loop is to see that it is idle");
    pump.wake(&own).unwrap();
    assert_eq!(own.steps().last(), Some(&PumpStep::Idle));
}

/// A server ends the listens of pipes that still exist.
#[test]
fn a_pipe_that_is_gone_is_not_kept() {
    let serving = ServingRegistry::default();
    let engine = engine(1, 1_000);
    let ([kept, gone], own) = ([(); 2].map(|()| pump(&engine, None).0), Loop::<false>::default());
    [&kept, &gone].iter().for_each(|pump| serving.join(pump.pipe()));
    let weak = Arc::downgrade(gone.pipe());
    drop(gone);
    assert!(weak.upgrade().is_none());
    serving.shutdown();
    serving.leave(kept.pipe().id());
    kept.settle(&own).unwrap();
    assert_eq!(own.steps(), []);
}

/// In front of another server: it gets what is not ours, and input waits while it is full.
#[test]
fn a_server_behind_the_pipe_gets_lines_as_fast_as_it_takes_them() {
    let engine = engine(10, 1_000);
    let server = EmbeddedServer::new(engine, true, Now::default()).unwrap();
    let pump = Pump::before(&server, Arc::default(), None, Waker::noop().clone());
    let own = Loop::<false>::default();
    let notice = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    pump.send(&own, notice).unwrap();
    pump.send(&own, &[&notice[..], b"\n", notice, b"\n"].concat()).unwrap();
    assert_eq!(pump.take(&own).unwrap(), [&notice[..], b"\n"].concat().repeat(3));
    let theirs = reads("app://theirs", MOST_LINES + 1);
    pump.feed(&own, &[theirs.clone(), reads("test://text", 1)].concat()).unwrap();
    let steps = own.steps();
    assert!(steps.contains(&PumpStep::Lines), "{steps:?}");
    assert!(steps.contains(&PumpStep::Poll { read: false, write: false }), "{steps:?}");
    let mut passed = pump.take_lines(&own).unwrap();
    assert_eq!(lines(&passed), MOST_LINES);
    assert!(own.steps().contains(&PumpStep::Lines), "the rest of the input was handled");
    passed.extend(pump.take_lines(&own).unwrap());
    assert_eq!(passed, theirs, "every line as it came");
    assert!(pump.take_lines(&own).unwrap().is_empty());
    assert_eq!(lines(&pump.take(&own).unwrap()), 1, "the read of ours is answered here");
    pump.end(&own).unwrap();
    assert!(!own.steps().contains(&PumpStep::Idle), "the other server has not answered");
    for id in 0..=MOST_LINES {
        pump.send(&own, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).as_bytes()).unwrap();
    }
    pump.take(&own).unwrap();
    pump.writable(&own).unwrap();
    assert_eq!(own.steps().last(), Some(&PumpStep::Idle));
}

/// Large lines for another server count by their bytes.
#[test]
fn a_server_behind_the_pipe_gets_about_a_mebibyte_at_once() {
    let server = EmbeddedServer::new(engine(10, 1_000), true, Now::default()).unwrap();
    let pump = Pump::before(&server, Arc::default(), None, Waker::noop().clone());
    let own = Loop::<false>::default();
    let large = reads(&format!("app://{}", "x".repeat(MOST_LINE_BYTES)), 1);
    pump.feed(&own, &large.repeat(2)).unwrap();
    assert_eq!(pump.take_lines(&own).unwrap(), large);
    assert_eq!(pump.take_lines(&own).unwrap(), large);
}
