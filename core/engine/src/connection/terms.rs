//! The terms of a request: a modern request states them itself, a legacy one gets them from the handshake.

use super::event::{ClientInfo, LogLevel};
use super::response;
use crate::jsonrpc::{Json, JsonKind, RawParams};
use crate::limits::Limits;
use crate::version::Revision;
use std::sync::Arc;

/// The terms of one request.
#[derive(Clone, Debug)]
pub(super) struct Terms<'m> {
    pub(super) revision: Revision,
    pub(super) capabilities: ClientCapabilities,
    pub(super) client_info: ClientInfo<'m>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<Json<'m>>,
}

/// The kinds of input that a client supports. An open set: unknown members are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientCapabilities {
    /// `elicitation` with a form.
    pub form: bool,
    /// `elicitation` with a URL.
    pub url: bool,
    /// `sampling`.
    pub sampling: bool,
    /// `sampling.tools`.
    pub sampling_tools: bool,
    /// `roots`.
    pub roots: bool,
}

impl ClientCapabilities {
    pub(super) fn parse(declared: Json<'_>) -> Self {
        let mut this = Self::default();
        let Some(members) = declared.object() else { return this };
        if let Some(elicitation) = members.get("elicitation").and_then(Json::object) {
            this.url = elicitation.get("url").is_some();
            this.form = elicitation.get("form").is_some() || !this.url;
        }
        if let Some(sampling) = members.get("sampling").and_then(Json::object) {
            this.sampling = true;
            this.sampling_tools = sampling.get("tools").is_some();
        }
        this.roots = members.get("roots").is_some();
        this
    }
}

/// The part of the handshake that a session keeps.
#[derive(Clone, Debug)]
pub(super) struct SessionTerms {
    pub(super) revision: Revision,
    pub(super) capabilities: ClientCapabilities,
    pub(super) client_info: Arc<str>,
    pub(super) log_level: LogLevel,
}

impl SessionTerms {
    /// The terms of a client without a stored handshake.
    pub(super) fn assumed(revision: Revision) -> Self {
        let capabilities = ClientCapabilities::default();
        let client_info = "{}".into();
        Self { revision, capabilities, client_info, log_level: LogLevel::Info }
    }

    pub(super) fn terms<'m>(
        &self,
        params: &RawParams<'m>,
        claim: &Claim<'m>,
        limits: &Limits,
    ) -> Result<Terms<'m>, EnvelopeError> {
        check_meta(params)?;
        Ok(Terms {
            revision: self.revision,
            capabilities: self.capabilities,
            client_info: ClientInfo::Session(self.client_info.clone()),
            log_level: Some(self.log_level),
            progress_token: claim.progress_token(limits)?,
        })
    }
}

/// The error about `_meta`: the member, and the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvelopeError {
    pub(super) message: String,
}

impl EnvelopeError {
    fn new(member: &str, expected: &str) -> Self {
        Self { message: format!("Invalid _meta: {member} must be {expected}") }
    }
}

/// The members of `_meta` that the protocol defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'m> {
    version: Option<Json<'m>>,
    capabilities: Option<Json<'m>>,
    client_info: Option<Json<'m>>,
    log_level: Option<Json<'m>>,
    progress_token: Option<Json<'m>>,
}

impl<'m> Claim<'m> {
    pub(super) fn from_params(params: &RawParams<'m>) -> Self {
        let names = [
            response::PROTOCOL_VERSION,
            response::CLIENT_CAPABILITIES,
            response::CLIENT_INFO,
            response::LOG_LEVEL,
            response::PROGRESS_TOKEN,
        ];
        let picked = params.meta_members().map_or([None; 5], |meta| meta.pick(names));
        let [version, capabilities, client_info, log_level, progress_token] = picked;
        Self { version, capabilities, client_info, log_level, progress_token }
    }

    /// Whether the request claims to be modern.
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some()
    }

    /// The token with which the client asks for progress.
    fn progress_token(&self, limits: &Limits) -> Result<Option<Json<'m>>, EnvelopeError> {
        match self.progress_token {
            None => Ok(None),
            Some(token) if token.raw().len() > limits.id => Err(EnvelopeError::new(
                response::PROGRESS_TOKEN,
                &format!("at most {} bytes long", limits.id),
            )),
            Some(token) if crate::jsonrpc::Id::from_json(token).is_some() => Ok(Some(token)),
            Some(_) => Err(EnvelopeError::new(response::PROGRESS_TOKEN, "a string or an integer")),
        }
    }
}

/// The version's text and all other terms of a modern request, before the version is checked.
pub(super) fn modern<'m>(
    claim: &Claim<'m>,
    limits: &Limits,
) -> Result<(std::borrow::Cow<'m, str>, Terms<'m>), EnvelopeError> {
    let version = claim.version.and_then(Json::as_str);
    let version = version.ok_or_else(|| EnvelopeError::new(response::PROTOCOL_VERSION, "a string"))?;
    let capabilities = claim.capabilities.filter(|json| json.kind() == JsonKind::Object);
    let capabilities =
        capabilities.ok_or_else(|| EnvelopeError::new(response::CLIENT_CAPABILITIES, "an object"))?;
    let client_info = match claim.client_info {
        None => ClientInfo::None,
        Some(info) if info.raw().len() > limits.client_info => {
            let expected = format!("at most {} bytes long", limits.client_info);
            return Err(EnvelopeError::new(response::CLIENT_INFO, &expected));
        }
        Some(info) if info.kind() == JsonKind::Object => ClientInfo::Request(info.raw()),
        Some(_) => return Err(EnvelopeError::new(response::CLIENT_INFO, "an object")),
    };
    let log_level = match claim.log_level {
        None => None,
        Some(level) => Some(
            level
                .as_str()
                .and_then(|name| LogLevel::parse(&name))
                .ok_or_else(|| EnvelopeError::new(response::LOG_LEVEL, "a log level"))?,
        ),
    };
    let terms = Terms {
        revision: Revision::V2026_07_28,
        capabilities: ClientCapabilities::parse(capabilities),
        client_info,
        log_level,
        progress_token: claim.progress_token(limits)?,
    };
    Ok((version, terms))
}

fn check_meta(params: &RawParams<'_>) -> Result<(), EnvelopeError> {
    match params {
        RawParams::Object { meta: None, .. } if params.get(response::META).is_some() => {
            Err(EnvelopeError { message: "Invalid params: _meta must be an object".into() })
        }
        _ => Ok(()),
    }
}
