//! State shared by the calls of one server: its functions, its waker, and the pipes and endpoints that it serves.

use crate::calls::function::Functions;
use crate::calls::redact::{Look, Redactions};
use crate::calls::woken::Woken;
use crate::values::error::registration;
use mcp_resources_engine::engine::{Engine, TimerRegistration};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Millis;
use mcp_resources_runtime::registry::Registry;
use mcp_resources_runtime::transport::EngineClock;
use mcp_resources_serve::ServedConfig;
use napi::Env;
use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunction;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The state shared by all channels of a server.
pub(crate) struct ServerState {
    pub(crate) env: Env,
    pub(crate) clock: Arc<EngineClock>,
    pub(crate) registry: Registry<Functions>,
    pub(crate) woken: Arc<Woken>,
    /// Contents read by providers, queued for the `redact` function.
    pub(crate) redactions: Arc<Redactions>,
    /// The `redact` function.
    pub(crate) redact: OnceCell<Look>,
    look: FunctionRef<(), ()>,
    /// Keeps the process alive while other threads have requests.
    held: RefCell<Option<Held>>,
    timer_registration: OnceCell<TimerRegistration>,
    /// The configuration file that the server was made from.
    pub(crate) config: OnceCell<ServedConfig>,
    pipes: RefCell<HashMap<ConnectionId, Weak<dyn Served>>>,
    endpoints: RefCell<Vec<Weak<dyn Served>>>,
}

/// A pipe or an endpoint that serves clients.
pub(crate) trait Served {
    /// Delivers to the client of a pipe.
    fn deliver(self: Rc<Self>) -> Result<()> {
        Ok(())
    }

    /// Arms the timer of the loop for its earliest deadline, and sees to responses.
    fn rearm(&self) -> Result<()>;

    /// Ends its open listens with their results.
    fn shutdown(&self) -> Result<()>;

    /// The number of remembered requests over HTTP.
    fn waiting(&self) -> usize {
        0
    }

    /// Whether nothing but its requests may keep the process alive, as for a client in the same process.
    fn holds(&self) -> bool {
        false
    }
}

/// A function that can be called on any thread, and keeps the process alive.
type Held = ThreadsafeFunction<(), (), (), Status, false>;

impl ServerState {
    /// `env` is that of the loop's thread.
    pub(crate) fn new(env: Env, registry: Registry<Functions>) -> Result<Rc<Self>> {
        let own = Rc::new(OnceCell::<Weak<Self>>::new());
        let found = own.clone();
        let look = env.create_function_from_closure("look", move |_| {
            found.get().and_then(Weak::upgrade).map_or(Ok(()), |state| state.look())
        })?;
        let state = Rc::new(Self {
            env,
            clock: registry.clock().clone(),
            registry,
            woken: Woken::new(&look)?,
            redactions: Arc::default(),
            redact: OnceCell::new(),
            look: look.create_ref()?,
            held: RefCell::default(),
            timer_registration: OnceCell::new(),
            config: OnceCell::new(),
            pipes: RefCell::default(),
            endpoints: RefCell::default(),
        });
        let _ = own.set(Rc::downgrade(&state));
        Ok(state)
    }

    pub(crate) fn engine(&self) -> Result<Arc<Engine>> {
        let engine = self.registry.engine().map_err(|error| registration(&self.env, &error, None))?;
        self.timer_registration.get_or_init(|| engine.register_timer(self.woken.waker(None)));
        Ok(engine)
    }

    /// Registers a pipe.
    pub(crate) fn join(&self, id: ConnectionId, pipe: Weak<dyn Served>) {
        self.pipes.borrow_mut().insert(id, pipe);
    }

    /// Removes a pipe.
    pub(crate) fn leave(&self, id: ConnectionId) -> Result<()> {
        self.pipes.borrow_mut().remove(&id);
        self.hold()
    }

    /// When time must pass for the engine.
    fn deadline(&self) -> Option<Millis> {
        self.registry.made().and_then(|engine| engine.deadline())
    }

    /// Makes a change, and delivers its notifications before it returns.
    pub(crate) fn delivering<R>(&self, change: impl FnOnce() -> R) -> Result<R> {
        let result = self.woken.during(change);
        self.look()?;
        Ok(result)
    }

    /// Registers an endpoint.
    pub(crate) fn serve(&self, endpoint: Weak<dyn Served>) {
        let mut endpoints = self.endpoints.borrow_mut();
        endpoints.retain(|endpoint| endpoint.strong_count() > 0);
        endpoints.push(endpoint);
    }

    /// Ends every open listen with its result.
    pub(crate) fn shutdown(&self) -> Result<()> {
        self.pipes().iter().chain(&self.endpoints()).try_for_each(|served| served.shutdown())
    }

    /// The number of remembered requests over HTTP.
    pub(crate) fn waiting(&self) -> usize {
        self.endpoints().iter().map(|endpoint| endpoint.waiting()).sum()
    }

    /// Delivers to the pipes that have something to hear, and makes the loop look at responses and at the time.
    fn look(&self) -> Result<()> {
        let Some(pipes) = self.woken.take() else { return Ok(()) };
        self.hold()?;
        if let Some(redact) = self.redact.get() {
            self.redactions.look(&self.env, redact)?;
        }
        for id in pipes {
            let pipe = self.pipes.borrow().get(&id).and_then(Weak::upgrade);
            if let Some(pipe) = pipe {
                pipe.deliver()?;
            }
        }
        self.endpoints().iter().try_for_each(|endpoint| endpoint.rearm())?;
        if self.deadline().is_some() {
            self.pipes().iter().try_for_each(|pipe| pipe.rearm())?;
        }
        Ok(())
    }

    /// Keeps the process alive while other threads have requests of pipes, or no longer. Over HTTP the socket or the timer of
    /// the response does.
    fn hold(&self) -> Result<()> {
        let is_wanted = self.woken.is_pending()
            && (!self.pipes.borrow().is_empty() || self.endpoints().iter().any(|endpoint| endpoint.holds()));
        if is_wanted == self.held.borrow().is_some() {
            return Ok(());
        }
        let held = if is_wanted {
            Some(self.look.borrow_back(&self.env)?.build_threadsafe_function().build()?)
        } else {
            None
        };
        drop(self.held.replace(held));
        Ok(())
    }

    fn endpoints(&self) -> Vec<Rc<dyn Served>> {
        self.endpoints.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    fn pipes(&self) -> Vec<Rc<dyn Served>> {
        self.pipes.borrow().values().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for ServerState {
    fn drop(&mut self) {
        self.redactions.close();
    }
}
