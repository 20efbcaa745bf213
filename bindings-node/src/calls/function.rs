//! A user function as the runtime calls it: with numbers and texts; it answers by its return value or later.

use mcp_resources_runtime::registry::Number;
use napi::bindgen_prelude::*;
use napi::{Env, JsValue, sys};
use napi_derive::napi;
use std::sync::Arc;

/// A function, with its name for the log.
pub(crate) struct Callee {
    pub(crate) name: String,
    call: FunctionRef<Arguments, Unknown<'static>>,
}

/// The functions behind one number.
pub(crate) type Functions = mcp_resources_runtime::transport::WorkFunctions<Arc<Callee>>;

/// A user function.
#[napi(js_name = "NativeFunction")]
pub struct Function {
    pub(crate) callee: Arc<Callee>,
    /// Its number among the handlers, if it is registered on its own.
    pub(crate) number: Arc<Number>,
}

/// The arguments of one call: of any number.
pub struct Arguments(Vec<sys::napi_value>);

#[napi]
impl Function {
    /// `call` is called with the number of a channel, the number of a request, and the request's data. It returns a
    /// text as the answer, or `undefined` if it has answered or will answer later.
    #[napi(constructor)]
    pub fn new(
        name: String,
        #[napi(ts_arg_type = "(peer: number, request: number, ...values: any[]) => string | undefined")]
        call: FunctionRef<Arguments, Unknown<'static>>,
    ) -> Self {
        Self { callee: Arc::new(Callee { name, call }), number: Arc::default() }
    }
}

impl Callee {
    /// Calls it. The value lives as long as the handle scope around the call.
    pub(crate) fn call(&self, env: &Env, arguments: Arguments) -> Result<Unknown<'static>> {
        self.call.borrow_back(env)?.call(arguments)
    }
}

impl Arguments {
    /// Those that every call begins with.
    pub(crate) fn new(env: &Env, driver: u32, request: f64) -> Result<Self> {
        Ok(Self(vec![env.create_uint32(driver)?.raw(), env.create_double(request)?.raw()]))
    }

    pub(crate) fn push(&mut self, value: &Unknown<'_>) {
        self.0.push(value.raw());
    }

    pub(crate) fn push_text(&mut self, env: &Env, text: &str) -> Result<()> {
        self.0.push(env.create_string(text)?.raw());
        Ok(())
    }

    pub(crate) fn push_undefined(&mut self, env: &Env) -> Result<()> {
        self.push(&().into_unknown(env)?);
        Ok(())
    }
}

impl JsValuesTupleIntoVec for Arguments {
    fn into_vec(self, _env: sys::napi_env) -> Result<Vec<sys::napi_value>> {
        Ok(self.0)
    }
}
