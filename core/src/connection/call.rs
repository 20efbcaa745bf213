//! Foreign methods: the extension door.

use super::event::{CallRequest, Event};
use super::reply::Task;
use super::request::{Request, unknown_method};
use super::{Connection, Outcome};
use std::borrow::Cow;

impl Connection {
    pub(super) fn call<'m>(
        &mut self,
        request: Request<'m>,
        method: Cow<'m, str>,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let Some(handler) = self.engine.extension(&method).map(|extension| extension.handler) else {
            return unknown_method(&self.wording(&request), &method, out);
        };
        let (params, timeout) = (request.object(), self.engine.limits().read_timeout);
        self.wait(request, (Task::Call, timeout, None), out, |token, caller| {
            Event::Call(CallRequest { token, handler, method, params, caller })
        })
    }
}
