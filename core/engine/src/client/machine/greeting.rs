//! Which era a server speaks (R-025, R-026, R-035 … ).
//!
//! A modern server answers `server/discover`; another refuses it, says nothing, or breaks the connection. The older
//! handshake follows a refusal at once and silence after a while, and opens the next connection after a break.

use super::super::decode::{refused, text};
use super::{Effects, Machine, Phase, Purpose, Timer};
use crate::client::{ClientError, Effect, Failure, Lost, NotCarried, ServerAbout};
use crate::jsonrpc::{Json, Members, object};
use crate::meta;
use crate::now::Now;
use crate::version::{self, Revision};
use std::sync::Arc;

/// What was sent, and has no answer yet.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    discover: Option<u64>,
    initialize: Option<u64>,
}

impl Greeting {
    pub(super) fn has_only_discovered(&self) -> bool {
        self.initialize.is_none()
    }
}

/// The member `clientInfo`.
pub(super) fn info((name, version): &(String, String)) -> String {
    text_of(|info| {
        info.str("name", name);
        info.str("version", version);
    })
}

/// The member `capabilities` of a client that answers these methods.
pub(super) fn capabilities(answers: &[String]) -> String {
    text_of(|writer| {
        for (method, capability) in version::QUESTIONS {
            if answers.iter().any(|answer| answer == method) {
                writer.object(capability, |_| ());
            }
        }
    })
}

fn text_of(body: impl FnOnce(&mut crate::jsonrpc::ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, body);
    String::from_utf8(out).unwrap_or_else(|_| "{}".into())
}

impl Machine {
    /// The first message on a new connection.
    pub(super) fn greet(&mut self, now: Now, out: &mut Effects) {
        self.phase = Phase::Greeting(Greeting::default());
        match self.pinned {
            Some(revision) if !revision.is_modern() => self.initialize(now, out),
            None if self.shuns_discover => self.initialize(now, out),
            _ => {
                let message = self.speaker.discover();
                let timeout = self.reader.limits.timeout;
                let id = self.send(message, Purpose::Discover, timeout, now, out);
                if self.pinned.is_none() {
                    let later = now.tick.saturating_add(self.reader.limits.discover);
                    self.timers.insert((later, Timer::Discover));
                }
                self.phase = Phase::Greeting(Greeting { discover: Some(id), initialize: None });
            }
        }
    }

    fn initialize(&mut self, now: Now, out: &mut Effects) {
        let revision = self.pinned.unwrap_or(Revision::NEWEST_LEGACY);
        let message = self.speaker.initialize(revision);
        let timeout = self.reader.limits.timeout;
        let id = self.send(message, Purpose::Initialize, timeout, now, out);
        if let Phase::Greeting(greeting) = &mut self.phase {
            greeting.initialize = Some(id);
        }
    }

    /// A server that says nothing to `server/discover` may be an old one, or a slow one.
    pub(super) fn greet_in_both_eras(&mut self, now: Now, out: &mut Effects) {
        if matches!(&self.phase, Phase::Greeting(greeting) if greeting.initialize.is_none()) {
            self.initialize(now, out);
        }
    }

    pub(super) fn discovered(&mut self, result: Result<Json<'_>, Json<'_>>, now: Now, out: &mut Effects) {
        let Phase::Greeting(greeting) = &mut self.phase else { return };
        greeting.discover = None;
        let is_asked = greeting.initialize.is_some();
        match result.ok().and_then(|result| about_modern(result)) {
            Some(about) => self.ready(about, now, out),
            None if self.pinned.is_some() => {
                let what = format!("revision {}", Revision::V2026_07_28);
                self.refuses(&Failure::Unsupported { what }, now, out);
            }
            None if is_asked => {}
            None => self.initialize(now, out),
        }
    }

    pub(super) fn initialized(&mut self, result: Result<Json<'_>, Json<'_>>, now: Now, out: &mut Effects) {
        let about = match result {
            Ok(result) => about_legacy(result),
            Err(error) => Err(match refused(error, None) {
                ClientError::Failed(failure) => failure,
                _ => Failure::BadAnswer { reason: "the handshake was refused".into() },
            }),
        };
        match about {
            Ok(about) => {
                self.speaker.revision = Some(about.revision);
                out.push(Effect::Send(self.speaker.notification(version::INITIALIZED, |_| ())));
                self.ready(about, now, out);
            }
            Err(failure) => self.refuses(&failure, now, out),
        }
    }

    /// The handshake could not be carried: over HTTP an older server refuses what it does not know with a status alone.
    pub(super) fn greeting_failed(
        &mut self,
        purpose: &Purpose,
        why: NotCarried,
        now: Now,
        out: &mut Effects,
    ) {
        const UNAUTHORIZED: [u16; 3] = [401, 403, 429];
        let speaks_http = why.status.is_some_and(|status| (400..500).contains(&status));
        let may_be_old = speaks_http && !why.status.is_some_and(|status| UNAUTHORIZED.contains(&status));
        if *purpose == Purpose::Discover && self.pinned.is_none() && may_be_old {
            return self.greet_in_both_eras(now, out);
        }
        self.refuses(&why.failure, now, out);
    }

    /// The server is there, and no session can begin.
    fn refuses(&mut self, failure: &Failure, now: Now, out: &mut Effects) {
        let reason = match failure {
            Failure::Unreachable { reason } => reason.clone(),
            other => other.to_string(),
        };
        out.push(Effect::Disconnect { reason: reason.clone() });
        self.lost(&Lost::NotOpened(reason), now, out);
    }

    fn ready(&mut self, about: ServerAbout, now: Now, out: &mut Effects) {
        self.forget_flights();
        self.timers.retain(|(_, timer)| *timer != Timer::Discover);
        self.speaker.revision = Some(about.revision);
        self.shuns_discover &= !about.revision.is_modern();
        self.was_there = true;
        self.phase = Phase::Ready { about: Arc::new(about), since: now.tick };
        self.send_waiting(now, out);
        self.watches.connected();
        self.reconcile(now, out);
    }
}

fn about_modern(result: Json<'_>) -> Option<ServerAbout> {
    let members = result.object()?;
    let modern = Revision::V2026_07_28;
    let mut versions = members.get("supportedVersions")?.array()?;
    versions.any(|version| version.as_str().as_deref() == Some(modern.as_str())).then_some(())?;
    let own = members.get("_meta").and_then(Json::object);
    let info = own.and_then(|own| own.get(meta::SERVER_INFO));
    Some(about(modern, &members, info))
}

fn about_legacy(result: Json<'_>) -> Result<ServerAbout, Failure> {
    let bad = |reason: &str| Failure::BadAnswer { reason: reason.into() };
    let members = result.object().ok_or_else(|| bad("the result of the handshake is no object"))?;
    let named = text(&members, "protocolVersion").unwrap_or_default();
    let known = Revision::parse(&named).filter(|revision| !revision.is_modern());
    let revision = known.ok_or_else(|| {
        bad(&format!(
            "it wants to speak revision {:?}, which this client does not have",
            super::shown(&named)
        ))
    })?;
    let info = members.get("serverInfo");
    Ok(about(revision, &members, info))
}

fn about(revision: Revision, members: &Members<'_>, info: Option<Json<'_>>) -> ServerAbout {
    let capabilities = members.get("capabilities");
    let parts = capabilities.and_then(Json::object);
    let resources = parts.as_ref().and_then(|parts| parts.get("resources")?.object());
    let has = |name| {
        let flag = resources.as_ref().and_then(|resources| resources.get(name)?.as_bool());
        flag.unwrap_or_default()
    };
    let object = |json: Option<Json<'_>>| {
        json.filter(|json| json.object().is_some())
            .map_or_else(|| "{}".into(), |json| super::one_line(json.raw()))
    };
    ServerAbout {
        revision,
        info: object(info),
        capabilities: object(capabilities),
        instructions: text(members, "instructions"),
        has_subscriptions: has("subscribe"),
        has_list_changes: has("listChanged"),
        has_completions: !revision.has_completions_capability()
            || parts.is_some_and(|parts| parts.get("completions").is_some()),
    }
}
