//! Reads on the thread of a loop that waits for the server itself. The server is a script for `sed`.

use super::super::*;
use super::{DEADLINE, settings};
use mcp_resources_engine::connection::Body;
use mcp_resources_engine::option::OptionValue;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Answers a read with the URI, except for those that say what goes wrong.
const SCRIPT: &str = r#"
s/.*"id":\([0-9]*\),"method":"initialize".*/{"jsonrpc":"2.0","id":\1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"sed","version":"1"}}}/p
/"a:mute"/d
/"a:die"/q
/"a:flood"/e yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}' | head -n 20000
/"a:long"/{s/.*"id":\([0-9]*\).*/printf '{"jsonrpc":"2.0","id":\1,"result":{"contents":[{"uri":"a:long","text":"'; head -c 1000000 \/dev\/zero | tr '\\0' x; echo '"}]}}'/e;p;d}
s/.*"id":\([0-9]*\),"method":"resources\/read","params":{"uri":"\([^"]*\)".*/{"jsonrpc":"2.0","id":\1,"result":{"contents":[{"uri":"\2","text":"\2"}]}}/p
"#;

/// A queue and a loop for it.
struct Loop {
    queue: ClientQueue,
    pipes: Arc<LoopPipes>,
    wake: PipeReader,
    notified: Receiver<()>,
    events: VecDeque<(u64, ClientEvent)>,
    /// The number of times that the loop has read something of the server's itself.
    pumped: usize,
    calls: u64,
}

impl Loop {
    fn new() -> Self {
        let words = ["sed", "-u", "-n", SCRIPT].map(OptionValue::from).into();
        let options = [("command", OptionValue::List(words)), ("revision", "2025-11-25".into())];
        let (sender, notified) = channel();
        let (wake, writer): (PipeReader, PipeWriter) = pipe().unwrap();
        let notify = move || {
            let _ = (&writer).write_all(&[0]);
            let _ = sender.send(());
        };
        let options = settings(options.map(|(name, value)| (name.to_owned(), value)).into());
        let (queue, _) = ClientQueue::open(options, crate::runtime().unwrap(), notify).unwrap();
        let pipes = queue.pipes(&wake).unwrap();
        Self { queue, pipes, wake, notified, events: VecDeque::new(), pumped: 0, calls: 0 }
    }

    fn ask(&mut self, uri: &str) -> u64 {
        self.calls += 1;
        self.queue.read(self.calls, uri.to_owned(), false, QueuedCallOptions::default());
        self.calls
    }

    /// A turn of the loop.
    fn turn(&mut self) {
        let longest = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.pipes, PollFlags::IN)], Some(&longest)).unwrap();
        assert_eq!(ready, 1, "nothing came");
        if self.queue.pump() {
            self.pumped += 1;
        } else {
            let _ = self.wake.read(&mut [0; 8]);
        }
        self.events.extend(self.queue.take());
    }

    fn next(&mut self) -> (u64, Result<String, &'static str>) {
        while self.events.is_empty() {
            self.turn();
        }
        ended(self.events.pop_front().unwrap())
    }

    fn read(&mut self, uri: &str) -> Result<String, &'static str> {
        let call = self.ask(uri);
        let (number, result) = self.next();
        assert_eq!(number, call);
        result
    }

    /// Reads until the loop gets an answer itself.
    fn lent(&mut self) {
        let (start, before) = (Instant::now(), self.pumped);
        while self.pumped == before {
            assert!(start.elapsed() < DEADLINE, "the output was not lent");
            assert_eq!(self.read("a:b").as_deref(), Ok("a:b"));
        }
    }

    /// The next event for a loop that does not wait for servers.
    fn told(&mut self) -> (u64, Result<String, &'static str>) {
        loop {
            self.events.extend(self.queue.take());
            if let Some(event) = self.events.pop_front() {
                return ended(event);
            }
            self.notified.recv_timeout(DEADLINE).unwrap();
        }
    }
}

fn ended((call, event): (u64, ClientEvent)) -> (u64, Result<String, &'static str>) {
    let result = match event {
        ClientEvent::Failed(error) => Err(error.kind()),
        ClientEvent::Contents(contents) => match &contents[..] {
            [Contents { body: Body::Text(text), .. }] => Ok(text.clone().into_owned()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    (call, result)
}

/// With its answers nothing else is woken.
#[test]
fn a_loop_reads_answers_itself() {
    let mut own = Loop::new();
    own.lent();
    let (before, notices) = (own.pumped, own.notified.try_iter().count());
    assert!(notices > 0);
    let mut quiet = 0;
    for _ in 0..200 {
        let pumped = own.pumped;
        assert_eq!(own.read("a:b").as_deref(), Ok("a:b"));
        quiet += usize::from(own.pumped > pumped && own.notified.try_iter().count() == 0);
    }
    assert!(own.pumped > before && quiet > 0, "{quiet} of 200");
}

/// A loop that is closed or blocked delays no answer for long: another thread reads it.
#[test]
fn what_a_loop_does_not_read_is_read_for_it() {
    let mut own = Loop::new();
    own.lent();
    let call = own.ask("a:c");
    assert_eq!(own.told(), (call, Ok("a:c".into())));
    let elsewhere = std::thread::spawn(move || {
        let call = own.ask("a:d");
        assert_eq!(own.told(), (call, Ok("a:d".into())));
        own.lent();
        own
    });
    let mut own = elsewhere.join().unwrap();
    assert_eq!(own.read("a:e").as_deref(), Ok("a:e"));
}

/// Nothing is lost, neither to a loop that reads nor to one that does not.
#[test]
fn a_flood_hides_no_answer() {
    let mut own = Loop::new();
    own.lent();
    assert_eq!(own.read("a:flood").as_deref(), Ok("a:flood"));
    own.lent();
    let call = own.ask("a:flood");
    assert_eq!(own.told(), (call, Ok("a:flood".into())));
    own.lent();
}

/// A long answer is decoded elsewhere.
#[test]
fn a_long_answer_ends_the_loan() {
    let mut own = Loop::new();
    own.lent();
    assert_eq!(own.read("a:long").map(|text| text.len()), Ok(1_000_000));
    own.lent();
}

/// A call that is taken back ends once, and its place is free again.
#[test]
fn a_direct_call_can_be_taken_back() {
    let mut own = Loop::new();
    own.lent();
    for _ in 0..3 {
        let call = own.ask("a:mute");
        own.queue.cancel(call);
        assert_eq!(own.next(), (call, Err("cancelled")));
        assert!(locked(&own.queue.calls).is_empty());
        own.lent();
    }
    let call = own.ask("a:mute");
    own.queue.close(0);
    assert_eq!(own.next(), (call, Err("cancelled")));
}

/// The read is repeated once on a new connection, and after its end the next one starts the server again.
#[test]
fn a_server_that_dies_is_noticed() {
    let mut own = Loop::new();
    own.lent();
    assert_eq!(own.read("a:die"), Err("unreachable"));
    own.lent();
}
