//! A fixed list of bearer tokens.

use super::options::{Verified, Verifier, Verifying};
use mcp_resources_engine::http::{DeniedToken, RulesError, is_token};
use sha2::{Digest, Sha256};
use std::fmt;
use std::hint::black_box;

/// Verifies tokens with a fixed list: for tests, or for a few clients with tokens from an administrator. Each should have
/// at least 128 random bits.
///
/// The SHA-256 of a token is compared with all entries, in time that does not depend on where they differ. The tokens
/// themselves are not stored.
///
/// ```
/// use mcp_resources::{StaticTokens, Verified};
///
/// let tokens = StaticTokens::new([("3q2-7wAR…".replace('…', "x"), Verified::new("ada").scopes(["notes:read"]))])?;
/// # Ok::<(), mcp_resources::RulesError>(())
/// ```
pub struct StaticTokens(Vec<([u8; 32], Verified)>);

impl StaticTokens {
    /// Takes each token with the result of its verification.
    ///
    /// # Errors
    /// [`RulesError`] if a token is not valid in an `Authorization` header (RFC 6750, section 2.1). The message does
    /// not contain the token.
    pub fn new<T: AsRef<str>>(tokens: impl IntoIterator<Item = (T, Verified)>) -> Result<Self, RulesError> {
        let entry = |(token, verified): (T, Verified)| {
            let token = token.as_ref();
            let digest = || (Sha256::digest(token).into(), verified);
            let expected = "each to be made of letters, digits and -._~+/, with = at the end at most";
            is_token(token).then(digest).ok_or_else(|| RulesError::new("tokens", expected))
        };
        tokens.into_iter().map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// Takes the SHA-256 of each token, where the tokens themselves are not known.
    pub fn from_digests(digests: impl IntoIterator<Item = ([u8; 32], Verified)>) -> Self {
        Self(digests.into_iter().collect())
    }

    /// Verifies a token at once.
    ///
    /// # Errors
    /// [`DeniedToken::Invalid`] if the list does not have it.
    pub fn find(&self, token: &str) -> Result<Verified, DeniedToken> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = Err(DeniedToken::Invalid);
        for (known, verified) in &self.0 {
            if is_same(known, &digest) {
                found = Ok(verified.clone());
            }
        }
        found
    }
}

impl Verifier for StaticTokens {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(std::future::ready(self.find(token)))
    }
}

fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    differences == 0
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens").field("tokens", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn ask(tokens: &StaticTokens, token: &str) -> Result<String, DeniedToken> {
        match tokens.verify(token).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found.map(|found| found.principal.id().to_owned()),
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn only_tokens_of_the_list_are_good() {
        let tokens = [("abc", Verified::new("ada")), ("abd==", Verified::new("bob"))];
        let tokens = StaticTokens::new(tokens).unwrap();
        assert_eq!(ask(&tokens, "abc").as_deref(), Ok("ada"));
        assert_eq!(ask(&tokens, "abd==").as_deref(), Ok("bob"));
        for bad in ["", "ab", "abcd", "ABC", "abd"] {
            assert_eq!(ask(&tokens, bad), Err(DeniedToken::Invalid), "{bad}");
        }
        assert!(!format!("{tokens:?}").contains("abc"));
        let error = StaticTokens::new([("a secret", Verified::new("ada"))]).unwrap_err();
        assert!(!error.to_string().contains("a secret"), "{error}");
    }
}
