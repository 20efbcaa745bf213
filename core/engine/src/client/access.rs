//! The allow-list of a client: globs over canonical URIs.
//!
//! Law: without an entry no URI is allowed. Every requested URI, and every URI that a server returns, is checked in its
//! canonical form.
//!
//! Servers list texts that are not URIs: with spaces, backslashes, a single `%`, or without a scheme. They are sent as they
//! were listed. Globs are compared with the text in which the characters that no URI has are percent-encoded; a text
//! that no encoding makes a URI matches no glob.

use super::ClientError;
use crate::guard::{Effort, Glob, Globs, Guard, InvalidGlob, Policy};
use crate::principal::Principal;
use mcp_resources_template::UriTemplate;
use mcp_resources_template::uri::{MAX_URI, hex_pair, normalize, push_encoded};
use std::borrow::Cow;
use std::sync::Arc;

/// The allow-list as it is written in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowList {
    /// Nothing: the key is missing.
    #[default]
    Nothing,
    /// Everything: `"*"`.
    Everything,
    /// The URIs that one of these globs matches.
    Globs(Vec<String>),
}

/// A compiled allow-list.
#[derive(Clone, Debug)]
pub struct Access {
    guard: Arc<Guard>,
    principal: Arc<Principal>,
}

impl Access {
    /// Compiles an allow-list.
    ///
    /// # Errors
    /// [`InvalidGlob`], with the text of the first invalid glob.
    pub fn new(allowed: &AllowList) -> Result<Self, (String, InvalidGlob)> {
        let globs = match allowed {
            AllowList::Everything => None,
            AllowList::Nothing => Some(Vec::new()),
            AllowList::Globs(globs) => Some(globs.clone()),
        };
        for glob in globs.iter().flatten() {
            Glob::parse(glob).map_err(|error| (glob.clone(), error))?;
        }
        Ok(Self::from_globs(globs))
    }

    /// Allows everything.
    pub fn everything() -> Self {
        Self::from_globs(None)
    }

    fn from_globs(globs: Option<Vec<String>>) -> Self {
        let policy = Policy { allow: globs.map(Globs), ..Policy::default() };
        // Each glob was parsed above, so this cannot fail; if it did, nothing would be allowed.
        let guard = Guard::new(&policy, true).unwrap_or_else(|_| Guard::closed());
        Self { guard: Arc::new(guard), principal: Principal::local() }
    }

    /// Whether everything is allowed.
    pub fn is_open(&self) -> bool {
        self.guard.is_open()
    }

    /// Whether `uri`, in any spelling, is allowed. A text that is not a URI is allowed only if everything is.
    pub fn allows(&self, uri: &str) -> bool {
        self.check(uri).is_ok()
    }

    /// Returns the canonical form of `uri` if it is allowed.
    ///
    /// # Errors
    /// [`ClientError::AccessDenied`] if it is not allowed, [`ClientError::InvalidUri`] if it is too long, or not a URI
    /// and not everything is allowed.
    pub fn check(&self, uri: &str) -> Result<String, ClientError> {
        let invalid = || ClientError::InvalidUri { uri: uri.into() };
        if uri.len() > MAX_URI {
            return Err(invalid());
        }
        match canonical(uri) {
            // What is not a URI has no canonical form, and no other spelling.
            None if self.is_open() => Ok(uri.into()),
            None => Err(invalid()),
            Some(normal) if self.is_open() || (!is_ambiguous(uri) && self.permits(&normal)) => {
                Ok(normal.into_owned())
            }
            Some(_) => Err(ClientError::AccessDenied { uri: uri.into() }),
        }
    }

    fn permits(&self, normal: &str) -> bool {
        self.guard.permits(&self.principal, normal)
    }

    /// Whether `template` still expands to an allowed URI with these values of its variables: for completion, which
    /// must not show more than the resources do. Costs a bounded amount of work, and is `false` beyond it.
    pub fn leads(&self, template: &UriTemplate, values: &[(&str, &str)]) -> bool {
        if self.is_open() {
            return true;
        }
        let value = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        let outline = template.outline(&value);
        match outline.only() {
            Some(uri) => self.allows(&uri),
            None => {
                let view = self.guard.view(&self.principal);
                self.guard.reaches_within(&view, &outline, &mut Effort::of_completion())
            }
        }
    }

    /// Whether some expansion of `template` is allowed. A template that cannot be parsed might expand to
    /// anything, so it is allowed only if everything is.
    pub fn reaches(&self, template: &str) -> bool {
        self.is_open()
            || UriTemplate::parse(template)
                .is_ok_and(|template| self.guard.knows_template(&self.principal, &template))
    }
}

/// The text by which a server's URI is known here, whether or not it is allowed; `None` if it is too long.
pub(super) fn key(uri: &str) -> Option<Cow<'_, str>> {
    (uri.len() <= MAX_URI).then(|| canonical(uri).unwrap_or(Cow::Borrowed(uri)))
}

/// The canonical form of a server's text; `None` if it is not a URI even with the characters encoded that no URI has.
fn canonical(text: &str) -> Option<Cow<'_, str>> {
    // Encoding makes a text longer; its length was checked before.
    const LONGEST: usize = 3 * MAX_URI;
    if let Ok(normal) = normalize(text, MAX_URI) {
        return Some(normal);
    }
    let encoded = encoded(text);
    normalize(&encoded, LONGEST).ok().map(|normal| Cow::Owned(normal.into_owned()))
}

/// Percent-encodes the characters that no URI has, a `%` without two hexadecimal digits, and each `#` after the first.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 16);
    let bytes = text.as_bytes();
    let mut has_fragment = false;
    for (at, byte) in bytes.iter().enumerate() {
        let is_kept = match byte {
            b'%' => bytes.get(at + 1..).and_then(hex_pair).is_some(),
            b'#' => !std::mem::replace(&mut has_fragment, true),
            b' ' | b'"' | b'<' | b'>' | b'\\' | b'`' | b'{' | b'}' => false,
            byte => byte.is_ascii_graphic(),
        };
        match is_kept {
            true => encoded.push(char::from(*byte)),
            false => push_encoded(&mut encoded, *byte),
        }
    }
    encoded
}

/// Whether parsers of URLs leave out some of the text, so that it may be another URI for the server: white space around
/// it, and control characters.
fn is_ambiguous(text: &str) -> bool {
    text.trim() != text || text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-11, S-12: whatever a server lists can be read if everything is allowed; a glob is compared with the encoded form.
    #[test]
    fn what_servers_list_is_not_always_a_uri() {
        let globs = Access::new(&AllowList::Globs(vec!["q://**".into(), "file:///pub/**".into()])).unwrap();
        let long = format!("q://{}", "x".repeat(MAX_URI));
        for (uri, normal, is_allowed) in [
            ("q://a b", Some("q://a%20b"), true),
            ("Q://a%20b", Some("q://a%20b"), true),
            ("q://\u{65e5} x", Some("q://%E6%97%A5%20x"), true),
            ("q://100%", Some("q://100%25"), true),
            ("q://a#b#c", Some("q://a#b%23c"), true),
            ("q://{a}", Some("q://%7Ba%7D"), true),
            ("q://<a>\"`^|", Some("q://%3Ca%3E%22%60%5E%7C"), true),
            // Separators and white space that the server may see otherwise.
            ("q://a\\b", Some("q://a%5Cb"), false),
            ("file:///pub/..\\secret", Some("file:///pub/..%5Csecret"), false),
            ("file:///pub/.\t./secret", Some("file:///pub/.%09./secret"), false),
            ("q://a ", Some("q://a%20"), false),
            ("q://a\u{a0}", Some("q://a%C2%A0"), false),
            ("other://a b", Some("other://a%20b"), false),
            ("C:\\dir\\f.txt", Some("c:%5Cdir%5Cf.txt"), false),
            (" q://a", None, false),
            ("/etc/passwd", None, false),
            ("not a uri", None, false),
            ("q://[x/y", None, false),
            ("", None, false),
        ] {
            assert_eq!(canonical(uri).as_deref(), normal, "{uri:?}");
            assert!(Access::everything().allows(uri), "{uri:?}");
            assert_eq!(globs.allows(uri), is_allowed, "{uri:?}");
            assert!(!Access::new(&AllowList::Nothing).unwrap().allows(uri));
            let is_invalid = matches!(globs.check(uri), Err(ClientError::InvalidUri { .. }));
            assert_eq!(is_invalid, normal.is_none(), "{uri:?}");
        }
        assert!(!Access::everything().allows(&long) && !globs.allows(&long));
    }
}
