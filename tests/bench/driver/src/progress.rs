//! How far the run has come, on standard error: a bar on a terminal, else a line now and then.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

const WIDTH: usize = 30;

/// The run's measurements, done and to come.
pub(crate) struct Progress {
    done: usize,
    all: usize,
    start: Instant,
    on_terminal: bool,
    last_percent: Option<usize>,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let on_terminal = stderr().is_terminal();
        Self { done: 0, all, start: Instant::now(), on_terminal, last_percent: None }
    }

    /// The next measurement begins.
    pub(crate) fn step(&mut self, what: &str) {
        let percent = self.done * 100 / self.all.max(1);
        let left = self.left();
        self.done += 1;
        if self.on_terminal {
            let full = WIDTH * percent / 100;
            let bar = "#".repeat(full) + &" ".repeat(WIDTH - full);
            eprint!("\r\x1b[K[{bar}] {percent:3} %{left}  {what}");
            let _ = stderr().flush();
        } else if self.last_percent != Some(percent) {
            eprintln!("{percent:3} %{left}  {what}");
        }
        self.last_percent = Some(percent);
    }

    /// These measurements are not made.
    pub(crate) fn skip(&mut self, count: usize) {
        self.done += count;
    }

    /// Says something that stays.
    pub(crate) fn note(&self, text: &str) {
        let clear = if self.on_terminal { "\r\x1b[K" } else { "" };
        eprintln!("{clear}{text}");
    }

    pub(crate) fn finish(&self) {
        self.note(&format!("100 %, in {} s", self.start.elapsed().as_secs()));
    }

    /// The time that the rest takes, if it goes on as before.
    fn left(&self) -> String {
        let Ok(done @ 3..) = u32::try_from(self.done) else { return String::new() };
        let each = self.start.elapsed() / done;
        let rest = u32::try_from(self.all.saturating_sub(self.done)).unwrap_or(u32::MAX);
        format!(", {} s left", each.saturating_mul(rest).as_secs())
    }
}
