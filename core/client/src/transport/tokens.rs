//! Tokens of an authorization server for this client: the grant `client_credentials` (RFC 6749, section 4.4).
//!
//! ```text
//!   none ──token──▶ asked, once for all who wait ──▶ held ──a part of its time before its end, or 401──▶ none
//! ```
//!
//! Law: the secret goes to the token endpoint alone, and no message has it, or a token. Redirects are not followed.

use super::wire::{self, HttpClient};
use crate::target::ClientCredentials;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method as Verb, Request, Response, Uri};
use mcp_resources_engine::base64;
use mcp_resources_engine::http::JSON;
use mcp_resources_engine::jsonrpc::Json;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Maximum time for an answer of the authorization server.
const TIME: Duration = Duration::from_secs(10);
/// Most bytes of its answer.
const LONGEST: usize = 64 << 10;
/// Time for which a token is used that does not say how long it is good; also the longest for any.
const USUAL: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(86_400);
/// The longest time before its end at which a token is not used any more.
const EARLY: Duration = Duration::from_secs(30);
/// The time after a refusal in which the authorization server is not asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// The tokens of one client.
#[derive(Debug)]
pub(super) struct ClientTokens {
    client: HttpClient,
    uri: Uri,
    place: String,
    body: String,
    authorization: HeaderValue,
    held: Mutex<HeldToken>,
}

#[derive(Debug, Default)]
enum HeldToken {
    #[default]
    None,
    Token {
        header: HeaderValue,
        until: Instant,
    },
    Refused {
        reason: String,
        until: Instant,
    },
}

impl ClientTokens {
    /// # Errors
    /// The reason for which the URL cannot be used.
    pub(super) fn new(credentials: &ClientCredentials) -> Result<Self, String> {
        let ClientCredentials { token_url, client_id, client_secret, scope } = credentials;
        let (uri, place) = wire::parse(token_url)?;
        let client = wire::client(uri.scheme_str() == Some("https"))?;
        let scope = scope.as_ref().map(|scope| format!("&scope={}", encoded(scope))).unwrap_or_default();
        let mut basic = b"Basic ".to_vec();
        base64::encode_into(
            format!("{}:{}", encoded(client_id), encoded(client_secret)).as_bytes(),
            &mut basic,
        );
        let mut authorization =
            HeaderValue::from_bytes(&basic).map_err(|_| "the credentials cannot be sent".to_owned())?;
        authorization.set_sensitive(true);
        let body = format!("grant_type=client_credentials{scope}");
        Ok(Self { client, uri, place, body, authorization, held: Mutex::default() })
    }

    /// The value of `Authorization` for a request now.
    ///
    /// # Errors
    /// A sentence that names the authorization server.
    pub(super) async fn token(&self) -> Result<HeaderValue, String> {
        let mut held = self.held.lock().await;
        match &*held {
            HeldToken::Token { header, until } if Instant::now() < *until => return Ok(header.clone()),
            HeldToken::Refused { reason, until } if Instant::now() < *until => return Err(reason.clone()),
            _ => {}
        }
        match timeout(TIME, self.ask()).await.unwrap_or_else(|_| Err("it does not answer".into())) {
            Ok((header, lasts)) => {
                let until = Instant::now() + lasts.saturating_sub(EARLY.min(lasts / 4));
                *held = HeldToken::Token { header: header.clone(), until };
                Ok(header)
            }
            Err(reason) => {
                let reason = format!("{} gives no token: {reason}", self.place);
                *held = HeldToken::Refused { reason: reason.clone(), until: Instant::now() + PAUSE };
                Err(reason)
            }
        }
    }

    /// Does not use the current token again.
    pub(super) async fn forget(&self) {
        let mut held = self.held.lock().await;
        if matches!(*held, HeldToken::Token { .. }) {
            *held = HeldToken::None;
        }
    }

    async fn ask(&self) -> Result<(HeaderValue, Duration), String> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = Verb::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static(JSON));
        headers.insert(AUTHORIZATION, self.authorization.clone());
        let response = self.client.request(request).await.map_err(|error| wire::reason(&error))?;
        let status = response.status();
        let body = whole(response).await?;
        let members = Json::parse(body.trim_ascii(), 8).and_then(Json::object);
        let text = |name: &str| members.as_ref()?.get(name)?.as_str();
        if !status.is_success() {
            let code = text("error")
                .filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_graphic()));
            let code = code.map(|code| format!(", {code}")).unwrap_or_default();
            return Err(format!(
                "status {}{code}; check client_id, client_secret and scope",
                status.as_u16()
            ));
        }
        if text("token_type").is_none_or(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("its answer has no token of the type Bearer".into());
        }
        let token = text("access_token")
            .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        let token = token.ok_or("its answer has no access_token")?;
        let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| "its token cannot stand in a header".to_owned())?;
        header.set_sensitive(true);
        let lasts = members.as_ref().and_then(|members| members.get("expires_in")?.as_u64());
        Ok((header, lasts.map_or(USUAL, Duration::from_secs).min(LONG)))
    }
}

async fn whole(response: Response<Incoming>) -> Result<Vec<u8>, String> {
    let mut body = response.into_body();
    let mut whole = Vec::new();
    while let Some(frame) = wire::frame(&mut body).await {
        let data = frame.map_err(|error| wire::reason(&error))?;
        if whole.len() + data.len() > LONGEST {
            return Err(format!("its answer has more than {LONGEST} bytes"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

/// A text as `application/x-www-form-urlencoded` has it.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_encoded_as_a_form_has_them() {
        let credentials = ClientCredentials {
            token_url: "https://auth.example/token".into(),
            client_id: "a b".into(),
            client_secret: "s:e/cret".into(),
            scope: Some("read write".into()),
        };
        let tokens = ClientTokens::new(&credentials).unwrap();
        assert_eq!(tokens.body, "grant_type=client_credentials&scope=read+write");
        let mut expected = b"Basic ".to_vec();
        base64::encode_into(b"a+b:s%3Ae%2Fcret", &mut expected);
        assert_eq!(tokens.authorization.as_bytes(), expected);
        assert!(!format!("{credentials:?} {tokens:?}").contains("cret\""));
    }
}
