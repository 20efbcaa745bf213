//! Items that other threads leave for an event loop.

use crate::calls::client::{Client, DeliveryReady, Runtime};
use crate::calls::run;
use crate::serve::auth::VerifiedParts;
use crate::values::error;
use mcp_resources_runtime::transport::Peer;
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox, TokenReply};
use pyo3::prelude::*;

/// A token that waits for its verifier.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Verification(pub(crate) TokenReply);

#[pymethods]
impl Verification {
    /// It is good.
    fn accept(&self, verified: VerifiedParts) {
        self.0.accept(verified.into());
    }

    /// It is not good, or that cannot be found out now. Nothing if it is known already.
    fn refuse(&self, unavailable: bool) {
        self.0.refuse(unavailable);
    }
}

/// Does what other threads have left for the loop. `client` finds whose work it is.
pub(crate) fn take(
    py: Python<'_>,
    inbox: &RequestInbox<DeliveryReady>,
    runtime: &Runtime,
    client: impl Fn(Peer) -> Client,
) -> PyResult<()> {
    let mut result = Ok(());
    for item in inbox.take() {
        result = result.and(match item {
            InboxItem::Work(asked, work) => run::do_all(py, &client(asked), [*work]),
            InboxItem::Verify(token, verdict) => runtime.drive(py, "verify", (token, Verification(verdict))),
            InboxItem::Misuse(what) => {
                error::log_misuse(py, "", Some(&what));
                Ok(())
            }
            InboxItem::Warning(what) => {
                error::log(py, &error::REFUSED, (what,));
                Ok(())
            }
            InboxItem::Ended => runtime.drive(py, "ended", ()),
            InboxItem::Own(DeliveryReady(callback)) => callback.call0(py).map(drop),
        });
    }
    result
}
