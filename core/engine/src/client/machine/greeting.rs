//! Determines the era of a server.
//!
//! A modern server answers `server/discover`; an older one refuses it, stays silent, or closes the connection. The
//! older handshake is sent at once after a refusal, after a delay without an answer, and first on the next connection
//! after a close.
//!
//! Law: if both were sent, the last answer decides. On transports where a connection has one era, some servers switch
//! to the older one as soon as they accept its handshake, even if they have answered `server/discover`.

use super::super::decode::{refused, text};
use super::{Effects, Machine, MachinePhase, MachineTimer, RequestPurpose};
use crate::client::{ClientError, Effect, Failure, Lost, NotCarried, ServerAbout};
use crate::jsonrpc::{Json, JsonMembers, object};
use crate::meta;
use crate::now::{Millis, Now};
use crate::version::{self, Revision};
use std::sync::Arc;

/// Minimum time, in ms, that a server gets to start and to answer.
const STARTING: Millis = 30_000;

/// The progress of the handshakes of both eras.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    discover: DiscoverState,
    initialize: DiscoverState,
    /// The answer to `server/discover`.
    modern: Option<ServerAbout>,
    /// The reason for which the older handshake was refused.
    refused: Option<Failure>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DiscoverState {
    #[default]
    NotYet,
    Unanswered,
    Answered,
}

impl Greeting {
    pub(super) fn has_only_discovered(&self) -> bool {
        self.initialize == DiscoverState::NotYet
    }
}

/// The member `clientInfo`.
pub(super) fn info(name: &str, version: &str) -> String {
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
    /// Sends the first message on a new connection.
    pub(super) fn greet(&mut self, now: Now, out: &mut Effects) {
        self.phase = MachinePhase::Greeting(Greeting::default());
        match self.pinned {
            Some(revision) if !revision.is_modern() => self.initialize(now, out),
            Some(revision) if self.is_testing => self.ready(ServerAbout::unknown(revision), now, out),
            None if self.shuns_discover => self.initialize(now, out),
            _ => {
                let message = self.speaker.discover();
                self.send(message, RequestPurpose::Discover, self.patience(), now, out);
                if self.pinned.is_none() {
                    self.look_again(now);
                }
                self.phase = MachinePhase::Greeting(Greeting {
                    discover: DiscoverState::Unanswered,
                    ..Greeting::default()
                });
            }
        }
    }

    /// The time-out of the handshake, in ms. A program may take longer to start than one request may take.
    fn patience(&self) -> Millis {
        self.reader.limits.timeout.max(STARTING)
    }

    fn look_again(&mut self, now: Now) {
        let later = now.tick.saturating_add(self.reader.limits.discover);
        self.timers.insert((later, MachineTimer::Discover));
    }

    fn initialize(&mut self, now: Now, out: &mut Effects) {
        let revision = self.pinned.unwrap_or(Revision::NEWEST_LEGACY);
        let message = self.speaker.initialize(revision);
        self.send(message, RequestPurpose::Initialize, self.patience(), now, out);
        if let MachinePhase::Greeting(greeting) = &mut self.phase {
            greeting.initialize = DiscoverState::Unanswered;
        }
    }

    /// Handles silence after `server/discover`: the server may be old, or slow, so the older handshake is sent too. A
    /// server that has answered `server/discover` but not the older handshake is modern.
    pub(super) fn greet_in_both_eras(&mut self, now: Now, out: &mut Effects) {
        let MachinePhase::Greeting(greeting) = &mut self.phase else { return };
        if let Some(about) = greeting.modern.take() {
            self.ready(about, now, out);
        } else if greeting.initialize == DiscoverState::NotYet {
            self.initialize(now, out);
        }
    }

    pub(super) fn discovered(&mut self, result: Result<Json<'_>, Json<'_>>, now: Now, out: &mut Effects) {
        let MachinePhase::Greeting(greeting) = &mut self.phase else { return };
        greeting.discover = DiscoverState::Answered;
        let waits = greeting.initialize == DiscoverState::Unanswered;
        match result.ok().and_then(|result| about_modern(result)) {
            Some(about) if waits && !self.has_exchanges => {
                greeting.modern = Some(about);
                self.look_again(now);
            }
            Some(about) => self.ready(about, now, out),
            None if self.pinned.is_some() => {
                let what = format!("revision {}", Revision::V2026_07_28);
                self.refuses(&Failure::Unsupported { what }, now, out);
            }
            None if waits => {}
            None => self.greet_after_silence(now, out),
        }
    }

    /// Handles a final failure of `server/discover`: only the older handshake is left.
    pub(super) fn greet_after_silence(&mut self, now: Now, out: &mut Effects) {
        let MachinePhase::Greeting(greeting) = &mut self.phase else { return };
        greeting.discover = DiscoverState::Answered;
        match greeting.refused.take() {
            Some(failure) => self.refuses(&failure, now, out),
            None => self.greet_in_both_eras(now, out),
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
            Err(failure) => self.not_initialized(failure, now, out),
        }
    }

    /// Handles a failed older handshake: the answer to `server/discover` decides, even if it is still to come.
    fn not_initialized(&mut self, failure: Failure, now: Now, out: &mut Effects) {
        let MachinePhase::Greeting(greeting) = &mut self.phase else { return };
        greeting.initialize = DiscoverState::Answered;
        match greeting.modern.take() {
            Some(about) => self.ready(about, now, out),
            None if greeting.discover == DiscoverState::Unanswered => greeting.refused = Some(failure),
            None => self.refuses(&failure, now, out),
        }
    }

    /// Handles a handshake that the transport could not complete. Over HTTP, an older server refuses an unknown method
    /// with a status alone.
    pub(super) fn greeting_failed(
        &mut self,
        purpose: &RequestPurpose,
        why: NotCarried,
        now: Now,
        out: &mut Effects,
    ) {
        const UNAUTHORIZED: [u16; 3] = [401, 403, 429];
        let speaks_http = why.status.is_some_and(|status| (400..500).contains(&status));
        let may_be_old = speaks_http && !why.status.is_some_and(|status| UNAUTHORIZED.contains(&status));
        match purpose {
            RequestPurpose::Discover if self.pinned.is_none() && may_be_old => {
                self.greet_after_silence(now, out)
            }
            RequestPurpose::Initialize => self.not_initialized(why.failure, now, out),
            _ => self.refuses(&why.failure, now, out),
        }
    }

    /// Handles a server that is reachable but refuses every handshake.
    fn refuses(&mut self, failure: &Failure, now: Now, out: &mut Effects) {
        let lost = match failure {
            Failure::Unreachable { reason } => Lost::NotOpened(reason.clone()),
            Failure::Unauthorized { .. } => Lost::Refused(failure.clone()),
            other => Lost::NotOpened(other.to_string()),
        };
        out.push(Effect::Disconnect { why: lost.failure() });
        self.lost(&lost, now, out);
    }

    fn ready(&mut self, about: ServerAbout, now: Now, out: &mut Effects) {
        self.forget_flights();
        self.timers.retain(|(_, timer)| *timer != MachineTimer::Discover);
        self.speaker.revision = Some(about.revision);
        self.shuns_discover &= !about.revision.is_modern();
        self.was_there = true;
        self.phase = MachinePhase::Ready { about: Arc::new(about), since: now.tick };
        self.send_waiting(now, out);
        self.watches.connected();
        self.reconcile(now, out);
    }
}

impl ServerAbout {
    /// The description of a server that was not asked for one.
    fn unknown(revision: Revision) -> Self {
        let nothing = || "{}".to_owned();
        Self {
            revision,
            info: nothing(),
            capabilities: nothing(),
            instructions: None,
            has_subscriptions: false,
            has_list_changes: false,
            has_completions: false,
        }
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
    let members = result.object().ok_or_else(|| bad("the result of the handshake is not an object"))?;
    let named = text(&members, "protocolVersion").unwrap_or_default();
    let known = Revision::parse(&named).filter(|revision| !revision.is_modern());
    let revision = known.ok_or_else(|| {
        bad(&format!("it uses revision {:?}, which this client does not support", super::shown(&named)))
    })?;
    let info = members.get("serverInfo");
    Ok(about(revision, &members, info))
}

fn about(revision: Revision, members: &JsonMembers<'_>, info: Option<Json<'_>>) -> ServerAbout {
    let capabilities = members.get("capabilities");
    let parts = capabilities.and_then(Json::object);
    let resources = parts.as_ref().and_then(|parts| parts.get("resources")?.object());
    let has = |name| {
        let flag = resources.as_ref().and_then(|resources| resources.get(name)?.as_bool());
        flag.unwrap_or_default()
    };
    let object = |json: Option<Json<'_>>| {
        json.filter(|json| json.object().is_some()).map_or_else(|| "{}".into(), |json| super::one_line(json))
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
