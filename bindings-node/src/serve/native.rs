//! The native HTTP server: its threads read, answer what the engine can, and write; the event loop runs the handlers.
//!
//! Law: a thread of the server never waits for JavaScript. It leaves its requests in the loop's inbox.

use crate::calls::answers::Answers;
use crate::calls::driver::Drive;
use crate::serve::auth::{TokenVerifier, VerifiedFields};
use crate::serve::server::Server;
use crate::serve::web::Web;
use crate::values::error::raise;
use crate::values::options::{PlainValue, set};
use crate::values::rules::{self, TlsFields};
use mcp_resources_runtime::provider::Providers;
use mcp_resources_runtime::transport::http as core;
use mcp_resources_runtime::transport::http::{Running, Tls, Verifier, Verifying};
use mcp_resources_runtime::transport::pump::HttpSide;
use napi::Env;
use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The native HTTP server.
#[napi]
pub struct HttpServer {
    web: Rc<Web>,
    running: RefCell<Option<Running>>,
    verifier: Arc<OnceLock<Arc<dyn Verifier>>>,
    scheme: &'static str,
    path: String,
}

/// The verifier: one of the core if it was set, else the driver.
struct Chosen {
    own: Arc<OnceLock<Arc<dyn Verifier>>>,
    driver: Arc<dyn Verifier>,
}

impl Verifier for Chosen {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        self.own.get().unwrap_or(&self.driver).verify(token)
    }
}

#[napi]
impl HttpServer {
    /// `bell` is called when `work` must be; see `Endpoint` for the rest.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        server: &Server,
        driver: u32,
        #[napi(ts_arg_type = "(task: LoopTask, value: number, text: string | null) => void")] drive: Drive,
        fields: PlainValue,
        tls: Option<TlsFields>,
        bell: Function<'_, (), ()>,
    ) -> Result<Self> {
        let state = server.state.clone();
        let tls = tls.map(|files| Tls::from_pem(files.cert, files.key)).transpose();
        let tls =
            tls.map_err(|error| raise(&state.env, "RegistrationError", format!("tls: {error}"), &[]))?;
        let mut given = state.http_options();
        if fields.has("auth") {
            (given.identity, given.verifier) = (None, None);
        }
        set(&mut given.rules, fields)?;
        given.tls = tls.or(given.tls);
        let scheme = if given.tls.is_some() { "https" } else { "http" };
        let path = given.rules.path.clone();
        let engine = state.engine()?;
        let clock = state.clock.clone();
        // It keeps the process alive until the inbox is closed.
        let bell = bell.build_threadsafe_function::<()>().build()?;
        let wake = move || {
            let _ = bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        let verifier = Arc::<OnceLock<_>>::default();
        let web = Web::new(state, driver, drive, Some(Arc::new(wake)), |shared| {
            if given.rules.auth.is_some() && given.verifier.is_none() {
                let chosen = Chosen { own: verifier.clone(), driver: shared.inbox.reach() };
                given.verifier = Some(Arc::new(chosen));
            }
            let functions = Providers::before(shared.state.registry.mounts().clone(), shared.inbox.reach());
            let made = core::HttpServer::new(&engine, clock, given, functions);
            made.map(HttpSide::Native).map_err(|error| rules::refused(&shared.env, &error))
        })?;
        Ok(Self { web, running: RefCell::default(), verifier, scheme, path })
    }

    /// The object through which handlers answer.
    #[napi(catch_unwind, getter)]
    pub fn answers(&self) -> Answers {
        Answers(self.web.clone())
    }

    /// The scheme of its URL.
    #[napi(catch_unwind, getter)]
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// The path of its URL.
    #[napi(catch_unwind, getter)]
    pub fn path(&self) -> String {
        self.path.clone()
    }

    /// Sets a verifier for tokens instead of the driver; call it before listening.
    #[napi(catch_unwind)]
    pub fn verify_with(&self, verifier: &TokenVerifier) {
        let _ = self.verifier.set(verifier.shared());
    }

    /// Starts to listen, on threads of its own. Returns the port.
    #[napi(catch_unwind)]
    pub fn listen(&self, env: &Env, host: String, port: u16) -> Result<u16> {
        let listened = || -> io::Result<Option<Running>> {
            let reach = self.web.shared.inbox.reach();
            let listeners = core::listen((&*host, port))?;
            self.web.side.native().map(|server| server.run(listeners, 1, move || reach.ended())).transpose()
        };
        let running = listened().map_err(|error| system(env, &error))?;
        let bound = running.as_ref().map_or(port, |running| running.address().port());
        self.running.replace(running);
        Ok(bound)
    }

    /// A thread has something for the loop.
    #[napi(catch_unwind)]
    pub fn work(&self) -> Result<()> {
        self.web.work()
    }

    /// The token is good.
    #[napi(catch_unwind)]
    pub fn accept(&self, id: f64, verified: VerifiedFields) {
        if let Some(reply) = self.web.shared.token_reply(id) {
            reply.accept(verified.into());
        }
    }

    /// The token is not good, or that cannot be found out now.
    #[napi(catch_unwind)]
    pub fn refuse(&self, id: f64, unavailable: bool) {
        if let Some(reply) = self.web.shared.token_reply(id) {
            reply.refuse(unavailable);
        }
    }

    /// Accepts no further requests; those in flight get the grace period. The driver is called at the end.
    #[napi(catch_unwind)]
    pub fn shutdown(&self) {
        if let Some(running) = &*self.running.borrow() {
            running.shutdown();
        }
    }

    /// Drops the threads; the driver gets no more calls.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.running.take();
        self.web.shared.inbox.close();
        self.web.shared.release();
    }
}

/// Converts an error of the system, with Node's code for it.
fn system(env: &Env, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        io::ErrorKind::PermissionDenied => "EACCES",
        _ => "EIO",
    };
    raise(env, "System", error.to_string(), &[("code", code)])
}
