//! Streamable HTTP against our own server, in both eras.

use super::super::TransportKind;
use super::*;
use mcp_resources_engine::http::Answers;
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::transport::http::Tls;

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

/// Serves until the runtime of the test ends; returns the URL.
async fn serve(server: &ResourceServer, answers: Answers) -> Target {
    let listener = server.http().answers(answers).bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.address());
    tokio::spawn(listener.serve());
    endpoint(&url)
}

fn initialized() -> Outgoing {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    Outgoing { revision: Some(LEGACY.as_str()), ..outgoing(None, "notifications/initialized", body) }
}

// R-160 … R-164, R-179: self-contained requests, answered in either form.
#[tokio::test(flavor = "multi_thread")]
async fn modern_requests_are_answered() {
    for answers in [Answers::Json, Answers::Events] {
        let target = serve(&server(), answers).await;
        let mut talk = Talk::open(&target).await.unwrap();
        for (ask, params, member) in [
            ("server/discover", json!({}), "/result/supportedVersions"),
            ("resources/list", json!({}), "/result/resources/0/uri"),
            ("resources/read", json!({ "uri": "note://a" }), "/result/contents/0/text"),
            // R-161: an error with its own HTTP status is an answer too.
            ("resources/read", json!({ "uri": "note://none" }), "/error/code"),
            ("no/method", json!({}), "/error/code"),
        ] {
            let id = talk.ask(MODERN, ask, params);
            let answer = talk.message().await;
            assert_eq!(answer["id"], json!(id));
            assert!(answer.pointer(member).is_some(), "{answer}");
        }
        timeout(DEADLINE, talk.transport.close()).await.unwrap();
    }
}

// R-088, R-092, R-094: a listen delivers changes until its exchange is aborted; other requests continue.
#[tokio::test(flavor = "multi_thread")]
async fn a_listen_stays_open_until_it_is_broken_off() {
    let server = server();
    let target = serve(&server, Answers::Either).await;
    let mut talk = Talk::open(&target).await.unwrap();
    let params = json!({ "notifications": { "resourceSubscriptions": ["note://a"] } });
    let listen = talk.ask(MODERN, "subscriptions/listen", params);
    assert_eq!(talk.message().await["method"], "notifications/subscriptions/acknowledged");
    server.notify_updated("note://a").unwrap();
    assert_eq!(talk.message().await["params"]["uri"], "note://a");
    talk.transport.abort(listen);
    server.notify_updated("note://a").unwrap();
    // The next message answers the next request, and is not from the listen.
    let id = talk.ask(MODERN, "resources/read", json!({ "uri": "note://a" }));
    assert_eq!(talk.message().await["id"], json!(id));
}

// R-169, R-173: a session, and its notifications.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_entered_and_left() {
    for answers in [Answers::Json, Answers::Events] {
        let server = server();
        let target = serve(&server, answers).await;
        let mut talk = Talk::open(&target).await.unwrap();
        talk.ask(LEGACY, "initialize", json!({}));
        assert_eq!(talk.message().await["result"]["protocolVersion"], LEGACY.as_str());
        talk.transport.send(initialized());
        // Sent at once: it waits for the handshake.
        let id = talk.ask(LEGACY, "resources/subscribe", json!({ "uri": "note://a" }));
        assert_eq!(talk.message().await["id"], json!(id));
        server.notify_updated("note://a").unwrap();
        assert_eq!(talk.message().await["method"], "notifications/resources/updated");
        let id = talk.ask(LEGACY, "resources/read", json!({ "uri": "note://a" }));
        assert_eq!(talk.message().await["id"], json!(id));

        // R-171, R-172: the end of the session is reported once, by the exchange that detects it first.
        let TransportKind::Http(http) = &talk.transport.0 else { panic!() };
        timeout(DEADLINE, http.endpoint.clone().delete()).await.unwrap();
        for _ in 0..3 {
            talk.ask(LEGACY, "resources/read", json!({ "uri": "note://a" }));
        }
        assert!(matches!(talk.next().await, Inbound::SessionEnded));
        let again = talk.ask(LEGACY, "initialize", json!({}));
        assert_eq!(talk.message().await["id"], json!(again));
        timeout(DEADLINE, talk.transport.close()).await.unwrap();
    }
}

/// More requests than may be in progress at a time are each answered once.
#[tokio::test(flavor = "multi_thread")]
async fn many_requests_take_turns() {
    let target = serve(&server(), Answers::Either).await;
    let mut talk = Talk::open(&target).await.unwrap();
    let mut ids: std::collections::BTreeSet<_> =
        (0..300).map(|_| talk.ask(MODERN, "resources/read", json!({ "uri": "note://a" }))).collect();
    while !ids.is_empty() {
        let answer = talk.message().await;
        assert!(ids.remove(&answer["id"].as_u64().unwrap()), "{answer}");
    }
}

/// A TLS server is accepted if and only if the system trusts its certificate. The set of trusted certificates is fixed
/// for a process, so the first half runs in another one.
#[tokio::test(flavor = "multi_thread")]
async fn tls_trusts_the_certificates_of_the_system() {
    const TRUSTS: &str = "MCP_TRANSPORT_TRUSTS";
    let keys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rust/src/sockets/keys");
    let certificate = keys.join("certificate.pem");
    let key = keys.join("tls.pem");
    let tls = Tls::from_pem(&certificate, key).unwrap();
    let listener = server().http().tls(tls).bind("127.0.0.1:0").await.unwrap();
    let port = listener.address().port();
    tokio::spawn(listener.serve());
    let target = endpoint(&format!("https://localhost:{port}/mcp"));
    let trusts = std::env::var_os(TRUSTS).is_some();
    let mut talk = match Talk::open(&target).await {
        Ok(talk) => talk,
        // This machine has no trusted certificates.
        Err(error) => return assert!(!trusts && error.starts_with("TLS cannot be used"), "{error}"),
    };
    let id = talk.ask(MODERN, "resources/read", json!({ "uri": "note://a" }));
    if trusts {
        assert_eq!(talk.message().await["id"], json!(id));
        return;
    }
    let reason = talk.not_carried(id).await.failure.to_string();
    assert!(reason.contains("certificate"), "{reason}");
    let name = concat!(module_path!(), "::tls_trusts_the_certificates_of_the_system");
    let name = name.split_once("::").unwrap().1;
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name]).env("SSL_CERT_FILE", certificate).env(TRUSTS, "1");
    let output = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
