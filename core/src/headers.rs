//! Headers of an HTTP request, for handlers.
//!
//! Law: every request pays for the copy, so nothing is looked at before a handler asks.

use std::fmt;

/// What could be used to act as the client: never given to a handler.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
/// How many bytes most heads take.
const USUAL: usize = 512;

/// The headers of an HTTP request, but for those with credentials (`Authorization`, `Cookie`, `Proxy-Authorization`). The
/// client chose all of them, or a proxy: none is verified.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// For each line the lengths of name and value, and the two.
    lines: Vec<u8>,
}

impl Headers {
    /// Of header lines, in order. One that is longer than 4 GiB is left out.
    pub fn new<'h>(lines: impl Iterator<Item = (&'h str, &'h [u8])>) -> Self {
        let mut own = Vec::with_capacity(USUAL);
        for (name, value) in lines {
            let is_secret = SECRET.iter().any(|secret| secret.eq_ignore_ascii_case(name));
            let lengths = (u32::try_from(name.len()), u32::try_from(value.len()));
            if let (false, (Ok(name_length), Ok(value_length))) = (is_secret, lengths) {
                own.reserve(8 + name.len() + value.len());
                let lengths = u64::from(name_length) << 32 | u64::from(value_length);
                own.extend_from_slice(&lengths.to_be_bytes());
                own.extend_from_slice(name.as_bytes());
                own.extend_from_slice(value);
            }
        }
        Self { lines: own }
    }

    /// Lower-case names and their values, in the order of the request. Bytes that are not UTF-8 are replaced.
    pub fn iter(&self) -> impl Iterator<Item = (String, String)> {
        let mut rest = &*self.lines;
        std::iter::from_fn(move || {
            let (name_length, after) = length(rest)?;
            let (value_length, after) = length(after)?;
            let (name, after) = after.split_at_checked(name_length)?;
            let (value, after) = after.split_at_checked(value_length)?;
            rest = after;
            let text = |bytes| String::from_utf8_lossy(bytes);
            Some((text(name).to_ascii_lowercase(), text(value).trim_matches([' ', '\t']).to_owned()))
        })
    }

    /// The value of a header, in any case; several are joined with commas (RFC 9110, section 5.3).
    pub fn get(&self, name: &str) -> Option<String> {
        let found = self.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value).reduce(|all, value| format!("{all}, {value}"))
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*length).try_into().ok()?, rest))
}

/// Values may be secrets: only names are shown.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-208.
    #[test]
    fn credentials_are_left_out() {
        let lines: [(&str, &[u8]); 6] = [
            ("X-Tenant", b" a "),
            ("Authorization", b"Bearer secret"),
            ("COOKIE", b"secret"),
            ("proxy-authorization", b"secret"),
            ("x-tenant", b"b"),
            ("X-Bytes", b"\xff"),
        ];
        let headers = Headers::new(lines.into_iter());
        assert_eq!(headers.get("X-TENANT").as_deref(), Some("a, b"));
        assert_eq!(headers.get("x-bytes").as_deref(), Some("\u{fffd}"));
        assert_eq!((headers.iter().count(), headers.get("cookie")), (3, None));
        assert_eq!(format!("{headers:?}"), r#"["x-tenant", "x-tenant", "x-bytes"]"#);
    }
}
