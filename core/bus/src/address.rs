//! The address of a bus: a URL whose credentials may be variables of the environment.
//!
//! Law: neither an error nor the name of a bus has a part of the credentials.

use std::fmt;

/// A URL in its parts. Credentials are decoded.
pub(crate) struct BusAddress {
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// Host and port, as in the URL.
    pub(crate) host: String,
    /// Without the first slash.
    pub(crate) path: String,
}

/// A URL that is not the address of a bus: one sentence without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusUrlError(String);

impl BusUrlError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// The URL has another form.
    pub(crate) fn form(scheme: &str) -> Self {
        Self(format!(
            "bus has the scheme {scheme:?}, expected redis://HOST:PORT/DB, rediss://HOST:PORT/DB, nats://HOST:PORT, \
             tls://HOST:PORT or unix:PATH"
        ))
    }
}

impl fmt::Display for BusUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BusUrlError {}

impl BusAddress {
    /// Parses `SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH]`; `${NAME}` in the credentials is replaced by `variable(NAME)`.
    pub(crate) fn parse(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BusUrlError> {
        let no_host = || {
            BusUrlError::new("bus has no host; expected redis://HOST:PORT/DB, nats://HOST:PORT or unix:PATH")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(no_host)?;
        // A variable may be the whole of the credentials, and its name has no "@".
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, rest),
        };
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        if host.is_empty() || host.starts_with(':') {
            return Err(no_host());
        }
        if place.contains(['?', '#']) || place.contains(char::is_whitespace) {
            let reason = "bus has more than a host, a port and a path after the credentials; options and fragments are \
                          not supported";
            return Err(BusUrlError::new(reason));
        }
        let (user, password) = match credentials.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((user, password)) => (value(user, &variable)?, value(password, &variable)?),
            None => (None, None),
        };
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user,
            password,
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The URL without credentials.
    pub(crate) fn name(&self) -> String {
        let path = if self.path.is_empty() { String::new() } else { format!("/{}", self.path) };
        format!("{}://{}{path}", self.scheme, self.host)
    }
}

/// A part of the credentials: percent-decoded, or the values of variables as they are.
fn value(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<String>, BusUrlError> {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, named)) = rest.split_once("${") {
        let Some((name, after)) = named.split_once('}') else {
            return Err(BusUrlError::new("bus: \"${\" in the credentials has no \"}\""));
        };
        value += &decoded(before)?;
        value += &variable(name)
            .ok_or_else(|| BusUrlError::new(format!("bus: the variable {name} is not set")))?;
        rest = after;
    }
    value += &decoded(rest)?;
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn decoded(text: &str) -> Result<String, BusUrlError> {
    let wrong =
        || BusUrlError::new("bus: \"%\" in the credentials needs two hexadecimal digits behind it, in UTF-8");
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<BusAddress, BusUrlError> {
        let known = |name: &str| (name == "SECRET").then(|| "p@ss/w:rd%".to_owned());
        BusAddress::parse(url, known)
    }

    #[test]
    fn a_url_has_its_parts() {
        let address = parse("redis://me:p%40ss@h:1/2").ok().unwrap();
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!((&*address.host, &*address.path, &*address.name()), ("h:1", "2", "redis://h:1/2"));
        let address = parse("NATS://${SECRET}@[::1]:4222").ok().unwrap();
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("p@ss/w:rd%"), None));
        assert_eq!(address.name(), "nats://[::1]:4222");
        let address = parse("redis://:${SECRET}@h").ok().unwrap();
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (None, Some("p@ss/w:rd%")));
    }

    #[test]
    fn errors_have_no_credentials() {
        for (url, said) in [
            ("redis://", "no host"),
            ("redis", "no host"),
            ("redis://me:hunter2@", "no host"),
            ("redis://me:hunter2@:6379", "no host"),
            ("redis://me:${HUNTER}@h", "the variable HUNTER is not set"),
            ("redis://me:${HUNTER@h", "no \"}\""),
            ("redis://me:hunter2%z@h", "two hexadecimal digits"),
            ("rediss://me:hunter2@h/0#insecure", "not supported"),
            ("redis://me:hunter2@h?db=1", "not supported"),
        ] {
            let error = parse(url).err().unwrap().to_string();
            assert!(error.contains(said) && !error.contains("hunter2"), "{url}: {error}");
        }
        let error = crate::from_url("kafka://me:hunter2@h").err().unwrap().to_string();
        assert!(
            error.starts_with("bus has the scheme \"kafka\", expected redis://")
                && !error.contains("hunter2")
        );
        assert!(crate::from_url("unix:").is_err());
    }
}
