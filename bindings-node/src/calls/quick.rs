//! The functions that are called for each message: plain functions, because a method of a class costs several times as
//! much.

use crate::calls::about::RequestFields;
use crate::calls::answers::Answers;
use crate::calls::driver::{Driver, client};
use crate::calls::run;
use mcp_resources_engine::connection::{Answer, Contents, ReadResult};
use napi::bindgen_prelude::*;
use napi::{Env, JsString};
use napi_derive::napi;
use std::borrow::Cow;
use std::rc::Rc;

/// For the handlers of one driver.
#[napi(object, object_from_js = false)]
pub struct Quick<'env> {
    /// Answers a read with a text.
    #[napi(ts_type = "(request: number, text: string, mimeType?: string) => void")]
    pub text: Function<'env, (), ()>,
    /// Answers a read with bytes.
    #[napi(ts_type = "(request: number, bytes: Uint8Array) => void")]
    pub blob: Function<'env, (), ()>,
    /// Whether the answer is still wanted.
    #[napi(ts_type = "(request: number) => boolean")]
    pub waits: Function<'env, (), bool>,
    /// The data of a request; `null` once it is answered.
    #[napi(ts_type = "(request: number) => RequestFields | null")]
    pub about: Function<'env, (), Option<RequestFields>>,
}

#[napi]
impl Answers {
    /// The functions that are called with each message.
    #[napi]
    pub fn quick<'env>(&self, env: &'env Env) -> Result<Quick<'env>> {
        let requests = &self.0;
        Ok(Quick {
            text: function(env, requests, "text", |requests, given| {
                let text = given.get::<JsString<'_>>(1)?.into_utf8()?;
                let mut contents = Contents::text(text.as_str()?);
                if given.length() > 2 {
                    contents.mime_type = given.get::<Option<String>>(2)?.map(Cow::Owned);
                }
                respond(requests, given.get(0)?, contents.into())
            })?,
            blob: function(env, requests, "blob", |requests, given| {
                respond(requests, given.get(0)?, Contents::blob(given.get::<&[u8]>(1)?).into())
            })?,
            waits: function(env, requests, "waits", |requests, given| {
                let found = requests.find(given.get(0)?);
                Ok(found.is_some_and(|(peer, token)| peer.with_reply(token, |_| ()).is_some()))
            })?,
            about: function(env, requests, "about", |requests, given| Ok(requests.about(given.get(0)?)))?,
        })
    }
}

/// Answers a read.
fn respond(requests: &Rc<dyn Driver>, request: f64, result: ReadResult<'_>) -> Result<()> {
    let Some((client, token)) = client(requests, request) else { return Ok(()) };
    run::respond(&client, token, Answer::Contents(result))?;
    client.driver.appended()
}

pub(crate) fn function<'env, T: ?Sized + 'static, R: ToNapiValue + 'static>(
    env: &'env Env,
    of: &Rc<T>,
    name: &str,
    call: impl Fn(&Rc<T>, &FunctionCallContext<'_>) -> Result<R> + 'static,
) -> Result<Function<'env, (), R>> {
    let of = of.clone();
    // A panic inside becomes an exception.
    env.create_function_from_closure(name, move |given| call(&of, &given))
}
