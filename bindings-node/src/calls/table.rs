//! The requests of one driver that functions work on, by the numbers that JavaScript has for them.

use crate::calls::about::{About, RequestFields};
use crate::calls::driver::RequestKey;
use crate::calls::function::Callee;
use crate::values::spelling::{number, whole};
use mcp_resources_engine::connection::RequestToken;
use mcp_resources_runtime::transport::{Peer, WorkRequest};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of remembered requests whose client has left and whose function has not answered: requests that are
/// never answered would otherwise be kept for ever.
const LATE: usize = 1_024;

/// The requests of several connections. Lives on the thread of its JavaScript.
#[derive(Default)]
pub(crate) struct RequestTable {
    waiting: RefCell<HashMap<u64, Waiting>>,
    numbers: RefCell<HashMap<RequestKey, u64>>,
    /// The remembered requests that are no longer wanted, oldest first. Some may have been answered since.
    late: RefCell<VecDeque<u64>>,
    last: Cell<u64>,
}

struct Waiting {
    peer: Rc<Peer>,
    token: RequestToken,
    about: About,
    callee: Arc<Callee>,
}

impl RequestTable {
    /// Adds a request, which `callee` is to answer. Its number.
    pub(crate) fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        self.last.set(self.last.get() + 1);
        let own = self.last.get();
        let token = request.token;
        let mut about = About::default();
        about.begin(request);
        let waiting = Waiting { peer: peer.clone(), token, about, callee: callee.clone() };
        self.waiting.borrow_mut().insert(own, waiting);
        self.numbers.borrow_mut().insert(RequestKey { connection: peer.connection(), token }, own);
        number(own)
    }

    /// The number of a request.
    pub(crate) fn number(&self, key: RequestKey) -> Option<f64> {
        self.numbers.borrow().get(&key).map(|request| number(*request))
    }

    /// Remembers that the answer to a request is no longer wanted. If there are too many, the oldest is forgotten.
    pub(crate) fn cancelled(&self, key: RequestKey) {
        let Some(request) = self.numbers.borrow().get(&key).copied() else { return };
        let mut late = self.late.borrow_mut();
        late.push_back(request);
        if late.len() <= LATE {
            return;
        }
        late.retain(|request| self.waiting.borrow().contains_key(request));
        let oldest = if late.len() > LATE { late.pop_front() } else { None };
        drop(late);
        let waiting = oldest.and_then(|oldest| self.waiting.borrow_mut().remove(&oldest));
        let Some(Waiting { peer, token, .. }) = waiting else { return };
        self.numbers.borrow_mut().remove(&RequestKey { connection: peer.connection(), token });
        peer.abandon(token);
    }

    /// Removes a request that is answered. Returns the function that was to answer it.
    pub(crate) fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        let request = self.numbers.borrow_mut().remove(&key)?;
        let waiting = self.waiting.borrow_mut().remove(&request)?;
        Some(waiting.callee)
    }

    /// The client of a request, and its token.
    pub(crate) fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        let waiting = self.waiting.borrow();
        let Waiting { peer, token, .. } = waiting.get(&whole(request))?;
        Some((peer.clone(), *token))
    }

    /// The data of a request; `None` once it is answered.
    pub(crate) fn about(&self, request: f64) -> Option<RequestFields> {
        self.waiting.borrow().get(&whole(request))?.about.fields()
    }

    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }
}
