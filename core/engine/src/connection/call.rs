//! Foreign methods: the extension door.

use super::event::{CallRequest, Event};
use super::inputs::Retry;
use super::reply::{CallTask, Task};
use super::request::{Request, unknown_method};
use super::{Connection, Outcome};
use crate::guard::RateClass;
use crate::version::INVALID_PARAMS;
use std::borrow::Cow;

impl Connection {
    pub(super) fn call<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: Cow<'m, str>,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let Some(extension) = self.engine.extension(&method) else {
            return unknown_method(&self.wording(request), &method, out);
        };
        let (handler, named) = (extension.handler, extension.name_param.as_deref());
        let name = named.and_then(|named| request.optional_text(named).ok().flatten()).unwrap_or_default();
        let most = self.engine.limits().uri;
        if name.len() > most {
            let why = format!("Invalid params: {} is longer than {most} bytes", named.unwrap_or_default());
            return self.refuse(request, (INVALID_PARAMS, &why), out);
        }
        if let Some(refused) = self.refuse_rate(request, RateClass::Call, None, out) {
            return refused;
        }
        let retry = match self.retry(request, (&method, &name)) {
            Ok(retry) => retry,
            Err(message) => return self.refuse(request, (INVALID_PARAMS, &message), out),
        };
        let task = CallTask {
            method: method.clone().into(),
            name: name.into(),
            asker: request.asker(),
            retried: retry.retried,
        };
        let (params, timeout) = (request.object(), self.engine.limits().read_timeout);
        self.wait(request, (Task::Call(Box::new(task)), timeout, None), out, |token, caller| {
            let Retry { inputs, state, .. } = retry;
            Event::Call(CallRequest { token, handler, method, params, inputs, state, caller })
        })
    }
}
