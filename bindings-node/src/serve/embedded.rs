//! Our part of a server of an SDK, and the event loop of its clients: the functions that `js/embedded.ts` calls.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::calls::about::RequestFields;
use crate::calls::answers::Answers;
use crate::calls::driver::{Client, Drive, Driver, LoopTask, RequestKey, Shared};
use crate::calls::elsewhere::Elsewhere;
use crate::calls::function::Callee;
use crate::calls::origin::HttpOrigin;
use crate::calls::run;
use crate::calls::server_state::Served;
use crate::calls::table::RequestTable;
use crate::serve::server::Server;
use crate::values::error::registration;
use crate::values::spelling::number;
use mcp_resources_engine::connection::{Events, RequestOutcome, RequestToken};
use mcp_resources_engine::embedded as core;
use mcp_resources_engine::http::SESSION_HEADER;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Millis;
use mcp_resources_runtime::transport::pump::PumpTimer;
use mcp_resources_runtime::transport::{EmbeddedClient, EventHandler, Peer, WorkRequest};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Our part of one server of an SDK, and the event loop of its clients.
#[napi]
pub struct Embedding(pub(super) Rc<Embedded>);

/// The state that the clients of one server share. Lives on the thread of its JavaScript.
pub(super) struct Embedded {
    pub(super) core: Arc<core::EmbeddedServer>,
    pub(super) shared: Shared,
    elsewhere: Arc<dyn EventHandler>,
    requests: RequestTable,
    /// The clients with a deadline.
    busy: RefCell<HashMap<ConnectionId, std::sync::Weak<EmbeddedClient>>>,
    timer: PumpTimer,
}

#[napi]
impl Embedding {
    /// Makes `server` part of another one. `driver` is the number that functions are called with; `drive` is called with the
    /// tasks of the event loop.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        server: &Server,
        driver: u32,
        #[napi(ts_arg_type = "(task: LoopTask, value: number, text: string | null) => void")] drive: Drive,
        adopt: bool,
    ) -> Result<Self> {
        let state = server.state.clone();
        let made = core::EmbeddedServer::new(state.engine()?, adopt, state.clock.now());
        let core = made.map_err(|error| registration(&state.env, &error, None))?;
        let shared = Shared::new(state.clone(), driver, drive, None);
        let elsewhere = Elsewhere::behind(state.registry.mounts(), &state.woken, &shared.inbox, None);
        let embedded = Rc::new(Embedded {
            core,
            shared,
            elsewhere,
            requests: RequestTable::default(),
            busy: RefCell::default(),
            timer: PumpTimer::default(),
        });
        let served: Weak<Embedded> = Rc::downgrade(&embedded);
        state.serve(served);
        Ok(Self(embedded))
    }

    /// Those of the SDK's names that `server` has too: of tools, or of prompts.
    #[napi(catch_unwind)]
    pub fn conflicts(server: &Server, prompts: bool, names: Vec<String>) -> Result<Vec<String>> {
        let engine = server.state.engine()?;
        let catalog = engine.catalog();
        let is_own = |name: &String| match prompts {
            true => catalog.prompt(name).is_some(),
            false => catalog.tool(name).is_some(),
        };
        Ok(names.into_iter().filter(is_own).collect())
    }

    /// Whether a transport must take messages of this method: the SDK answers all others.
    #[napi(catch_unwind)]
    pub fn concerns(&self, method: String, is_request: bool) -> bool {
        self.0.core.concerns(&method, is_request)
    }

    /// The header that names the session of a request over HTTP, in lower case.
    #[napi(catch_unwind, getter)]
    pub fn session_header(&self) -> &'static str {
        SESSION_HEADER
    }

    /// The object through which handlers answer.
    #[napi(catch_unwind, getter)]
    pub fn answers(&self) -> Answers {
        Answers(self.0.clone())
    }

    /// Ends the listens of all clients with their results, and the notifications of sessions.
    #[napi(catch_unwind)]
    pub fn shutdown(&self) -> Result<()> {
        self.0.shared.state.delivering(|| self.0.core.shutdown())
    }

    /// Takes the sentences for the log.
    #[napi(catch_unwind)]
    pub fn warnings(&self) -> Vec<String> {
        self.0.core.take_warnings()
    }

    /// Something was left for the loop.
    #[napi(catch_unwind)]
    pub fn work(&self) -> Result<()> {
        let driver: Rc<dyn Driver> = self.0.clone();
        let mut result = Ok(());
        for item in self.0.shared.inbox.take() {
            result = result.and(run::do_left(&driver, item));
        }
        result?;
        self.0.rest(None)
    }

    /// It is time.
    #[napi(catch_unwind)]
    pub fn timer(&self) -> Result<()> {
        self.0.tick()
    }

    /// The number of clients with a request that has a deadline: for tests.
    #[napi(catch_unwind, getter)]
    pub fn busy(&self) -> f64 {
        number(self.0.busy.borrow().len() as u64)
    }

    /// Stops calling the driver.
    #[napi(catch_unwind)]
    pub fn release(&self) {
        self.0.shared.release();
    }
}

impl Embedded {
    /// Handles the events of an outcome. Those of a request run in the context of `call`.
    pub(super) fn turn(
        self: &Rc<Self>,
        client: &Arc<EmbeddedClient>,
        outcome: RequestOutcome<'_>,
        call: Option<f64>,
    ) -> Result<()> {
        let RequestOutcome { events, misuse, .. } = outcome;
        self.shared.log_misuse(None, misuse)?;
        if !events.is_empty() {
            let clock = self.shared.state.clock.clone();
            let mut peer = Peer::embedded(client.clone(), clock, self.elsewhere.clone());
            if let Some(response) = call {
                peer = peer.with_peer_data(Arc::new(HttpOrigin { driver: self.shared.driver, response }));
            }
            run::handle_all(&Client { peer: Rc::new(peer), driver: self.clone() }, events)?;
        }
        let deadline = client.deadline();
        if deadline.is_some() {
            self.busy.borrow_mut().insert(client.id(), Arc::downgrade(client));
        }
        self.rest(deadline)
    }

    /// Handles what follows the end of requests.
    pub(super) fn ended(
        self: &Rc<Self>,
        client: &Arc<EmbeddedClient>,
        events: Events<'static>,
    ) -> Result<()> {
        self.turn(client, RequestOutcome { events, ..RequestOutcome::nothing() }, None)
    }

    /// Ends a client.
    pub(super) fn close(self: &Rc<Self>, client: &Arc<EmbeddedClient>) -> Result<()> {
        self.busy.borrow_mut().remove(&client.id());
        self.ended(client, client.close())
    }

    /// Lets requests run out of time.
    fn tick(self: &Rc<Self>) -> Result<()> {
        self.timer.fired();
        let engine = self.core.engine();
        let now = self.shared.state.clock.now();
        self.shared.state.delivering(|| engine.tick(now))?;
        let clients: Vec<_> = self.busy.take().into_values().filter_map(|client| client.upgrade()).collect();
        // Those that still have a deadline are busy again.
        clients.iter().try_for_each(|client| self.turn(client, client.tick(), None))
    }

    /// Makes the loop check its inbox, and arms its timer for the earlier of `deadline` and that of the
    /// engine, unless it fires earlier anyway.
    fn rest(&self, deadline: Option<Millis>) -> Result<()> {
        if self.shared.inbox.is_due() {
            self.shared.drive(LoopTask::Work, 0.0, None)?;
        }
        let deadlines = [deadline, self.core.engine().deadline()];
        let delay = self.timer.arm(&deadlines, self.shared.state.clock.now());
        delay.map_or(Ok(()), |delay| self.shared.drive(LoopTask::Alarm, number(delay), None))
    }
}

impl Served for Embedded {
    fn rearm(&self) -> Result<()> {
        self.rest(None)
    }

    /// The SDK ends its own connections.
    fn shutdown(&self) -> Result<()> {
        self.core.shutdown();
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.requests.len()
    }

    fn holds(&self) -> bool {
        true
    }
}

impl Driver for Embedded {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        self.requests.begin(peer, request, callee)
    }

    fn number(&self, key: RequestKey) -> Option<f64> {
        self.requests.number(key)
    }

    fn cancelled(&self, key: RequestKey) {
        self.requests.cancelled(key);
    }

    fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        self.requests.over(key)
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        self.requests.find(request)
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        self.requests.about(request)
    }

    fn appended(&self) -> Result<()> {
        self.rest(None)
    }
}
