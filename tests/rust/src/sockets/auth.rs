//! Bearer tokens: what is asked for, what is accepted, what is said.

use super::{Client, Served};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use mcp_resources_engine::http::Auth;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::Resource;
use mcp_resources_runtime::server::ServerChanges;
use mcp_resources_runtime::transport::http::JwtVerifier;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const SIGNER: &[u8] = include_bytes!("keys/signer.pem");
const KEYS: &str = include_str!("keys/jwks.json");
const ISSUER: &str = "https://id.example.com";
const AUDIENCE: &str = "http://localhost/mcp";

fn rules() -> Auth {
    let mut auth = Auth::new(AUDIENCE, [ISSUER.to_owned()]);
    auth.required_scopes = vec!["notes:read".into()];
    auth
}

fn served() -> Served {
    let verifier = JwtVerifier::from_jwks(KEYS, ISSUER, AUDIENCE).unwrap();
    Served::with(|_| {}, |http| http.auth(rules(), verifier))
}

/// A token with what a good one has, changed as `more` says.
fn token(more: Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims =
        json!({"sub": "ada", "iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "scope": "x notes:read"});
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let header = Header { kid: Some("test".into()), ..Header::new(Algorithm::ES256) };
    encode(&header, &claims, &EncodingKey::from_ec_pem(SIGNER).unwrap()).unwrap()
}

fn ask(client: &mut Client, token: Option<&str>) -> (u16, Option<String>, String) {
    let value = token.map(|token| format!("Bearer {token}"));
    let header = value.as_deref().map(|value| ("Authorization", value));
    let more: Vec<_> = header.into_iter().collect();
    client.ask(1, "resources/read", json!({"uri": "demo://whoami"}), &more);
    let head = client.head();
    let body = client.body(&head);
    (head.status, head.header("www-authenticate").map(String::from), body)
}

/// R-198, R-201, R-202: signature, expiry, issuer and audience.
#[test]
fn only_good_tokens_are_accepted() {
    let served = served();
    let mut client = served.client();
    let (status, _, body) = ask(&mut client, Some(&token(json!({}))));
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"ada\""));
    let other = token(json!({}));
    let (signed, signature) = other.rsplit_once('.').unwrap();
    let forged = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", signed.split_once('.').unwrap().1);
    for bad in [
        token(json!({"exp": 1_000_000})),
        token(json!({"iss": "https://other.example.com"})),
        token(json!({"aud": "http://localhost/other"})),
        token(json!({"nbf": 99_999_999_999_u64})),
        token(json!({"sub": ""})),
        forged,
        unsigned,
        "garbage".into(),
    ] {
        let (status, challenge, _) = ask(&mut client, Some(&bad));
        assert_eq!(status, 401, "{bad}");
        assert!(challenge.unwrap().contains("error=\"invalid_token\""));
    }
}

/// A token with this header, as it is, and what a good one claims, changed as `more` says.
fn signed(header: &Value, more: &Value, sign: impl Fn(&str) -> String) -> String {
    let base64 = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let good = token(more.clone());
    let claims = good.split('.').nth(1).unwrap();
    let message = format!("{}.{claims}", base64(&header.to_string()));
    let signature = sign(&message);
    format!("{message}.{signature}")
}

fn by_issuer(message: &str) -> String {
    let key = EncodingKey::from_ec_pem(SIGNER).unwrap();
    jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap()
}

/// R-202: the token decides neither the algorithm nor the key, and is nothing but an access token.
#[test]
fn headers_of_tokens_are_not_believed() {
    let served = served();
    let mut client = served.client();
    let public = serde_json::from_str::<Value>(KEYS).unwrap()["keys"][0].clone();
    let secrets = [KEYS.as_bytes().to_vec(), public["x"].as_str().unwrap().as_bytes().to_vec(), Vec::new()];
    let mut bad: Vec<String> = Vec::new();
    for secret in secrets {
        let forge = |message: &str| {
            let key = EncodingKey::from_secret(&secret);
            jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap()
        };
        bad.push(signed(&json!({"alg": "HS256", "kid": "test"}), &json!({}), forge));
    }
    for alg in ["none", "None", "ES384", "RS256", "EdDSA", "HS256", ""] {
        bad.push(signed(&json!({"alg": alg, "kid": "test"}), &json!({}), by_issuer));
    }
    for (name, value) in [
        ("kid", json!("other")),
        ("kid", json!("")),
        ("kid", json!(["test"])),
        ("crit", json!(["exp"])),
        ("crit", json!(["urn:example:unknown"])),
        ("crit", json!([])),
        ("typ", json!("dpop+jwt")),
        ("typ", json!("JWS")),
        ("typ", json!("logout+jwt")),
    ] {
        let mut header = json!({"alg": "ES256", "kid": "test"});
        header[name] = value;
        bad.push(signed(&header, &json!({}), by_issuer));
    }
    let claims = token(json!({})).split('.').nth(1).unwrap().to_owned();
    let twice = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"other","kid":"test"}"#);
    let twice = format!("{twice}.{claims}");
    bad.push(format!("{twice}.{}", by_issuer(&twice)));
    for token in bad {
        assert_eq!(ask(&mut client, Some(&token)).0, 401, "{token}");
    }
    for typ in ["JWT", "at+jwt", "AT+JWT", "application/at+jwt"] {
        let good = signed(&json!({"alg": "ES256", "kid": "test", "typ": typ}), &json!({}), by_issuer);
        assert_eq!(ask(&mut client, Some(&good)).0, 200, "{typ}");
    }
    assert_eq!(ask(&mut client, Some(&signed(&json!({"alg": "ES256"}), &json!({}), by_issuer))).0, 200);
}

/// R-202: audiences and times in the forms that RFC 7519 allows.
#[test]
fn claims_come_in_several_forms() {
    let served = served();
    let mut client = served.client();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    for (more, status) in [
        (json!({"aud": [AUDIENCE]}), 200),
        (json!({"aud": ["http://localhost/other", AUDIENCE]}), 200),
        (json!({"aud": ["http://localhost/other"]}), 401),
        (json!({"aud": []}), 401),
        (json!({"aud": [AUDIENCE, 7]}), 401),
        (json!({"aud": {"0": AUDIENCE}}), 401),
        (json!({"aud": null}), 401),
        (json!({"exp": now + 60.5, "nbf": now - 0.5, "iat": now - 0.25}), 200),
        (json!({"exp": now - 61.5}), 401),
        (json!({"nbf": now + 90.5}), 401),
        (json!({"exp": "soon"}), 401),
        (json!({"exp": null}), 401),
        (json!({"iat": "yesterday"}), 401),
        (json!({"scope": 7}), 401),
        (json!({"scope": ["notes:read", 7]}), 401),
    ] {
        assert_eq!(ask(&mut client, Some(&token(more.clone()))).0, status, "{more}");
    }
}

/// R-201: a client and a user of the same name are two principals.
#[test]
fn a_client_is_no_user() {
    let served = served();
    let mut client = served.client();
    let mut who = |more: Value| ask(&mut client, Some(&token(more)));
    assert!(who(json!({"client_id": "app"})).2.contains("\"ada\""), "the subject counts");
    let (status, _, body) = who(json!({"sub": null, "client_id": "ada"}));
    assert_eq!(status, 200);
    assert!(body.contains("\"client_id:ada\""), "{body}");
    assert_eq!(who(json!({"sub": "client_id:ada"})).0, 401);
    assert_eq!(who(json!({"sub": null})).0, 401);
}

/// R-199, R-206.
#[test]
fn a_token_without_the_scope_is_told_which() {
    let served = served();
    let mut client = served.client();
    let poor = token(json!({"scope": "x"}));
    let (status, challenge, _) = ask(&mut client, Some(&poor));
    assert_eq!(status, 403);
    let challenge = challenge.unwrap();
    assert!(
        challenge.contains("insufficient_scope") && challenge.contains("scope=\"notes:read\""),
        "{challenge}"
    );
    assert_eq!(ask(&mut client, Some(&poor)).1.as_ref(), Some(&challenge));
    assert_eq!(ask(&mut client, Some(&token(json!({"scope": null, "scp": ["notes:read"]})))).0, 200);
}

/// R-199, R-206, DEC-27: what a resource asks for beyond what every token must have.
#[test]
fn a_resource_that_needs_more_scopes_says_which() {
    let served = served();
    let secret = Resource::new("demo://secret").scopes(["notes:secret"]);
    served.server.apply(ServerChanges::new().text(secret, "sealed")).unwrap();
    let mut client = served.client();
    let mut read = |scope: &str| {
        let bearer = format!("Bearer {}", token(json!({ "scope": scope })));
        let params = json!({"uri": "demo://secret"});
        client.ask(1, "resources/read", params, &[("Authorization", &bearer)]);
        let head = client.head();
        let body = client.body(&head);
        (head.status, head.header("www-authenticate").map(String::from), body)
    };
    let (status, challenge, body) = read("notes:read");
    assert_eq!(status, 403, "{body}");
    let challenge = challenge.unwrap();
    assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.contains("scope=\"notes:read notes:secret\""), "{challenge}");
    assert!(!body.contains("sealed"));
    let (status, challenge, body) = read("notes:read notes:secret");
    assert_eq!((status, challenge), (200, None), "{body}");
    assert!(body.contains("sealed"));
}

/// R-196, R-197, R-198: without a token, the way to one.
#[test]
fn the_challenge_leads_to_the_metadata() {
    let served = served();
    let mut client = served.client();
    let (status, challenge, _) = ask(&mut client, None);
    let url = "http://localhost/.well-known/oauth-protected-resource/mcp";
    assert_eq!(status, 401);
    assert!(challenge.unwrap().contains(&format!("resource_metadata=\"{url}\"")));
    client.raw(b"GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (status, document) = client.answer();
    assert_eq!(status, 200);
    assert_eq!(document["authorization_servers"], json!([ISSUER]));
}

/// R-178, R-201: a session id is no proof of who asks.
#[test]
fn a_session_belongs_to_its_principal() {
    let served = served();
    let mut client = served.client();
    let bearer = |who: &str| format!("Bearer {}", token(json!({"sub": who})));
    let ada = bearer("ada");
    let bob = bearer("bob");
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    client.send("POST", &[("Authorization", &ada)], &initialize.to_string());
    let head = client.head();
    client.body(&head);
    let session = head.header("mcp-session-id").unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for (token, status) in [(Some(&ada), 200), (Some(&bob), 404), (None, 401)] {
        let mut headers = vec![("Mcp-Session-Id", &*session)];
        headers.extend(token.map(|token| ("Authorization", &**token)));
        client.send("POST", &headers, &ping);
        assert_eq!(client.answer().0, status);
    }
}

/// Keys from elsewhere are fetched when they are needed, not for each token; what is kept expires.
#[test]
fn keys_are_fetched_when_they_are_needed() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let count = fetched.clone();
    let fetch = move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(KEYS.to_owned()) }
    };
    let verifier = JwtVerifier::from_source(fetch, ISSUER, AUDIENCE);
    let served =
        Served::with(|limits: &mut Limits| limits.token_cache = 1, |http| http.auth(rules(), verifier));
    let mut client = served.client();
    for subject in ["ada", "bob", "ada"] {
        assert_eq!(ask(&mut client, Some(&token(json!({"sub": subject})))).0, 200);
    }
    assert_eq!(fetched.load(Ordering::SeqCst), 1);
}

#[test]
fn keys_that_cannot_be_had_are_not_the_clients_fault() {
    let verifier =
        JwtVerifier::from_source(|| async { Err(std::io::Error::other("away")) }, ISSUER, AUDIENCE);
    let served = Served::with(|_| {}, |http| http.auth(rules(), verifier));
    assert_eq!(ask(&mut served.client(), Some(&token(json!({})))).0, 503);
    for jwks in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"c2VjcmV0","alg":"HS256"}]}"#] {
        assert!(JwtVerifier::from_jwks(jwks, ISSUER, AUDIENCE).is_err(), "{jwks}");
    }
}

/// R-203: the only request that the library makes to another server, for an issuer's keys, carries nothing of the client's.
#[test]
fn a_clients_token_goes_no_further() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let issuer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{KEYS}", KEYS.len());
        socket.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    });
    let verifier = JwtVerifier::from_jwks_url(url, ISSUER, AUDIENCE).unwrap();
    let served = Served::with(|_| {}, |http| http.auth(rules(), verifier));
    let token = token(json!({}));
    assert_eq!(ask(&mut served.client(), Some(&token)).0, 200);
    let asked = issuer.join().unwrap();
    assert!(asked.starts_with("get /keys http/1.1"), "{asked}");
    for private in ["authorization", "cookie", "bearer", "whoami", &token.to_lowercase()] {
        assert!(!asked.contains(private), "{private}: {asked}");
    }
}
