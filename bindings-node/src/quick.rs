//! What crosses with each message, as plain functions: a method of a class costs several times as much.

use crate::about::RequestFields;
use crate::calls::place;
use crate::channel::Channel;
use crate::link::{Link, token_of};
use mcp_resources::connection::{Answer, Contents, ReadResult};
use napi::bindgen_prelude::*;
use napi::{Env, JsString};
use napi_derive::napi;
use std::borrow::Cow;
use std::rc::Rc;

/// See the module. Each belongs to one channel.
#[napi(object, object_from_js = false)]
pub struct Quick<'env> {
    /// So many bytes are in the buffer: answers what can be answered, starts handlers, writes.
    #[napi(ts_type = "(count: number) => void")]
    pub received: Function<'env, (), ()>,
    /// Writes what waits.
    #[napi(ts_type = "() => void")]
    pub flush: Function<'env, (), ()>,
    /// Answers a read with a text.
    #[napi(ts_type = "(request: number, text: string, mimeType?: string) => void")]
    pub text: Function<'env, (), ()>,
    /// Answers a read with bytes.
    #[napi(ts_type = "(request: number, bytes: Uint8Array) => void")]
    pub blob: Function<'env, (), ()>,
    /// Whether somebody waits for the answer.
    #[napi(ts_type = "(request: number) => boolean")]
    pub waits: Function<'env, (), bool>,
    /// What is known of a request; `null` once it is answered.
    #[napi(ts_type = "(request: number) => RequestFields | null")]
    pub about: Function<'env, (), Option<RequestFields>>,
}

#[napi]
impl Channel {
    /// The functions for this channel that are called with each message.
    #[napi]
    pub fn quick<'env>(&self, env: &'env Env, buffer: Uint8Array) -> Result<Quick<'env>> {
        let link = &self.link;
        Ok(Quick {
            received: function(env, link, "received", move |link, given| {
                let count: u32 = given.get(0)?;
                link.push(buffer.get(..count as usize).unwrap_or_default())
            })?,
            flush: function(env, link, "flush", |link, _| {
                link.flush_is_due.set(false);
                link.settle()
            })?,
            text: function(env, link, "text", |link, given| {
                let text = given.get::<JsString<'_>>(1)?.into_utf8()?;
                let mut contents = Contents::text(text.as_str()?);
                if given.length() > 2 {
                    contents.mime_type = given.get::<Option<String>>(2)?.map(Cow::Owned);
                }
                link.answer(given.get(0)?, contents.into())
            })?,
            blob: function(env, link, "blob", |link, given| {
                link.answer(given.get(0)?, Contents::blob(given.get::<&[u8]>(1)?).into())
            })?,
            waits: function(env, link, "waits", |link, given| Ok(link.pipe.waits(token_of(given.get(0)?))))?,
            about: function(env, link, "about", |link, given| {
                let request = given.get(0)?;
                let abouts = link.abouts.borrow();
                Ok(abouts.get(place(token_of(request))).and_then(|about| about.fields(request)))
            })?,
        })
    }
}

impl Link {
    /// Answers a read.
    fn answer(self: &Rc<Self>, request: f64, result: ReadResult<'_>) -> Result<()> {
        self.respond(token_of(request), Answer::Contents(result))?;
        self.appended()
    }
}

fn function<'env, R: ToNapiValue + 'static>(
    env: &'env Env,
    link: &Rc<Link>,
    name: &str,
    call: impl Fn(&Rc<Link>, &FunctionCallContext<'_>) -> Result<R> + 'static,
) -> Result<Function<'env, (), R>> {
    let link = link.clone();
    // A panic inside becomes an exception.
    env.create_function_from_closure(name, move |given| call(&link, &given))
}
