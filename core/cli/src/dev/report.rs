//! Lines on stderr while a server is developed.

use super::messages::RelayedMessage;
use crate::output::{self, plain};
use std::time::Duration;

/// The longest URI or name of a line, in characters.
const MOST_ABOUT: usize = 200;

/// A line about the server, with its time.
pub(super) fn say(text: &str) {
    line(&format!("{}  {}", now(), plain(text)));
}

/// A line of what belongs to the one before.
pub(super) fn add(text: &str) {
    line(&format!("          {}", plain(text)));
}

/// A request that was answered: its time, method and URI, and the size of the answer.
pub(super) fn answered(message: &RelayedMessage, time: Duration, bytes: usize, error: Option<i64>) {
    let about: String = message.about.as_deref().unwrap_or_default().chars().take(MOST_ABOUT).collect();
    let space = if about.is_empty() { "" } else { " " };
    let outcome = match error {
        Some(code) => format!("error {code}"),
        None => output::size(bytes as u64),
    };
    say(&format!("{}{space}{about}  {outcome}  {} ms", message.method, time.as_millis()));
}

fn now() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

fn line(text: &str) {
    output::hint(&format!("{text}\n"));
}
