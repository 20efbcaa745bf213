//! What an author sets about HTTP.

use crate::error::{raise, unusable};
use crate::options::unsigned;
use mcp_resources_engine::http::{Answers, Auth, Hosts, Origins, Polling, Rules, RulesError, Sse24};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// The options of an endpoint; what is left out keeps its default.
#[napi(object, object_to_js = false)]
pub struct HttpFields {
    /// Where it is.
    pub path: Option<String>,
    /// A path that answers 200 while the server lives.
    pub health: Option<String>,
    /// A path that shows what is counted; `true` is the usual one.
    pub metrics: Option<Either<String, bool>>,
    /// Which `Host` headers are accepted.
    pub hosts: Option<Either<String, Vec<String>>>,
    /// Which `Origin` headers are accepted.
    pub origins: Option<Either<String, Vec<String>>>,
    /// Whether pages of the accepted origins may ask from a browser.
    pub cors: Option<bool>,
    /// In which form requests are answered.
    pub answers: Option<String>,
    /// When a stream is broken off, and when the client is to come back, in milliseconds.
    pub polling: Option<(i64, i64)>,
    /// Whether legacy clients get sessions.
    pub sessions: Option<bool>,
    /// The two paths of the transport of 2024-11-05, or none for its own.
    pub sse24: Option<Vec<String>>,
    /// What bearer tokens must be.
    pub auth: Option<AuthFields>,
    /// What to serve with, of a server that listens.
    pub tls: Option<TlsFields>,
}

/// PEM files.
#[napi(object, object_to_js = false)]
pub struct TlsFields {
    /// The path of the certificates, the server's own first.
    pub cert: String,
    /// The path of the private key.
    pub key: String,
}

/// What bearer tokens must be.
#[napi(object, object_to_js = false)]
pub struct AuthFields {
    /// The URL of the endpoint as clients know it.
    pub resource: String,
    /// The servers that give tokens for it.
    pub authorization_servers: Vec<String>,
    /// What every request needs.
    pub required_scopes: Vec<String>,
    /// What a client may ask for.
    pub scopes_supported: Vec<String>,
    /// Which narrower scopes a broader one includes.
    pub implied_scopes: Vec<(String, String)>,
    /// The authorization server's metadata as JSON text.
    pub authorization_server_document: Option<String>,
}

impl HttpFields {
    /// The core's words for it.
    pub(crate) fn read(self) -> Result<Rules> {
        let mut rules = Rules::default();
        if let Some(path) = self.path {
            rules.path = path;
        }
        rules.health = self.health;
        rules.metrics = match self.metrics {
            Some(Either::A(path)) => Some(path),
            Some(Either::B(true)) => Some(Rules::METRICS.to_owned()),
            Some(Either::B(false)) | None => None,
        };
        if let Some(hosts) = self.hosts {
            rules.hosts = listed("hosts", hosts, Hosts::Any, Hosts::Loopback, Hosts::These)?;
        }
        if let Some(origins) = self.origins {
            rules.origins = listed("origins", origins, Origins::Any, Origins::Loopback, Origins::These)?;
        }
        rules.cors = self.cors.unwrap_or(rules.cors);
        if let Some(word) = self.answers {
            rules.answers = answers(&word)?;
        }
        if let Some((after, retry)) = self.polling {
            let polling = Polling { after: unsigned("polling", after)?, retry: unsigned("polling", retry)? };
            rules.polling = Some(polling);
        }
        rules.sessions = self.sessions.unwrap_or(rules.sessions);
        rules.sse24 = self.sse24.map(sse24).transpose()?;
        rules.auth = self.auth.map(AuthFields::read);
        Ok(rules)
    }
}

impl AuthFields {
    fn read(self) -> Auth {
        let mut auth = Auth::new(self.resource, self.authorization_servers);
        auth.required_scopes = self.required_scopes;
        auth.scopes_supported = self.scopes_supported;
        auth.implied_scopes = self.implied_scopes;
        auth.authorization_server_document = self.authorization_server_document;
        auth
    }
}

/// What is wrong with them.
pub(crate) fn refused(env: &Env, error: &RulesError) -> Error {
    raise(env, "RegistrationError", error.to_string(), &[])
}

/// `"*"`, `"loopback"`, or a list of texts.
fn listed<T>(
    name: &str,
    given: Either<String, Vec<String>>,
    any: T,
    loopback: T,
    these: impl FnOnce(Vec<String>) -> T,
) -> Result<T> {
    match given {
        Either::B(list) => Ok(these(list)),
        Either::A(word) if word == "*" => Ok(any),
        Either::A(word) if word == "loopback" => Ok(loopback),
        Either::A(word) => {
            Err(unusable(format!("{name} is {word:?}, neither \"*\", \"loopback\" nor a list")))
        }
    }
}

fn sse24(paths: Vec<String>) -> Result<Sse24> {
    match <[String; 2]>::try_from(paths) {
        Ok([events, messages]) => Ok(Sse24 { events, messages }),
        Err(paths) if paths.is_empty() => Ok(Sse24::default()),
        Err(_) => Err(unusable("sse24 is neither true nor two paths".into())),
    }
}

fn answers(word: &str) -> Result<Answers> {
    match word {
        "either" => Ok(Answers::Either),
        "json" => Ok(Answers::Json),
        "events" => Ok(Answers::Events),
        other => Err(unusable(format!("answers is {other:?}, expected either, json or events"))),
    }
}
