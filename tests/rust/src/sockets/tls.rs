//! HTTPS, and the endpoint inside an axum application.

use super::client::Client;
use super::{Served, resources};
use mcp_resources_runtime::transport::http::Tls;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn key(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sockets/keys").join(name)
}

#[test]
fn requests_go_through_tls() {
    let tls = Tls::from_pem(key("certificate.pem"), key("tls.pem")).unwrap();
    let served = Served::with(|_| {}, |http| http.tls(tls));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(key("certificate.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let socket = TcpStream::connect(served.address()).unwrap();
    let mut client = Client::over(StreamOwned::new(session, socket));
    for id in 0..3 {
        client.read(id, "demo://hello");
        assert_eq!(client.text(), "hello");
    }
    // Without TLS there is nothing to be had.
    let mut plain = served.client();
    plain.raw(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(plain.everything().iter().all(|byte| !byte.is_ascii_alphabetic()), "an answer in clear");
}

/// An unfinished handshake does not delay the end of the server.
#[test]
fn a_pending_handshake_does_not_delay_the_end() {
    let tls = Tls::from_pem(key("certificate.pem"), key("tls.pem")).unwrap();
    let limit = |limits: &mut mcp_resources_engine::limits::Limits| {
        limits.grace = 60_000;
        limits.head_timeout = 60_000;
    };
    let served = Served::with(limit, |http| http.tls(tls));
    let mut client = served.client();
    // The beginning of a ClientHello.
    client.raw(&[22, 3, 1, 2, 0, 1]);
    let start = std::time::Instant::now();
    served.running.shutdown();
    assert!(client.is_closed());
    served.running.wait().unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(30));
}

#[test]
fn a_key_that_does_not_fit_is_refused() {
    assert!(Tls::from_pem(key("certificate.pem"), key("signer.pem")).is_err());
    assert!(Tls::from_pem(key("missing.pem"), key("tls.pem")).is_err());
}

/// The endpoint answers inside an application that has paths of its own.
#[tokio::test]
async fn the_endpoint_is_part_of_an_application() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::default();
    let server = resources(&gate, &waiting).build().unwrap();
    let own = axum::Router::new().route("/own", axum::routing::get(|| async { "own" }));
    let app = own.merge(server.router().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let asked = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(address);
        client.raw(b"GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let head = client.head();
        assert_eq!(client.body(&head), "own");
        client.read(1, "demo://hello");
        assert_eq!(client.text(), "hello");
        let session = client.initialize();
        let mut stream = Client::connect(address);
        stream.listen_to(&session, None);
        server.notify_list_changed();
        stream.message().json()
    });
    assert_eq!(asked.await.unwrap()["method"], "notifications/resources/list_changed");
    serving.abort();
}
