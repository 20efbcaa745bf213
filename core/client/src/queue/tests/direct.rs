//! Reads on the thread of a loop that waits for the server itself, or reads from it. The server is a script for `sed`.

use super::super::*;
use super::{DEADLINE, settings};
use mcp_resources_engine::connection::Body;
use mcp_resources_engine::option::OptionValue;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
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
    /// The descriptors that it waits for, unless it reads by itself.
    pipes: Option<Arc<LoopPipes>>,
    /// The loan that it reads by itself.
    lent: Option<(u64, File)>,
    wake: PipeReader,
    notified: Receiver<()>,
    events: VecDeque<(u64, ClientEvent)>,
    /// The number of times that the loop has read something of the server's itself.
    pumped: usize,
    calls: u64,
}

/// Tries a loop of each kind.
fn each(test: fn(Loop)) {
    test(Loop::new(false));
    test(Loop::new(true));
}

impl Loop {
    fn new(reads: bool) -> Self {
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
        let pipes = (!reads).then(|| queue.pipes(&wake).unwrap());
        if reads {
            queue.read_on_loop();
            rustix::io::ioctl_fionbio(&wake, true).unwrap();
        }
        Self { queue, pipes, lent: None, wake, notified, events: VecDeque::new(), pumped: 0, calls: 0 }
    }

    fn ask(&mut self, uri: &str) -> u64 {
        self.calls += 1;
        self.queue.read(self.calls, uri.to_owned(), false, QueuedCallOptions::default());
        self.calls
    }

    /// A turn of the loop.
    fn turn(&mut self) {
        let longest = Timespec { tv_sec: 60, tv_nsec: 0 };
        let wakes = self.pipes.as_ref().map_or(self.wake.as_fd(), |pipes| pipes.as_fd());
        let mut waits = vec![PollFd::from_borrowed_fd(wakes, PollFlags::IN)];
        waits.extend(self.lent.iter().map(|(_, output)| PollFd::new(output, PollFlags::IN)));
        assert_ne!(poll(&mut waits, Some(&longest)).unwrap(), 0, "nothing came");
        let has_output = waits.get(1).is_some_and(|output| !output.revents().is_empty());
        let has_read = if self.pipes.is_some() { self.queue.pump() } else { has_output && self.receive() };
        if has_read {
            self.pumped += 1;
        } else {
            let _ = self.wake.read(&mut [0; 8]);
        }
        self.take();
    }

    /// Reads once what is lent. Returns whether there was anything.
    fn receive(&mut self) -> bool {
        let Some((loan, output)) = &mut self.lent else { return false };
        let mut chunk = vec![0; 64 * 1024];
        let count = output.read(&mut chunk).unwrap();
        match count {
            0 => self.give_back(),
            _ => self.queue.received(*loan, &chunk[..count]),
        }
        count > 0
    }

    fn give_back(&mut self) {
        if let Some((loan, _)) = self.lent.take() {
            self.queue.returned(loan);
        }
    }

    fn take(&mut self) {
        for (number, event) in self.queue.take() {
            match event {
                ClientEvent::Lent(output) => {
                    assert!(self.lent.is_none(), "there is one already");
                    self.lent = Some((number, output.into()));
                }
                ClientEvent::Recalled if self.lent.as_ref().is_some_and(|(loan, _)| *loan == number) => {
                    self.give_back();
                }
                ClientEvent::Recalled => {}
                event => self.events.push_back((number, event)),
            }
        }
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
            self.take();
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
    each(|mut own| {
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
    });
}

/// A loop that is closed or blocked delays no answer for long: another thread reads it.
#[test]
fn what_a_loop_does_not_read_is_read_for_it() {
    each(|mut own| {
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
    });
}

/// Nothing is lost, neither to a loop that reads nor to one that does not.
#[test]
fn a_flood_hides_no_answer() {
    each(|mut own| {
        own.lent();
        assert_eq!(own.read("a:flood").as_deref(), Ok("a:flood"));
        own.lent();
        let call = own.ask("a:flood");
        assert_eq!(own.told(), (call, Ok("a:flood".into())));
        own.lent();
    });
}

/// Several calls at once do not end the loan of a loop that reads by itself.
#[test]
fn a_loop_that_reads_has_the_answers_of_many_calls() {
    let mut own = Loop::new(true);
    // A loop that was not scheduled for long is asked for the loan: then once more.
    for _ in 0..50 {
        own.lent();
        let loan = own.lent.as_ref().map(|(loan, _)| *loan);
        let before = own.pumped;
        let mut calls: Vec<_> = (0..64).map(|_| own.ask("a:b")).collect();
        while !calls.is_empty() {
            let (call, result) = own.next();
            assert_eq!(result.as_deref(), Ok("a:b"));
            calls.retain(|open| *open != call);
        }
        if loan.is_some() && own.lent.as_ref().map(|(loan, _)| *loan) == loan && own.pumped > before {
            return;
        }
    }
    panic!("the loan has ended each time");
}

/// Bytes of a loan that is over go nowhere.
#[test]
fn a_loan_that_is_over_brings_nothing() {
    let mut own = Loop::new(true);
    own.lent();
    let (loan, _) = own.lent.as_ref().unwrap();
    let loan = *loan;
    own.give_back();
    own.lent();
    own.queue.received(loan, b"half of a line");
    own.queue.returned(loan);
    assert_eq!(own.read("a:b").as_deref(), Ok("a:b"));
}

/// A long answer is decoded elsewhere.
#[test]
fn a_long_answer_ends_the_loan() {
    each(|mut own| {
        own.lent();
        assert_eq!(own.read("a:long").map(|text| text.len()), Ok(1_000_000));
        own.lent();
    });
}

/// A call that is taken back ends once, and its place is free again.
#[test]
fn a_direct_call_can_be_taken_back() {
    each(|mut own| {
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
    });
}

/// The read is repeated once on a new connection, and after its end the next one starts the server again.
#[test]
fn a_server_that_dies_is_noticed() {
    each(|mut own| {
        own.lent();
        assert_eq!(own.read("a:die"), Err("unreachable"));
        own.lent();
    });
}
