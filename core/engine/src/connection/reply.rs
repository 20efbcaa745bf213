//! All that is needed to word one answer away from the connection.

use super::answer::{Answer, Completion, Contents, InputRequired, RawResult, ReadResult};
use super::contents;
use super::event::{ListRequest, LogLevel, RequestToken};
use super::gather::Gather;
use super::inflight::Ticket;
use super::inputs::{self, About, Ask, Asked, Asker};
use super::list::{ListWalk, Step};
use super::logs;
use super::words::{self, Wording};
use crate::catalog::{ResourceEntry, TemplateEntry};
use crate::engine::{Engine, Lead, Suggested};
use crate::error::{Purpose, ReadError};
use crate::guard::{Action, Verdict};
use crate::now::{Millis, Now};
use crate::resource::{CacheHint, CacheScope};
use crate::version::{self, READ};
use mcp_resources_template::uri;
use std::borrow::Cow;
use std::sync::Arc;

/// Room for most answers, in bytes.
const SMALL: usize = 512;

/// One unanswered request, owned and `Send`: see [`Connection::detach`](super::Connection::detach).
#[derive(Debug)]
pub struct Reply {
    pub(super) token: RequestToken,
    pub(super) ticket: Arc<Ticket>,
    pub(super) engine: Arc<Engine>,
    pub(super) task: Task,
    pub(super) reports: Reports,
}

/// What is being answered.
#[derive(Debug)]
pub(super) enum Task {
    Read(ReadTask),
    /// With what the values are filtered by, where not everybody may see everything.
    Complete(Option<Box<Suggested>>),
    List(Box<ListWalk>),
    Call(Box<CallTask>),
}

#[derive(Debug)]
pub(super) struct ReadTask {
    pub(super) served: Served,
    pub(super) asker: Asker,
    /// The request carried input responses or a state: its result is not to be cached.
    pub(super) retried: bool,
    /// The most bytes of contents.
    pub(super) most: usize,
    /// The right to answer for all who read the same.
    pub(super) lead: Option<Lead>,
}

#[derive(Debug)]
pub(super) struct CallTask {
    pub(super) method: String,
    /// What it is called for: the value of the extension's `name_param`.
    pub(super) name: String,
    pub(super) asker: Asker,
    /// As for a read.
    pub(super) retried: bool,
}

/// What serves a read.
#[derive(Clone, Debug)]
pub(super) enum Served {
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
}

/// What a handler may report before its answer.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The progress token as JSON text.
    pub(super) token: Option<String>,
    pub(super) last: Option<(f64, Millis)>,
    /// The least severe level that the client wants; `None` is no log at all.
    pub(super) level: Option<LogLevel>,
    pub(super) logged: usize,
}

/// A worded answer on its way to the stream.
#[derive(Debug)]
pub struct Encoded {
    /// What the author did wrong, if the answer was not one that its event can have: for the host's log.
    pub misuse: Option<String>,
    pub(super) token: RequestToken,
    pub(super) bytes: Vec<u8>,
    pub(super) next: Option<(Reply, ListRequest<'static>)>,
    pub(super) missing_capability: bool,
    pub(super) verdict: Verdict,
}

impl Encoded {
    /// The request it answers.
    pub fn token(&self) -> RequestToken {
        self.token
    }
}

/// What became of an answer.
#[derive(Debug, Default)]
pub(super) struct Worded {
    pub(super) next: Option<(Reply, ListRequest<'static>)>,
    pub(super) misuse: Option<String>,
    pub(super) missing_capability: bool,
    pub(super) verdict: Verdict,
}

impl Reply {
    /// The request it answers.
    pub fn token(&self) -> RequestToken {
        self.token
    }

    /// Words the answer. Takes no lock; touches no connection.
    pub fn encode(self, answer: Answer<'_>, now: Now) -> Encoded {
        let (token, mut bytes) = (self.token, Vec::with_capacity(SMALL));
        let Worded { next, misuse, missing_capability, verdict } = self.word(answer, now, &mut bytes);
        Encoded { misuse, token, bytes, next, missing_capability, verdict }
    }

    /// A progress notification to write before the answer, if the client asked for progress, it grows, and it is due
    /// (R-124 … R-126).
    pub fn progress(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Now,
    ) -> Option<Vec<u8>> {
        let token = self.reports.token.as_deref()?;
        let is_last = total.is_some_and(|total| progress >= total);
        if let Some((last, at)) = self.reports.last {
            let due = is_last || now.tick >= at + self.engine.limits().progress_interval;
            if progress <= last || !due {
                return None;
            }
        }
        if !progress.is_finite() {
            return None;
        }
        let mut out = Vec::new();
        words::notification(&mut out, "notifications/progress", |params| {
            params.value("progressToken").extend_from_slice(token.as_bytes());
            params.f64("progress", progress);
            if let Some(total) = total.filter(|total| total.is_finite()) {
                params.f64("total", total);
            }
            if let Some(message) = message.filter(|_| self.ticket.revision.has_progress_message()) {
                params.str("message", message);
            }
        });
        self.reports.last = Some((progress, now.tick));
        Some(out)
    }

    /// A log notification to write before the answer, if the server offers logging and the client wants this level
    /// (R-119 … R-123). `data` is JSON text; what looks like a credential in it is blotted out.
    pub fn log(&mut self, level: LogLevel, logger: Option<&str>, data: &str) -> Option<Vec<u8>> {
        let wanted = self.reports.level.is_some_and(|least| level >= least);
        if !wanted || self.reports.logged >= self.engine.limits().log_messages {
            return None;
        }
        self.reports.logged += 1;
        Some(logs::message(level, logger, data))
    }

    /// Starts to gather contents that come in chunks.
    pub fn gather(&self) -> Gather {
        Gather::new(self.engine.clone(), self.most())
    }

    /// The most bytes of contents.
    fn most(&self) -> usize {
        match &self.task {
            Task::Read(task) => task.most,
            _ => self.engine.limits().contents,
        }
    }

    pub(super) fn wording(&self) -> Wording<'_> {
        self.ticket.wording(self.engine.server_info_member())
    }

    pub(super) fn word(mut self, answer: Answer<'_>, now: Now, out: &mut Vec<u8>) -> Worded {
        let answer = self.prepared(answer);
        if let Task::Read(ReadTask { lead, .. }) = &mut self.task
            && let Some(lead) = lead.take()
        {
            return self.lead(lead, answer, now, out);
        }
        match (&mut self.task, answer) {
            (_, Answer::Failed(error)) => self.fail(error, out),
            (Task::Read(_), Answer::Contents(result)) => self.read(result, out),
            (Task::Read(_), Answer::Gathered(gather)) => self.gathered(&gather, out),
            (Task::Read(_) | Task::Call(_), Answer::InputRequired(ask)) => self.input(&ask, now, out),
            (Task::Complete(_), Answer::Completion(completion)) => self.complete(completion, out),
            (Task::Call(_), Answer::Raw(result)) => self.raw(&result, out),
            (Task::List(_), Answer::Listed(page)) => self.listed(page, now, out),
            _ => self.misuse("the answer is not of the sort that the request needs".into(), out),
        }
    }

    /// Goes on with a list, from where its walk stands.
    pub(super) fn walk(mut self, now: Now, out: &mut Vec<u8>) -> Worded {
        let Task::List(walk) = &mut self.task else { return Worded::default() };
        let step = walk.advance(&self.engine, now);
        self.stepped(step, out)
    }

    fn listed(mut self, page: super::answer::ListPage, now: Now, out: &mut Vec<u8>) -> Worded {
        let Task::List(walk) = &mut self.task else { return Worded::default() };
        match walk.take(page, &self.engine, now) {
            Ok((step, misuse)) => Worded { misuse, ..self.stepped(step, out) },
            Err(error) => self.fail(error, out),
        }
    }

    fn stepped(self, step: Step, out: &mut Vec<u8>) -> Worded {
        match step {
            Step::Ask(mut request) => {
                request.token = self.token;
                Worded { next: Some((self, request)), ..Worded::default() }
            }
            Step::Done { next } => {
                if let Task::List(walk) = &self.task {
                    walk.write(&self.wording(), &self.engine, next.as_deref(), out);
                }
                Worded::default()
            }
        }
    }

    pub(super) fn fail(&self, error: ReadError, out: &mut Vec<u8>) -> Worded {
        let mut verdict = Verdict::from(&error);
        let (error, misuse) = match error {
            ReadError::AccessDenied if !self.engine.options().explicit_denials => {
                verdict = Verdict::Hidden;
                (ReadError::NotFound, None)
            }
            ReadError::Custom { code, .. } if !version::is_custom_code(code) => {
                verdict = Verdict::ReadError;
                (ReadError::Failed, Some(format!("the error code {code} is reserved")))
            }
            other => (other, None),
        };
        self.wording().failure_of(self.task.purpose(), out, &error, self.ticket.uri.as_deref());
        Worded { misuse, verdict, ..Worded::default() }
    }

    fn misuse(&self, misuse: String, out: &mut Vec<u8>) -> Worded {
        Worded { misuse: Some(misuse), ..self.fail(ReadError::Failed, out) }
    }

    fn read(&self, result: ReadResult<'_>, out: &mut Vec<u8>) -> Worded {
        let Task::Read(task) = &self.task else { return Worded::default() };
        if let Err(error) = self.checked(&result) {
            return self.fail(error, out);
        }
        let uri = self.ticket.uri.as_deref().unwrap_or_default();
        contents::write(
            &self.wording(),
            out,
            (uri, task.served.mime_type()),
            (&result, self.engine.shared(task.cache(result.cache))),
        );
        Worded::default()
    }

    /// Refuses what is not to be sent.
    pub(super) fn checked(&self, result: &ReadResult<'_>) -> Result<(), ReadError> {
        contents::check(result, self.most())
    }

    /// The contents of a read without what the detectors find (S-19); chunks that were kept as they are become contents.
    fn prepared<'a>(&self, answer: Answer<'a>) -> Answer<'a> {
        let answer = match answer {
            Answer::Gathered(gather) => gather.into_answer(),
            other => other,
        };
        let answer = self.visible(answer);
        match (answer, self.engine.amounts().redactor()) {
            (Answer::Contents(mut result), Some(redactor)) if matches!(self.task, Task::Read(_)) => {
                contents::redact(&mut result, redactor);
                Answer::Contents(result)
            }
            (answer, _) => answer,
        }
    }

    /// The contents without the entries that the principal may not see (S-12).
    fn visible<'a>(&self, answer: Answer<'a>) -> Answer<'a> {
        match (&self.task, answer) {
            (Task::Read(task), Answer::Contents(mut result)) if self.engine.restricts() => {
                let asked = self.normal_uri();
                result.contents.retain(|entry| self.may_show(task, entry, &asked));
                Answer::Contents(result)
            }
            (_, answer) => answer,
        }
    }

    /// Whether an entry is the one that was asked for, or one that the principal could have asked for (S-12).
    fn may_show(&self, task: &ReadTask, entry: &Contents<'_>, asked: &str) -> bool {
        let Some(uri) = &entry.uri else { return true };
        let normal = uri::normalize(uri, self.engine.limits().uri);
        normal.is_ok_and(|normal| {
            normal == asked || self.engine.sees(&task.asker.principal, Action::Read, &normal)
        })
    }

    fn gathered(&self, gather: &Gather, out: &mut Vec<u8>) -> Worded {
        let Task::Read(task) = &self.task else { return Worded::default() };
        let uri = self.ticket.uri.as_deref().unwrap_or_default();
        contents::write_gathered(
            &self.wording(),
            out,
            (uri, task.served.mime_type()),
            (gather, self.engine.shared(task.cache(gather.cache))),
        );
        Worded::default()
    }

    pub(super) fn input(&self, ask: &InputRequired<'_>, now: Now, out: &mut Vec<u8>) -> Worded {
        if !self.ticket.revision.is_modern() {
            return self.fail(ReadError::InputRequired, out);
        }
        let asked = match &self.task {
            Task::Read(task) => self.seal(ask, &task.asker, (READ, &self.normal_uri()), now),
            Task::Call(task) => self.seal(ask, &task.asker, (&task.method, &task.name), now),
            _ => return Worded::default(),
        };
        match asked {
            Ok(Asked::Ready { requests, state }) => {
                inputs::write(&self.wording(), out, &requests, &state);
                Worded { verdict: Verdict::InputRequired, ..Worded::default() }
            }
            Ok(Asked::Missing(required)) => {
                inputs::write_missing(&self.wording(), out, &required);
                let verdict = Verdict::MissingCapability;
                Worded { missing_capability: true, verdict, ..Worded::default() }
            }
            Err(misuse) => self.misuse(misuse, out),
        }
    }

    fn seal<'r>(
        &self,
        request: &'r InputRequired<'r>,
        asker: &Asker,
        (method, what): (&str, &str),
        now: Now,
    ) -> Result<Asked<'r>, String> {
        let about = About { method, what, principal: &asker.principal };
        Ask { request, about, capabilities: asker.capabilities }.seal(&self.engine, now)
    }

    /// What the client asked for, in the form in which a retry is compared with it.
    fn normal_uri(&self) -> String {
        let sent = self.ticket.uri.as_deref().unwrap_or_default();
        uri::normalize(sent, self.engine.limits().uri).map_or_else(|_| sent.to_owned(), Cow::into_owned)
    }

    fn complete(&self, mut completion: Completion<'_>, out: &mut Vec<u8>) -> Worded {
        if let Task::Complete(Some(suggested)) = &self.task {
            super::complete::filter(&mut completion, suggested, &self.engine);
        }
        super::complete::write(&self.wording(), out, &completion, self.engine.limits());
        Worded::default()
    }

    fn raw(&self, result: &RawResult<'_>, out: &mut Vec<u8>) -> Worded {
        let members = words::members_of(&result.members);
        let meta = words::members_of(result.meta.as_deref().unwrap_or("{}"));
        let (Some(members), Some(meta)) = (members, meta) else {
            return self.misuse("the result and its _meta must be JSON objects".into(), out);
        };
        let result_type = result.result_type.as_deref().unwrap_or(words::COMPLETE);
        let wording = self.wording();
        wording.result(out, result_type, &meta, |writer| {
            writer.members(members.as_bytes());
            if let Some(cache) = self.list_cache().filter(|_| result_type == words::COMPLETE) {
                contents::missing_hint(writer, &wording, (&result.members, cache));
            }
        });
        Worded::default()
    }

    /// The caching hint for the result of a custom list method that gives none itself.
    fn list_cache(&self) -> Option<CacheHint> {
        let Task::Call(task) = &self.task else { return None };
        let hint = if task.retried { CacheHint::default() } else { self.engine.options().list_cache };
        version::is_list(&task.method).then(|| self.engine.shared(hint))
    }
}

impl Task {
    fn purpose(&self) -> Purpose {
        match self {
            Self::Read(_) => Purpose::Read,
            Self::Complete(_) => Purpose::Complete,
            Self::List(_) => Purpose::List,
            Self::Call(_) => Purpose::Call,
        }
    }
}

impl Served {
    /// The size that was registered.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Resource(entry) => entry.resource.size,
            Self::Template(_) => None,
        }
    }

    pub(super) fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Resource(entry) => entry.resource.details.mime_type.as_deref(),
            Self::Template(entry) => entry.template.details.mime_type.as_deref(),
        }
    }

    pub(super) fn cache(&self) -> CacheHint {
        match self {
            Self::Resource(entry) => entry.resource.details.cache,
            Self::Template(entry) => entry.template.details.cache,
        }
    }
}

impl ReadTask {
    /// The hint of one result: its own, else the resource's; none after a round of input. What is private
    /// stays so.
    pub(super) fn cache(&self, own: Option<CacheHint>) -> CacheHint {
        if self.retried {
            return CacheHint::default();
        }
        let resource = self.served.cache();
        let own = own.unwrap_or(resource);
        let scope = if resource.scope == CacheScope::Private { CacheScope::Private } else { own.scope };
        CacheHint { scope, ..own }
    }
}
