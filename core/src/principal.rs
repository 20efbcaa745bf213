//! Who asks, and what a verified token lets them do.

use crate::now::Millis;
use std::borrow::Cow;
use std::sync::Arc;

/// Who asks: the subject of a verified token, or the local process on stdio.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    id: Arc<str>,
    grant: Arc<Grant>,
    expires: Option<Millis>,
}

/// What a principal brings with it: the scopes of its token, with those that they include, and its claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grant {
    scopes: Vec<String>,
    claims: Option<Arc<str>>,
}

impl Principal {
    /// The peer at the other end of a pipe: it runs as the same user as the server.
    pub fn local() -> Arc<Self> {
        Self::new("")
    }

    /// A principal with a verified identity and no scopes. `id` is what cursors and request states are bound to.
    pub fn new(id: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new(Self { id: id.into(), grant: Arc::default(), expires: None })
    }

    /// The same identity, claims and expiry with these scopes.
    #[must_use]
    pub fn with_scopes(&self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        let scopes = scopes.into_iter().map(Into::into).collect();
        let grant = Grant { scopes, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() })
    }

    /// The same identity, scopes and expiry with these claims, a JSON object.
    #[must_use]
    pub fn with_claims(&self, claims: Option<Arc<str>>) -> Arc<Self> {
        let grant = Grant { claims, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() })
    }

    /// The same identity and scopes, valid until `expires`: milliseconds since 1970-01-01T00:00:00Z; `None` is without
    /// an end. A host sets it from the token, so that a stream ends with the token that opened it.
    #[must_use]
    pub fn with_expiry(&self, expires: Option<Millis>) -> Arc<Self> {
        Arc::new(Self { expires, ..self.clone() })
    }

    /// When its token expires: milliseconds since 1970-01-01T00:00:00Z. Default `None`: never.
    pub fn expires(&self) -> Option<Millis> {
        self.expires
    }

    /// What sets apart those who may be given different contents, identity and scopes as one text: what is kept for one
    /// is not given to another.
    pub(crate) fn authority(&self) -> Cow<'_, str> {
        // Not found at the beginning of the short form.
        const LONG: char = '\0';
        let scopes = &self.grant.scopes;
        if scopes.is_empty() && !self.id.starts_with(LONG) {
            return Cow::Borrowed(&self.id);
        }
        let mut scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        scopes.sort_unstable();
        Cow::Owned(format!("{LONG}{}:{}{}", self.id.len(), self.id, scopes.join(" ")))
    }

    /// Whether it is the local process, or somebody of whom nothing is known: no token stands behind it.
    pub fn is_local(&self) -> bool {
        self.id.is_empty()
    }

    /// The identity; empty for the local process.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The scopes of its token.
    pub fn scopes(&self) -> &[String] {
        &self.grant.scopes
    }

    /// The claims of its token, a JSON object; `None` if there is no token, or its verifier gave none. Two tokens of one
    /// principal share what is kept of reads, whatever their claims.
    pub fn claims(&self) -> Option<&str> {
        self.grant.claims.as_deref()
    }
}
