//! Everything needed to write one answer away from the connection. Each [`ReplyTask`] writes its own, in the file of its
//! method.

use super::access::{HeldTask, NextQuestion, NoticeTask};
use super::answer::Answer;
use super::call::CallTask;
use super::complete::CompletionTask;
use super::event::{LogLevel, OwnedCaller, RequestToken};
use super::gather::ContentsGatherer;
use super::inflight::Ticket;
use super::inputs::{self, InputAsks, InputRequests};
use super::list::ListTask;
use super::logs;
use super::named::NamedTask;
use super::read::ReadTask;
use super::resource_tools::ResourceToolTask;
use super::response::{self, ResponseWriter};
use super::terms::ClientCapabilities;
use crate::engine::Engine;
use crate::error::{ErrorPurpose, ReadError};
use crate::guard::Verdict;
use crate::now::{Millis, Now};
use crate::version::{self, Revision};
use mcp_resources_template::uri;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Initial capacity in bytes; enough for most answers.
const SMALL: usize = 512;

/// One unanswered request, owned and `Send`: see [`Connection::detach`](super::Connection::detach).
#[derive(Debug)]
pub struct Reply {
    pub(super) token: RequestToken,
    pub(super) context: ReplyContext,
    pub(super) task: ReplyTask,
    pub(super) reports: ReplyReports,
}

/// Reports whether a request was cancelled or has timed out, to its handler on any thread.
#[derive(Clone, Debug)]
pub struct Cancelled(Arc<Ticket>);

impl Cancelled {
    /// Whether the answer is no longer wanted. Set before the runtime gets [`Event::Cancelled`](super::Event::Cancelled).
    pub fn get(&self) -> bool {
        self.0.is_dropped.load(Ordering::Acquire)
    }
}

/// The context for writing any answer.
#[derive(Debug)]
pub(super) struct ReplyContext {
    pub(super) ticket: Arc<Ticket>,
    pub(super) engine: Arc<Engine>,
    pub(super) purpose: ErrorPurpose,
}

/// The request to answer.
#[derive(Debug)]
pub(super) enum ReplyTask {
    Read(ReadTask),
    Complete(Box<CompletionTask>),
    List(Box<ListTask>),
    Call(Box<CallTask>),
    Named(Box<NamedTask>),
    ResourceTool(Box<ResourceToolTask>),
    Held(Box<HeldTask>),
    Notice(Box<NoticeTask>),
}

/// The notifications that a handler may send before its answer.
#[derive(Debug, Default)]
pub(super) struct ReplyReports {
    /// The progress token as JSON text.
    pub(super) token: Option<String>,
    pub(super) last: Option<(f64, Millis)>,
    /// The least severe level that the client wants; `None` for no log messages.
    pub(super) level: Option<LogLevel>,
    pub(super) logged: usize,
}

/// An encoded answer on its way to the stream.
#[derive(Debug)]
pub struct EncodedReply {
    /// A handler's mistake, for the log: its answer did not fit the event.
    pub misuse: Option<String>,
    pub(super) token: RequestToken,
    pub(super) bytes: Vec<u8>,
    pub(super) next: Option<NextRead>,
    pub(super) missing_capability: bool,
    pub(super) verdict: Verdict,
}

impl EncodedReply {
    /// The request it answers.
    pub fn token(&self) -> RequestToken {
        self.token
    }
}

/// The result of writing an answer.
#[derive(Debug, Default)]
pub(super) struct WrittenReply {
    pub(super) misuse: Option<String>,
    pub(super) missing_capability: bool,
    pub(super) verdict: Verdict,
}

/// Nothing is written yet: the answer needs the result of another callback.
#[derive(Debug)]
pub(super) struct NextRead {
    pub(super) reply: Reply,
    pub(super) question: NextQuestion,
    pub(super) caller: Arc<OwnedCaller>,
}

impl Reply {
    /// The request it answers.
    pub fn token(&self) -> RequestToken {
        self.token
    }

    /// The URI of a read, as the client spelled it.
    pub fn uri(&self) -> Option<&str> {
        self.context.ticket.uri.as_deref()
    }

    /// The kinds of input that its client supports; `None` for a request that asks for none.
    pub fn capabilities(&self) -> Option<ClientCapabilities> {
        match &self.task {
            ReplyTask::Read(task) => Some(task.asker.capabilities),
            ReplyTask::Call(task) => Some(task.asker.capabilities),
            ReplyTask::Named(task) => Some(task.asker.capabilities),
            ReplyTask::Complete(_)
            | ReplyTask::List(_)
            | ReplyTask::ResourceTool(_)
            | ReplyTask::Held(_)
            | ReplyTask::Notice(_) => None,
        }
    }

    /// The engine of its connection.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.context.engine
    }

    /// The revision under which it is answered.
    pub fn revision(&self) -> Revision {
        self.context.ticket.revision
    }

    /// Maximum size of the contents of its answer, in bytes.
    pub fn most_bytes(&self) -> usize {
        match &self.task {
            ReplyTask::Read(task) => task.max,
            ReplyTask::ResourceTool(task) => {
                task.most_bytes().unwrap_or(self.context.engine.limits().contents)
            }
            _ => self.context.engine.limits().contents,
        }
    }

    /// Whether the answer is still wanted.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled(self.context.ticket.clone())
    }

    /// Encodes the answer. Takes no lock and does not touch the connection.
    pub fn encode(self, answer: Answer<'_>, now: Now) -> EncodedReply {
        let token = self.token;
        let mut bytes = Vec::with_capacity(SMALL);
        let (written, next) = self.write(answer, now, &mut bytes);
        let WrittenReply { misuse, missing_capability, verdict } = written;
        EncodedReply { misuse, token, bytes, next, missing_capability, verdict }
    }

    /// Returns a progress notification to write before the answer. `None` if the client did not ask for progress, the
    /// value did not grow, or the last notification is too recent.
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
            let due =
                is_last || now.tick >= at.saturating_add(self.context.engine.limits().progress_interval);
            if progress <= last || !due {
                return None;
            }
        }
        if !progress.is_finite() {
            return None;
        }
        let mut out = Vec::new();
        response::notification(&mut out, "notifications/progress", |params| {
            params.value("progressToken").extend_from_slice(token.as_bytes());
            params.f64("progress", progress);
            if let Some(total) = total.filter(|total| total.is_finite()) {
                params.f64("total", total);
            }
            if let Some(message) = message.filter(|_| self.context.ticket.revision.has_progress_message()) {
                params.str("message", message);
            }
        });
        self.reports.last = Some((progress, now.tick));
        Some(out)
    }

    /// Returns a log notification to write before the answer, if the server offers logging and the client wants this
    /// level. `data` is JSON text; apparent credentials in it are replaced.
    pub fn log(&mut self, level: LogLevel, logger: Option<&str>, data: &str) -> Option<Vec<u8>> {
        let wanted = self.reports.level.is_some_and(|least| level >= least);
        if !wanted || self.reports.logged >= self.context.engine.limits().log_messages {
            return None;
        }
        self.reports.logged += 1;
        Some(logs::message(level, logger, data))
    }

    /// The least severe level of log messages that the client wants for this request; `None` if it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.reports.level
    }

    /// Starts gathering contents that come in chunks.
    pub fn gather(&self) -> ContentsGatherer {
        ContentsGatherer::new(self.context.engine.clone(), self.most_bytes())
    }

    pub(super) fn write(
        mut self,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (WrittenReply, Option<NextRead>) {
        let token = self.token;
        let written = match &mut self.task {
            ReplyTask::Read(task) => {
                let (written, question) = task.write(&self.context, answer, now, out);
                let Some(question) = question else { return (written, None) };
                let caller = task.caller(&self.context);
                return (written, Some(NextRead { reply: self, question, caller }));
            }
            ReplyTask::Complete(task) => {
                let (written, question) = task.write(&self.context, answer, now, out);
                let Some((question, caller)) = question else { return (written, None) };
                return (written, Some(NextRead { reply: self, question, caller }));
            }
            ReplyTask::Held(task) => {
                let (written, question) = task.write(&self.context, token, &answer, now);
                let caller = task.caller();
                return (written, Some(NextRead { reply: self, question, caller }));
            }
            ReplyTask::Notice(task) => {
                let (written, question) = task.write(&self.context, &answer, now);
                let caller = task.caller();
                return (written, Some(NextRead { reply: self, question, caller }));
            }
            ReplyTask::Call(task) => task.write(&self.context, answer, now, out),
            ReplyTask::Named(task) => task.write(&self.context, answer, now, out),
            ReplyTask::ResourceTool(task) => {
                let (written, asked) = task.write(&self.context, answer, now, out);
                let next = asked.map(|(question, caller)| NextRead { reply: self, question, caller });
                return (written, next);
            }
            ReplyTask::List(task) => {
                let ListTask { walk, caller } = &mut **task;
                let (written, question) = walk.write(&self.context, answer, now, out);
                let caller = caller.clone();
                return (written, question.map(|question| NextRead { reply: self, question, caller }));
            }
        };
        (written, None)
    }
}

impl ReplyContext {
    pub(super) fn response_writer(&self) -> ResponseWriter<'_> {
        self.ticket.response_writer(self.engine.server_info_member())
    }

    /// The URI of a read as the client spelled it.
    pub(super) fn uri(&self) -> &str {
        self.ticket.uri.as_deref().unwrap_or_default()
    }

    /// The URI in the form with which a retry is compared.
    pub(super) fn normal_uri(&self) -> String {
        let sent = self.uri();
        uri::normalize(sent, self.engine.limits().uri).map_or_else(|_| sent.to_owned(), Cow::into_owned)
    }

    pub(super) fn fail(&self, error: ReadError, out: &mut Vec<u8>) -> WrittenReply {
        let mut verdict = Verdict::from(&error);
        let (error, misuse) = match error {
            ReadError::AccessDenied if !self.engine.options().explicit_denials => {
                verdict = Verdict::Hidden;
                (ReadError::NotFound, None)
            }
            // A custom method may be one of another specification, with its own codes.
            ReadError::Custom { code, .. }
                if self.purpose != ErrorPurpose::Call && !version::is_custom_code(code) =>
            {
                verdict = Verdict::ReadError;
                (ReadError::Failed, Some(format!("the error code {code} is reserved")))
            }
            other => (other, None),
        };
        self.response_writer().failure_of(self.purpose, out, &error, self.ticket.uri.as_deref());
        WrittenReply { misuse, verdict, ..WrittenReply::default() }
    }

    /// Writes an internal error. `misuse` describes the handler's mistake for the log.
    pub(super) fn misuse(&self, misuse: String, out: &mut Vec<u8>) -> WrittenReply {
        WrittenReply { misuse: Some(misuse), ..self.fail(ReadError::Failed, out) }
    }

    /// Writes the error for an answer that belongs to another kind of event.
    pub(super) fn wrong_sort(&self, out: &mut Vec<u8>) -> WrittenReply {
        self.misuse("the answer does not fit the request".into(), out)
    }

    /// Asks the client for input, if its revision and its capabilities allow it.
    pub(super) fn input(&self, ask: &InputAsks<'_, '_>, now: Now, out: &mut Vec<u8>) -> WrittenReply {
        if !self.ticket.revision.is_modern() {
            return self.fail(ReadError::InputRequired, out);
        }
        match ask.seal(&self.engine, now) {
            Ok(InputRequests::Ready { requests, state }) => {
                inputs::write(&self.response_writer(), out, &requests, &state);
                WrittenReply { verdict: Verdict::InputRequired, ..WrittenReply::default() }
            }
            Ok(InputRequests::Missing(required)) => {
                inputs::write_missing(&self.response_writer(), out, &required);
                let verdict = Verdict::MissingCapability;
                WrittenReply { missing_capability: true, verdict, ..WrittenReply::default() }
            }
            Err(misuse) => self.misuse(misuse, out),
        }
    }
}

impl ReplyTask {
    pub(super) fn purpose(&self) -> ErrorPurpose {
        match self {
            Self::Read(_) => ErrorPurpose::Read,
            Self::Complete(_) => ErrorPurpose::Complete,
            Self::List(_) => ErrorPurpose::List,
            Self::Call(_) => ErrorPurpose::Call,
            Self::Named(task) if task.is_tool() => ErrorPurpose::Tool,
            Self::Named(_) => ErrorPurpose::Prompt,
            Self::ResourceTool(_) => ErrorPurpose::Tool,
            Self::Held(_) | Self::Notice(_) => ErrorPurpose::Read,
        }
    }
}
