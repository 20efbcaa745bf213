//! The sections `auth` and `tls` of a file: how clients prove who they are, and the certificate of the server.
//!
//! Law: exactly one way to prove it. A file of tokens or of a certificate that becomes wrong while the server runs is
//! reported once, and what was read before stays in force.

use crate::document::options_of;
use crate::log::{ConfigLog, ConfigMessage};
use crate::secrets::masked;
use crate::tokens::{TokenEntry, is_open_to_others, read_tokens};
use mcp_resources_engine::http::{Auth, DeniedToken};
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_runtime::transport::http::{
    HttpOptions, JwtVerifier, ProxyIdentity, StaticTokens, Tls, Verified, Verifier, Verifying,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: [&str; 5] = ["tokens", "jwt", "identity", "resource", "scopes"];
const JWT_KEYS: [&str; 4] = ["issuer", "audience", "jwks_url", "keys"];
const IDENTITY_KEYS: [&str; 3] = ["header", "groups", "from"];
const TLS_KEYS: [&str; 2] = ["cert", "key"];
/// Addresses of a proxy.
const FROM: &str = "[\"10.0.0.0/8\", unix]";

/// The way in which clients prove who they are, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthSection {
    proof: Proof,
    /// The public URL of the endpoint.
    resource: Option<String>,
    /// The scopes that every request requires.
    scopes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    Tokens(PathBuf),
    Jwt { issuer: String, audience: String, keys: JwtKeys },
    Identity { header: String, groups: Option<String>, from: Vec<String> },
}

/// The place of the keys by which signatures are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JwtKeys {
    Url(String),
    File(PathBuf),
}

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsSection {
    cert: PathBuf,
    key: PathBuf,
}

/// An object of the file, with the path of its key for messages.
struct Section<'v> {
    path: &'static str,
    members: &'v Map<String, Value>,
}

/// A key of a section whose value is a text, and such a text.
struct TextKey {
    name: &'static str,
    example: &'static str,
}

const TOKENS: TextKey = TextKey { name: "tokens", example: "tokens.yaml" };
const RESOURCE: TextKey = TextKey { name: "resource", example: "https://mcp.example.com/mcp" };
const ISSUER: TextKey = TextKey { name: "issuer", example: "https://login.example.com" };
const AUDIENCE: TextKey =
    TextKey { name: "audience", example: "https://mcp.example.com/mcp, which tokens are made for" };
const JWKS_URL: TextKey = TextKey { name: "jwks_url", example: "https://login.example.com/keys" };
const JWKS_FILE: TextKey = TextKey { name: "keys", example: "keys.json" };
const HEADER: TextKey =
    TextKey { name: "header", example: "X-User, the header in which the proxy says who a client is" };
const GROUPS: TextKey = TextKey { name: "groups", example: "X-Groups" };
const CERT: TextKey = TextKey { name: "cert", example: "server.pem" };
const KEY: TextKey = TextKey { name: "key", example: "server.key" };

impl<'v> Section<'v> {
    /// `form` is what the value may be.
    fn new(path: &'static str, value: &'v Value, known: &[&str], form: &str) -> Result<Self, String> {
        let Value::Object(members) = value else {
            return Err(format!("{path} is {}, expected an object, such as {form}", options_of(value)));
        };
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(format!("{path}: {}", unexpected("key", key, known))),
            None => Ok(Self { path, members }),
        }
    }

    fn text(&self, TextKey { name, example }: &TextKey) -> Result<Option<String>, String> {
        match self.members.get(*name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(other) => {
                let given = options_of(other);
                Err(format!("{}.{name} is {given}, expected a text, such as {example}", self.path))
            }
        }
    }

    fn needed(&self, key: &TextKey) -> Result<String, String> {
        let TextKey { name, example } = key;
        self.text(key)?.ok_or_else(|| format!("{}.{name} is missing; write {name}: {example}", self.path))
    }

    fn texts(&self, key: &str, example: &str) -> Result<Vec<String>, String> {
        let wrong = |other: &Value| {
            let given = options_of(other);
            format!("{}.{key} is {given}, expected a list of texts, such as {example}", self.path)
        };
        match self.members.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(all)) => {
                all.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item))).collect()
            }
            Some(other) => Err(wrong(other)),
        }
    }
}

impl AuthSection {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        const ONE: &str =
            "write one of tokens: FILE, jwt: {issuer, audience, jwks_url} and identity: {header, from}";
        let section = Section::new("auth", value, &KEYS, "{tokens: tokens.yaml}")?;
        let mut given = KEYS[..3].iter().filter(|key| section.members.contains_key(**key));
        let proof = match (given.next(), given.next()) {
            (Some(&"tokens"), None) => Proof::Tokens(section.needed(&TOKENS)?.into()),
            (Some(&"jwt"), None) => jwt(section.members.get("jwt").unwrap_or(&Value::Null))?,
            (Some(_), None) => identity(section.members.get("identity").unwrap_or(&Value::Null))?,
            (None, _) => return Err(format!("auth does not say how clients prove who they are; {ONE}")),
            (Some(one), Some(other)) => {
                return Err(format!("auth has {one} and {other}, which contradict each other; {ONE}"));
            }
        };
        let parsed = Self {
            proof,
            resource: section.text(&RESOURCE)?,
            scopes: section.texts("scopes", "[\"notes:read\"]")?,
        };
        match parsed.proof {
            Proof::Identity { .. } if parsed.resource.is_some() || !parsed.scopes.is_empty() => {
                Err("auth: resource and scopes are of tokens; with identity the proxy refuses clients itself"
                    .into())
            }
            _ => Ok(parsed),
        }
    }

    /// Reads the files that it names.
    ///
    /// # Errors
    /// One sentence that names the key, and the file.
    pub(crate) fn open(&self, folder: &Path, log: &ConfigLog) -> Result<OpenedAuth, String> {
        match &self.proof {
            Proof::Tokens(file) => {
                let file = TokenFile::open(folder.join(file), log)?;
                let mut auth = Auth::handed_out();
                auth.required_scopes.clone_from(&self.scopes);
                Ok(OpenedAuth::Tokens(auth, file))
            }
            Proof::Jwt { issuer, audience, keys } => {
                let verifier = match keys {
                    JwtKeys::Url(url) => JwtVerifier::from_jwks_url(url.as_str(), issuer, audience)
                        .map_err(|error| format!("auth.jwt.jwks_url is {url:?}: {error}"))?,
                    JwtKeys::File(file) => {
                        let file = folder.join(file);
                        JwtVerifier::from_jwks_file(&file, issuer, audience)
                            .map_err(|error| format!("auth.jwt.keys: {}: {error}", file.display()))?
                    }
                };
                let is_url = audience.starts_with("https://") || audience.starts_with("http://");
                let audience = is_url.then_some(audience.as_str());
                let resource = self.resource.as_deref().or(audience).ok_or(
                    "auth.resource is missing; write the URL at which clients reach the server, such as \
                     https://mcp.example.com/mcp",
                )?;
                let mut auth = Auth::new(resource, [issuer.clone()]);
                auth.required_scopes.clone_from(&self.scopes);
                let keys = match keys {
                    JwtKeys::Url(url) => url.clone(),
                    JwtKeys::File(file) => file.display().to_string(),
                };
                let log = log.clone();
                let verifier = ReportingVerifier { verifier, keys, log, is_down: AtomicBool::new(false) };
                Ok(OpenedAuth::Jwt(auth, Arc::new(verifier)))
            }
            Proof::Identity { header, groups, from } => {
                let header_name = |key: &str, given: &str| {
                    format!("auth.identity.{key} is {given:?}, expected the name of a header, such as X-User")
                };
                ProxyIdentity::new(header, [ProxyIdentity::UNIX])
                    .map_err(|_| header_name("header", header))?;
                if let Some(wrong) = from.iter().find(|one| ProxyIdentity::new(header, [one]).is_err()) {
                    let expected = "expected addresses such as 10.0.0.1 or 10.0.0.0/8, or unix";
                    return Err(format!("auth.identity.from has {wrong:?}, {expected}"));
                }
                let proxy = ProxyIdentity::new(header, from).map_err(|error| format!("auth.{error}"))?;
                Ok(OpenedAuth::Identity(match groups {
                    Some(groups) => proxy.groups(groups).map_err(|_| header_name("groups", groups))?,
                    None => proxy,
                }))
            }
        }
    }
}

fn jwt(value: &Value) -> Result<Proof, String> {
    let section = Section::new("auth.jwt", value, &JWT_KEYS, "{issuer: URL, audience: URL, jwks_url: URL}")?;
    let issuer = section.needed(&ISSUER)?;
    let audience = section.needed(&AUDIENCE)?;
    let keys = match (section.text(&JWKS_URL)?, section.text(&JWKS_FILE)?) {
        (Some(url), None) => JwtKeys::Url(url),
        (None, Some(file)) => JwtKeys::File(file.into()),
        _ => {
            let reason = "write jwks_url: URL of the issuer's keys, or keys: FILE with them; one of the two";
            return Err(format!("auth.jwt: {reason}"));
        }
    };
    Ok(Proof::Jwt { issuer, audience, keys })
}

fn identity(value: &Value) -> Result<Proof, String> {
    let section =
        Section::new("auth.identity", value, &IDENTITY_KEYS, "{header: X-User, from: [\"10.0.0.0/8\"]}")?;
    let header = section.needed(&HEADER)?;
    let from = section.texts("from", FROM)?;
    if from.is_empty() {
        return Err(format!("auth.identity.from is missing; write from: {FROM}, the addresses of the proxy"));
    }
    Ok(Proof::Identity { header, groups: section.text(&GROUPS)?, from })
}

impl TlsSection {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let section = Section::new("tls", value, &TLS_KEYS, "{cert: server.pem, key: server.key}")?;
        let cert = section.needed(&CERT)?.into();
        Ok(Self { cert, key: section.needed(&KEY)?.into() })
    }

    /// Reads the two files.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub(crate) fn open(&self, folder: &Path, log: &ConfigLog) -> Result<CertificateFiles, String> {
        let cert = folder.join(&self.cert);
        let key = folder.join(&self.key);
        let seen = [FileState::at(&cert), FileState::at(&key)];
        for (name, file) in [("cert", &cert), ("key", &key)] {
            if fs::metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                let fix = "it does not exist; create it, or name another file";
                return Err(format!("tls.{name}: {}: {fix}", file.display()));
            }
        }
        let tls = Tls::from_pem(&cert, &key).map_err(|error| {
            let text = error.to_string();
            let name = if text.starts_with(&*key.to_string_lossy()) { "key" } else { "cert" };
            format!("tls.{name}: {text}")
        })?;
        let files = CertificateFiles { tls, cert, key, seen };
        if let Some(warning) = files.warning() {
            log(ConfigMessage::Warning(&warning));
        }
        Ok(files)
    }
}

/// The opened section `auth`.
pub(crate) enum OpenedAuth {
    Tokens(Auth, Arc<TokenFile>),
    Jwt(Auth, Arc<ReportingVerifier>),
    Identity(ProxyIdentity),
}

impl OpenedAuth {
    /// Adds it to the options of endpoints. Returns the file to look at while the server runs.
    pub(crate) fn apply(self, options: &mut HttpOptions) -> Option<Arc<TokenFile>> {
        match self {
            Self::Tokens(auth, file) => {
                options.rules.auth = Some(auth);
                options.verifier = Some(Arc::new(SharedTokens(file.clone())));
                return Some(file);
            }
            Self::Jwt(auth, verifier) => {
                options.rules.auth = Some(auth);
                options.verifier = Some(verifier);
            }
            Self::Identity(proxy) => options.identity = Some(proxy),
        }
        None
    }
}

/// The state of a file by which a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileState {
    /// `None` if the file cannot be looked at.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), size: found.size(), modified: (found.mtime(), found.mtime_nsec()) })
    }
}

/// The tokens of a file, which may change at any time.
pub(crate) struct TokenFile {
    path: PathBuf,
    current: Mutex<CurrentTokens>,
}

struct CurrentTokens {
    seen: Option<FileState>,
    tokens: Arc<StaticTokens>,
    entries: Vec<TokenEntry>,
}

impl TokenFile {
    fn open(path: PathBuf, log: &ConfigLog) -> Result<Arc<Self>, String> {
        let named = |reason: String| format!("auth.tokens: {}: {reason}", path.display());
        // Before the file is read, so that no later change is taken for this one.
        let seen = FileState::at(&path);
        let entries = read_tokens(&path).map_err(named)?;
        if is_open_to_others(&path) {
            let text = "others than its owner can read or change it; run: chmod 600";
            log(ConfigMessage::Warning(&format!("{}: {text} {}", path.display(), path.display())));
        }
        let current = CurrentTokens { seen, tokens: verifier(&entries), entries };
        Ok(Arc::new(Self { path, current: Mutex::new(current) }))
    }

    /// Reads the file again if it has changed. Returns the names whose tokens are no longer what they were.
    ///
    /// # Errors
    /// The reason, once for each state of the file. The tokens stay what they were.
    pub(crate) fn refresh(&self) -> Result<Vec<String>, String> {
        let seen = FileState::at(&self.path);
        if self.current.lock().seen == seen {
            return Ok(Vec::new());
        }
        let read = read_tokens(&self.path);
        let mut current = self.current.lock();
        current.seen = seen;
        let entries = read
            .map_err(|reason| format!("{}: {reason}; the tokens stay what they were", self.path.display()))?;
        let changed = changed_names(&current.entries, &entries);
        current.tokens = verifier(&entries);
        current.entries = entries;
        Ok(changed)
    }
}

fn verifier(entries: &[TokenEntry]) -> Arc<StaticTokens> {
    let verified = |entry: &TokenEntry| {
        let expires = entry.expires.map(|time| u64::try_from(time.as_millisecond()).unwrap_or(0));
        let verified = Verified::new(entry.name.as_str()).scopes(entry.scopes.iter().cloned());
        let groups = (!entry.groups.is_empty()).then(|| json!({ "groups": entry.groups }).to_string().into());
        let verified = verified.claims(groups);
        (entry.sha256, verified.expires(expires))
    };
    Arc::new(StaticTokens::from_digests(entries.iter().map(verified)))
}

/// The names that lost a token, or whose token has other scopes or another expiry. A new token alone ends no subscription.
fn changed_names(before: &[TokenEntry], now: &[TokenEntry]) -> Vec<String> {
    let now: BTreeMap<[u8; 32], &TokenEntry> = now.iter().map(|entry| (entry.sha256, entry)).collect();
    let is_changed = |entry: &&TokenEntry| now.get(&entry.sha256) != Some(entry);
    let mut names: Vec<String> = before.iter().filter(is_changed).map(|entry| entry.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The tokens of a file as a verifier.
struct SharedTokens(Arc<TokenFile>);

impl Verifier for SharedTokens {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        let tokens = self.0.current.lock().tokens.clone();
        let found: Result<Verified, DeniedToken> = tokens.find(token);
        Box::pin(std::future::ready(found))
    }
}

/// Verifies signed tokens. Reports once that the issuer's keys cannot be fetched, and that they are there again.
pub(crate) struct ReportingVerifier {
    verifier: JwtVerifier,
    /// The place of the keys.
    keys: String,
    log: ConfigLog,
    is_down: AtomicBool,
}

impl Verifier for ReportingVerifier {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(async move {
            let found = self.verifier.verify(token).await;
            match found {
                Err(DeniedToken::Unavailable) if !self.is_down.swap(true, Ordering::Relaxed) => {
                    let keys = masked(&self.keys);
                    let text = format!(
                        "auth.jwt: the keys at {keys} cannot be fetched; nobody can log in until they can, which is tried \
                         again with each request"
                    );
                    (self.log)(ConfigMessage::Error(&text));
                }
                Ok(_) if self.is_down.swap(false, Ordering::Relaxed) => {
                    (self.log)(ConfigMessage::Note("auth.jwt: the keys are fetched again"));
                }
                _ => {}
            }
            found
        })
    }
}

/// A certificate that may be renewed at any time.
pub(crate) struct CertificateFiles {
    pub(crate) tls: Tls,
    cert: PathBuf,
    key: PathBuf,
    seen: [Option<FileState>; 2],
}

impl CertificateFiles {
    /// The warning of a certificate that clients refuse because of its dates.
    pub(crate) fn warning(&self) -> Option<String> {
        let fault = Tls::date_fault(&self.cert)?;
        let fix = "clients refuse it; renew it, unless the clock of this machine is wrong";
        Some(format!("tls.cert: {}: {fault}; {fix}", self.cert.display()))
    }

    /// Reads the files again if one of them has changed: new connections get the new certificate. Returns whether they have.
    ///
    /// # Errors
    /// The reason, once for each state of the files. The certificate stays what it was.
    pub(crate) fn refresh(&mut self) -> Result<bool, String> {
        let seen = [FileState::at(&self.cert), FileState::at(&self.key)];
        if self.seen == seen {
            return Ok(false);
        }
        self.seen = seen;
        let renewed = self.tls.renew(&self.cert, &self.key);
        renewed.map(|()| true).map_err(|error| format!("{error}; the certificate stays what it was"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::quiet;

    fn wrong(value: Value) -> String {
        AuthSection::parse(&value).unwrap_err()
    }

    // S-20: every wrong value names the key and the remedy.
    #[test]
    fn mistakes_name_the_key() {
        for (value, said) in [
            (json!("tokens.yaml"), "auth is \"tokens.yaml\", expected an object"),
            (json!({}), "auth does not say how clients prove who they are; write one of tokens: FILE"),
            (json!({"token": "x"}), "auth: unexpected key \"token\"; did you mean \"tokens\"?"),
            (json!({"tokens": "a", "jwt": {}}), "auth has tokens and jwt, which contradict each other"),
            (json!({"tokens": 7}), "auth.tokens is 7, expected a text"),
            (json!({"jwt": {}}), "auth.jwt.issuer is missing; write issuer: https://"),
            (json!({"jwt": {"issuer": "i", "audience": "a"}}), "auth.jwt: write jwks_url: URL"),
            (json!({"jwt": {"isuer": "i"}}), "did you mean \"issuer\"?"),
            (json!({"identity": {"from": "unix"}}), "auth.identity.header is missing; write header: X-User"),
            (
                json!({"identity": {"header": "X-User", "from": 1}}),
                "auth.identity.from is 1, expected a list",
            ),
            (
                json!({"identity": {"header": "X-User", "from": "unix"}, "resource": "https://a"}),
                "auth: resource and scopes are of tokens",
            ),
        ] {
            let error = wrong(value.clone());
            assert!(error.starts_with(said) || error.contains(said), "{value}: {error}");
        }
        assert!(TlsSection::parse(&json!({"cert": "a"})).unwrap_err().starts_with("tls.key is missing"));
    }

    #[test]
    fn what_cannot_be_opened_names_the_file() {
        let open = |value: Value| {
            let opened = AuthSection::parse(&value).unwrap().open(Path::new("/nowhere"), &quiet());
            opened.err().unwrap_or_default()
        };
        assert!(
            open(json!({"tokens": "t.yaml"})).starts_with("auth.tokens: /nowhere/t.yaml: it does not exist")
        );
        let jwt = |keys: Value| json!({"jwt": {"issuer": "i", "audience": "a", "keys": keys}});
        assert!(open(jwt("k.json".into())).starts_with("auth.jwt.keys: /nowhere/k.json: "));
        let resource = json!({"jwt": {"issuer": "i", "audience": "a", "jwks_url": "https://a.example/k"}});
        assert!(open(resource).starts_with("auth.resource is missing"));
        let url = json!({"jwt": {"issuer": "i", "audience": "a", "jwks_url": "http://a.example/k"}});
        assert!(open(url).starts_with("auth.jwt.jwks_url is \"http://a.example/k\": "));
        let from = json!({"identity": {"header": "X-User", "from": ["10.0.0.0/40"]}});
        assert!(open(from).starts_with("auth.identity.from has \"10.0.0.0/40\", expected addresses"));
    }

    #[test]
    fn names_that_lose_something_are_found() {
        let entry = |name: &str, digest: u8, scopes: &[&str]| TokenEntry {
            name: name.into(),
            sha256: [digest; 32],
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            groups: Vec::new(),
            expires: None,
        };
        let before = [entry("alice", 1, &["a"]), entry("bob", 2, &[]), entry("carol", 3, &[])];
        let now = [entry("alice", 1, &[]), entry("carol", 3, &[]), entry("carol", 4, &[])];
        assert_eq!(changed_names(&before, &now), ["alice", "bob"]);
    }
}
