//! The output of a handler: its answer, and its reports before. Reports and answers to a request that has ended are
//! dropped.

use crate::calls::driver::{Driver, client};
use crate::calls::origin::HttpOrigin;
use crate::calls::run;
use crate::values::contents::{Entry, Question};
use crate::values::error::{raise, unusable};
use crate::values::options::{PlainValue, read, unsigned};
use crate::values::resource::resource;
use mcp_resources_engine::connection as core;
use mcp_resources_engine::connection::{Answer, Contents, LogLevel, PlainContents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::OptionValue;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// Answers for the handlers of one driver.
#[napi]
pub struct Answers(pub(crate) Rc<dyn Driver>);

/// Collects the chunks of an answer.
#[napi]
pub struct Gather(RefCell<Option<core::ContentsGatherer>>, Env);

#[napi]
impl Answers {
    /// The number of the response that a request belongs to; `null` without one.
    #[napi(catch_unwind)]
    pub fn response_of(&self, request: f64) -> Option<f64> {
        let (peer, _) = self.0.find(request)?;
        HttpOrigin::from_peer(&peer).map(|origin| origin.response)
    }

    /// Answers a read.
    #[napi(catch_unwind)]
    pub fn contents(&self, request: f64, entries: Vec<Entry>, cache: Option<PlainValue>) -> Result<()> {
        let cache = cache.map(read).transpose()?;
        self.answer(request, contents(entries.iter().map(Entry::read).collect(), cache))
    }

    /// Answers a read with the chunks that were pushed.
    #[napi(catch_unwind)]
    pub fn gathered(&self, request: f64, gather: &Gather) -> Result<()> {
        let gather = gather.0.take().map_or(Answer::Failed(ReadError::Failed), Answer::Gathered);
        self.answer(request, gather)
    }

    /// Answers a read with questions to the client; `state` is JSON text.
    #[napi(catch_unwind)]
    pub fn ask(&self, request: f64, questions: Vec<Question>, state: Option<String>) -> Result<()> {
        let requests = questions.iter().map(Question::read).collect();
        let state = state.map(|state| Cow::Owned(state.into_bytes()));
        self.answer(request, Answer::InputRequired(core::InputRequired { requests, state }))
    }

    /// Answers a completion.
    #[napi(catch_unwind)]
    pub fn completion(
        &self,
        request: f64,
        values: Vec<String>,
        total: Option<i64>,
        has_more: Option<bool>,
    ) -> Result<()> {
        let total = total.map(|total| unsigned("total", total)).transpose()?;
        let values = values.into_iter().map(Cow::Owned).collect();
        self.answer(request, Answer::Completion(core::Completion { values, total, has_more }))
    }

    /// Answers who may use resources: `null` for a failure.
    #[napi(catch_unwind)]
    pub fn access(&self, request: f64, allowed: Vec<Option<bool>>) -> Result<()> {
        self.answer(request, Answer::Access(allowed))
    }

    /// Answers a list.
    #[napi(catch_unwind)]
    pub fn page(&self, request: f64, items: Vec<PlainValue>, next: Option<String>) -> Result<()> {
        let items: Vec<_> = items.into_iter().map(resource).collect::<Result<_>>()?;
        self.answer(request, Answer::Listed(core::ListPage { next, ..core::ListPage::new(items) }))
    }

    /// Answers a custom method; all are JSON text except the type.
    #[napi(catch_unwind)]
    pub fn result(
        &self,
        request: f64,
        members: String,
        result_type: Option<String>,
        meta: Option<String>,
    ) -> Result<()> {
        let result_type = result_type.map(Cow::Owned);
        let result = core::RawResult { members: members.into(), result_type, meta: meta.map(Cow::Owned) };
        self.answer(request, Answer::Raw(result))
    }

    /// Answers with an error: `kind` is its name in `js/errors.ts`, and `facts` its members. Without a kind and a code
    /// it is a failure of the user's code, sent without its text.
    #[napi(catch_unwind)]
    pub fn fail(&self, request: f64, kind: Option<String>, facts: PlainValue) -> Result<()> {
        self.answer(request, Answer::Failed(failure(kind.as_deref(), facts.into())))
    }

    /// The queue that receives chunks; `null` when the request has ended. `mimeType` replaces the resource's own.
    #[napi(catch_unwind)]
    pub fn gather(&self, request: f64, mime_type: Option<String>) -> Option<Gather> {
        let (client, token) = client(&self.0, request)?;
        let mut gather = client.peer.with_reply(token, |reply| reply.gather())?;
        if let Some(mime_type) = mime_type {
            gather.mime_type(mime_type);
        }
        Some(Gather(RefCell::new(Some(gather)), client.driver.shared().env))
    }

    /// Reports progress to the client, if it asked for reports.
    #[napi(catch_unwind)]
    pub fn progress(
        &self,
        request: f64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<()> {
        let Some((client, token)) = client(&self.0, request) else { return Ok(()) };
        client
            .peer
            .report_in_place(token, |reply, now| reply.progress(progress, total, message.as_deref(), now));
        client.driver.appended()
    }

    /// Sends a log message to the client, if it asked for them; `data` is JSON text.
    #[napi(catch_unwind)]
    pub fn log(&self, request: f64, level: String, data: String, logger: Option<String>) -> Result<()> {
        let level = LogLevel::parse(&level)
            .ok_or_else(|| unusable(format!("{level:?} is no level of a log message")))?;
        let Some((client, token)) = client(&self.0, request) else { return Ok(()) };
        client.peer.report_in_place(token, |reply, _| reply.log(level, logger.as_deref(), &data));
        client.driver.appended()
    }

    /// Sends a request to a legacy client; `params` is JSON text. The number of the question, for the driver.
    #[napi(catch_unwind)]
    pub fn ask_client(&self, env: &Env, request: f64, method: String, params: String) -> Result<f64> {
        let failed = |why: String| raise(env, "AskFailedError", why, &[]);
        let found = self.0.find(request);
        let (peer, _) = found.ok_or_else(|| failed("the request is over".into()))?;
        let asked = self.0.shared().ask(&peer, &method, &params).map_err(|why| failed(why.to_string()))?;
        self.0.appended()?;
        Ok(asked)
    }

    pub(crate) fn answer(&self, request: f64, answer: Answer<'_>) -> Result<()> {
        let Some((client, token)) = client(&self.0, request) else { return Ok(()) };
        run::respond(&client, token, answer)?;
        client.driver.appended()
    }
}

#[napi]
impl Gather {
    /// Takes the whole of the chunks out.
    #[napi(catch_unwind)]
    pub fn whole(&self) -> Whole {
        let body = match self.0.take().map(core::ContentsGatherer::into_answer) {
            Some(Answer::Contents(result)) => {
                result.contents.into_iter().next().and_then(|contents| contents.body.into_plain())
            }
            _ => None,
        };
        match body {
            Some(PlainContents::Text(text)) => Whole { text: Some(text.into_owned()), bytes: None },
            Some(PlainContents::Blob(bytes)) => Whole { text: None, bytes: Some(bytes.into_owned().into()) },
            None => Whole { text: None, bytes: None },
        }
    }

    /// Takes a chunk of text or bytes.
    #[napi(catch_unwind)]
    pub fn push(&self, chunk: Either<String, &[u8]>) -> Result<()> {
        let pushed = match (self.0.borrow_mut().as_mut(), chunk) {
            (None, _) => Ok(()),
            (Some(gather), Either::A(text)) => gather.text(&text),
            (Some(gather), Either::B(bytes)) => gather.blob(bytes),
        };
        pushed.map_err(|error| match error {
            ReadError::SizeExceeded { limit, .. } => {
                raise(&self.1, "SizeExceededError", error.to_string(), &[("limit", &limit.to_string())])
            }
            _ => unusable("a stream of contents yields either text or bytes, not both".into()),
        })
    }
}

/// The joined chunks, for code that inspects them before they are encoded.
#[napi(object, object_from_js = false)]
pub struct Whole {
    /// The text.
    pub text: Option<String>,
    /// The bytes, if there is no text.
    pub bytes: Option<Buffer>,
}

/// An error whose members cannot be read is a failure as any other.
fn failure(kind: Option<&str>, facts: OptionValue) -> ReadError {
    let OptionValue::Members(mut facts) = facts else { return ReadError::Failed };
    let member = |name: &str| {
        let found = facts.iter().position(|(given, _)| given == name);
        found.map_or(OptionValue::None, |at| facts.swap_remove(at).1)
    };
    ReadError::from_parts(kind, member).ok().flatten().unwrap_or(ReadError::Failed)
}

fn contents<'a>(
    contents: Vec<Contents<'a>>,
    cache: Option<mcp_resources_engine::resource::CacheHint>,
) -> Answer<'a> {
    Answer::Contents(ReadResult { contents, cache })
}
