//! The verification of one token, for runtimes that poll by themselves.

use super::{Verified, Verifier, Verifying};
use crate::sync::Mutex;
use mcp_resources_engine::http::DeniedToken;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A token being verified. Any thread may poll it.
pub struct TokenCheck(Mutex<Option<Verifying<'static>>>);

impl TokenCheck {
    /// Starts at the first poll.
    pub fn new(verifier: Arc<dyn Verifier>, token: String) -> Self {
        Self(Mutex::new(Some(Box::pin(async move { verifier.verify(&token).await }))))
    }

    /// The result, once. Afterwards [`DeniedToken::Unavailable`].
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Verified, DeniedToken>> {
        let mut checking = self.0.lock();
        let Some(future) = checking.as_mut() else { return Poll::Ready(Err(DeniedToken::Unavailable)) };
        let found = future.as_mut().poll(context);
        if found.is_ready() {
            *checking = None;
        }
        found
    }
}

impl fmt::Debug for TokenCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenCheck").finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    struct Later;

    impl Verifier for Later {
        fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
            let mut polled = false;
            Box::pin(std::future::poll_fn(move |_| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(Ok(Verified::new(token)));
                }
                Poll::Pending
            }))
        }
    }

    #[test]
    fn a_verdict_is_given_once() {
        let check = TokenCheck::new(Arc::new(Later), "ada".into());
        let mut context = Context::from_waker(Waker::noop());
        assert!(check.poll(&mut context).is_pending());
        let Poll::Ready(Ok(verified)) = check.poll(&mut context) else { panic!("it is verified") };
        assert_eq!(verified.principal.id(), "ada");
        assert!(matches!(check.poll(&mut context), Poll::Ready(Err(DeniedToken::Unavailable))));
    }
}
