//! Custom methods: those that an [`Extension`](crate::engine::Extension) declares.

use super::answer::{Answer, RawResult};
use super::contents;
use super::event::{CallRequest, Event};
use super::inputs::{InputClient, Retry};
use super::named::or_never;
use super::reply::{ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request, unknown_method};
use super::response;
use super::{Connection, RequestOutcome};
use crate::catalog::HandlerId;
use crate::engine::Engine;
use crate::guard::RateClass;
use crate::jsonrpc::ObjectWriter;
use crate::now::Now;
use crate::resource::CacheHint;
use crate::version::{self, INVALID_PARAMS};
use std::borrow::Cow;

/// A call that waits for its handler.
#[derive(Debug)]
pub(super) struct CallTask {
    method: String,
    /// The value of the extension's `name_param`, for which the method is called.
    name: String,
    pub(super) asker: InputClient,
    /// Whether the request carried input responses or a state: its result must not be cached.
    retried: bool,
}

impl Connection {
    pub(super) fn call<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: Cow<'m, str>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let Some(extension) = self.engine.custom_method(&method) else {
            return unknown_method(&self.response_writer(request), &method, out);
        };
        let handler = extension.handler;
        let named = extension.name_param.as_deref().unwrap_or_default();
        let name = request.optional_text(named).ok().flatten().filter(|_| !named.is_empty());
        let name = name.unwrap_or_default();
        let max = self.engine.limits().uri;
        if name.len() > max {
            let why = format!("Invalid params: {named} is longer than {max} bytes");
            return self.refuse(request, INVALID_PARAMS, &why, out);
        }
        if let Some(refused) = self.refuse_rate(request, RateClass::Call, None, out) {
            return refused;
        }
        let retry = match self.retry(request, &method, &name) {
            Ok(retry) => retry,
            Err(message) => return self.refuse(request, INVALID_PARAMS, &message, out),
        };
        let task = CallTask {
            method: method.clone().into(),
            name: name.into(),
            asker: request.asker(),
            retried: retry.retried,
        };
        let params = request.object();
        let timeout = extension.timeout.map_or(self.engine.limits().read_timeout, or_never);
        let pending =
            PendingRequest { task: ReplyTask::Call(Box::new(task)), timeout, uri: None, flight: None };
        self.wait(request, pending, out, |token, caller| {
            let Retry { inputs, state, .. } = retry;
            Event::Call(CallRequest { token, handler, method, params, inputs, state, caller })
        })
    }
}

impl Connection {
    /// Passes a call of a tool or prompt of another server on, with its params as they are: answers of the client and the
    /// other server's state included.
    pub(super) fn call_elsewhere<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: &str,
        handler: HandlerId,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let method = method.to_owned();
        let task =
            CallTask { method: method.clone(), name: String::new(), asker: request.asker(), retried: true };
        let params = request.object();
        let pending = PendingRequest {
            task: ReplyTask::Call(Box::new(task)),
            timeout: or_never(self.engine.limits().call_timeout),
            uri: None,
            flight: None,
        };
        self.wait(request, pending, out, |token, caller| {
            let method = method.into();
            Event::Call(CallRequest { token, handler, method, params, inputs: None, state: None, caller })
        })
    }
}

impl CallTask {
    pub(super) fn write(
        &self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> WrittenReply {
        match answer {
            Answer::Raw(result) => self.result(context, &result, out),
            Answer::InputRequired(request) => {
                context.input(&self.asker.ask(&request, &self.method, &self.name), now, out)
            }
            Answer::Failed(error) => context.fail(error, out),
            _ => context.wrong_sort(out),
        }
    }

    fn result(&self, context: &ReplyContext, result: &RawResult<'_>, out: &mut Vec<u8>) -> WrittenReply {
        write_raw(context, result, out, |writer| {
            if let Some(cache) = self.list_cache(&context.engine).filter(|_| result.is_complete()) {
                contents::missing_hint(writer, &context.response_writer(), &result.members, cache);
            }
        })
    }

    /// The caching hint for the result of a custom list method that has none itself.
    fn list_cache(&self, engine: &Engine) -> Option<CacheHint> {
        let hint = if self.retried { CacheHint::default() } else { engine.options().list_cache };
        version::is_list(&self.method).then(|| engine.shared(hint))
    }
}

/// Writes a result as the handler gave it, and the members that `more` adds.
pub(super) fn write_raw(
    context: &ReplyContext,
    result: &RawResult<'_>,
    out: &mut Vec<u8>,
    more: impl FnOnce(&mut ObjectWriter<'_>),
) -> WrittenReply {
    let members = response::members_of(&result.members);
    let meta = response::members_of(result.meta.as_deref().unwrap_or("{}"));
    let (Some(members), Some(meta)) = (members, meta) else {
        return context.misuse("the result and its _meta must be JSON objects".into(), out);
    };
    let result_type = result.result_type.as_deref().unwrap_or(response::COMPLETE);
    context.response_writer().result(out, result_type, &meta, |writer| {
        writer.members(members.as_bytes());
        more(writer);
    });
    WrittenReply::default()
}
