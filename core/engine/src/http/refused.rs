//! Refusals that an option can change: the messages for the client and for the server's log.
//!
//! Law: text of a client is shortened and quoted wherever it is repeated, and only the server's log names options. The
//! table is limited in size, and the same refusal is logged at most once a minute.

use super::head::{RequestHead, Response};
use crate::connection::{TOO_LARGE, too_large_advice};
use crate::now::{Millis, Now};
use crate::version::INVALID_REQUEST;
use std::sync::{Mutex, PoisonError};

/// Minimum time between two log messages about the same refusal, in ms.
const PAUSE: Millis = 60_000;
/// Number of refusals that are remembered. If all of them are recent, further ones are not logged.
const MOST: usize = 64;
/// Maximum number of characters of a client's text that are repeated.
const LONGEST: usize = 100;

/// The refused value, as the messages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Host(String),
    Origin(String),
    /// With the paths that are served.
    Path(String, String),
    /// Connections above `Limits::connections_per_client`.
    Connections(usize),
    /// A body above `Limits::message`, in bytes.
    Message(usize),
}

/// The refusals that were logged, with their times.
#[derive(Debug, Default)]
pub(super) struct Logged(Mutex<Vec<(Refused, Millis)>>);

impl Refused {
    /// A `Host` header that the rules do not accept.
    pub(super) fn host(value: &[u8]) -> Response {
        let value = shortened(value);
        let message = format!("Host {value} is not allowed: the server's option \"hosts\" does not have it");
        Self::Host(value).response(403, &message)
    }

    /// An `Origin` header that the rules do not accept.
    pub(super) fn origin(value: &[u8]) -> Response {
        let value = shortened(value);
        let message =
            format!("Origin {value} is not allowed: the server's option \"origins\" does not have it");
        Self::Origin(value).response(403, &message)
    }

    /// A path without an endpoint.
    pub(super) fn path(head: &RequestHead<'_>, endpoint: &str) -> Response {
        let value = shortened(format!("{}{}", head.mount, head.path()).as_bytes());
        let served = format!("{}{endpoint}", head.mount);
        let message = format!("Nothing is served at {value}: the endpoint is at {served:?}");
        Self::Path(value, served).response(404, &message)
    }

    /// A body of more than `max` bytes.
    pub(super) fn message(max: usize) -> Response {
        Self::Message(max).response(413, TOO_LARGE)
    }

    fn response(self, status: u16, message: &str) -> Response {
        let mut response = Response::error(status, INVALID_REQUEST, message);
        // Clients request these documents from every server, whether it has them or not.
        let is_routine = matches!(&self, Self::Path(path, _) if path.contains("/.well-known/"));
        response.refused = Some(Box::new(self)).filter(|_| !is_routine);
        response
    }

    fn advice(&self) -> String {
        match self {
            Self::Host(value) => format!(
                "refused a request with the Host header {value}: add it to the option \"hosts\", or set \"*\" there if a \
                 proxy checks it"
            ),
            Self::Origin(value) => format!(
                "refused a request with the Origin header {value}: add it to the option \"origins\" if its pages may ask"
            ),
            Self::Connections(max) => format!(
                "closed a connection at once: its client has {max} others; behind a proxy, raise the limit \
                 \"connections_per_client\""
            ),
            Self::Message(max) => too_large_advice(*max),
            Self::Path(value, served) => format!(
                "nothing is served at the path {value}, which a client asked for: the endpoint is at {served:?}, which \
                 the option \"path\" changes"
            ),
        }
    }
}

impl Logged {
    /// The log message for a response, if any.
    pub(super) fn advice(&self, response: &Response, now: Now) -> Option<String> {
        self.once(response.refused.as_deref()?, now)
    }

    pub(super) fn once(&self, refused: &Refused, now: Now) -> Option<String> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|(_, then)| now.tick.saturating_sub(*then) < PAUSE);
        if logged.len() >= MOST || logged.iter().any(|(own, _)| own == refused) {
            return None;
        }
        logged.push((refused.clone(), now.tick));
        Some(refused.advice())
    }
}

/// A client's text, shortened and quoted.
fn shortened(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut rest = text.chars();
    let mut short: String = rest.by_ref().take(LONGEST).collect();
    if rest.next().is_some() {
        short.push('…');
    }
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: Millis) -> Now {
        Now { tick, unix: 0 }
    }

    // the log names the remedy, at most once a minute for each value.
    #[test]
    fn a_refusal_is_logged_once_a_minute() {
        let logged = Logged::default();
        let refused = Refused::host(b"api.example.com");
        let advice = logged.advice(&refused, at(5)).unwrap();
        assert!(advice.contains("\"api.example.com\"") && advice.contains("\"hosts\""), "{advice}");
        assert_eq!(logged.advice(&refused, at(60_004)), None);
        assert!(logged.advice(&Refused::origin(b"https://a.example"), at(60_004)).is_some());
        assert!(logged.advice(&refused, at(60_005)).is_some());
        let head =
            RequestHead { verb: "GET", target: "/x?secret=1", mount: "/api", ..RequestHead::default() };
        let advice = logged.advice(&Refused::path(&head, "/mcp"), at(60_005)).unwrap();
        assert!(advice.contains("\"/api/x\"") && advice.contains("\"/api/mcp\""), "{advice}");
        assert!(!advice.contains("secret"), "{advice}");
        let routine = RequestHead { verb: "GET", target: "/.well-known/x", ..RequestHead::default() };
        assert_eq!(logged.advice(&Refused::path(&routine, "/mcp"), at(60_005)), None);
    }

    #[test]
    fn a_flood_of_values_has_a_bound() {
        let logged = Logged::default();
        let logged_of = |tick| {
            let flood = (0..1_000).map(|number| Refused::host(format!("h{number}").as_bytes()));
            flood.filter(|refused| logged.advice(refused, at(tick)).is_some()).count()
        };
        assert_eq!((logged_of(0), logged_of(1), logged_of(PAUSE)), (MOST, 0, MOST));
        let long = Refused::host("x\r\n".repeat(1_000).as_bytes());
        assert!(long.body.len() < 1_000 && !long.body.contains(&b'\r'));
    }
}
