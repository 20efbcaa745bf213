//! Fetches keys from a URL.

use super::jwks::KeyDelivery;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use ureq::Proxy;

/// Time-out for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST: u64 = 1 << 20;

/// Whether the answer of `url` cannot be changed in transit: it is `https`, or on this machine.
pub(super) fn is_safe(url: &str) -> bool {
    let is_local = |start: &&str| {
        url.strip_prefix(*start).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    };
    let has_user = url.split('/').nth(2).is_some_and(|authority| authority.contains('@'));
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    !has_user && (is_encrypted(url) || local.iter().any(is_local))
}

/// Starts fetching the text at `url` on a thread of its own, without a runtime.
pub(super) fn start(url: &Arc<str>, delivery: KeyDelivery) {
    let url = url.clone();
    let work = move || {
        if let Ok(text) = get(&url, PATIENCE, Proxy::try_from_env()) {
            delivery.take(&text);
        }
    };
    // If there is no thread, the delivery is dropped, which fails the request.
    drop(std::thread::Builder::new().name("mcp-jwks".into()).spawn(work));
}

/// Fetches the text at `url`. Redirects are not followed, so keys come only from the configured URL. The environment's
/// proxy is used for `https` only, because it could change keys in plain text.
fn get(url: &str, patience: Duration, proxy: Option<Proxy>) -> io::Result<String> {
    let proxy = proxy.filter(|_| is_encrypted(url));
    let config = ureq::Agent::config_builder().timeout_global(Some(patience)).max_redirects(0).proxy(proxy);
    let agent = ureq::Agent::new_with_config(config.build());
    let mut response = agent.get(url).call().map_err(io::Error::other)?;
    if response.status() != 200 {
        return Err(io::Error::other(format!("status {}", response.status())));
    }
    response.body_mut().with_config().limit(LARGEST).read_to_string().map_err(io::Error::other)
}

fn is_encrypted(url: &str) -> bool {
    url.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers each request with the next of `answers`, unchanged, and then with nothing. Returns its
    /// URL.
    fn serving(answers: Vec<Vec<u8>>) -> Arc<str> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap()).into();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut socket, _)) = listener.accept() else { return };
                let _ = socket.read(&mut [0; 4_096]);
                let _ = socket.write_all(&answer);
            }
            // Kept open without an answer until the client gives up.
            if let Ok((mut socket, _)) = listener.accept() {
                while socket.read(&mut [0; 4_096]).is_ok_and(|size| size > 0) {}
            }
        });
        url
    }

    fn answer(head: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into()
    }

    #[test]
    fn only_the_answer_of_the_url_itself_counts() {
        let large = "x".repeat(2 << 20);
        let elsewhere = serving(vec![answer("200 OK", "stolen")]);
        let url = serving(vec![
            answer("200 OK", "keys"),
            answer(&format!("302 Found\r\nLocation: {elsewhere}"), "not here"),
            answer("404 Not Found", "keys"),
            answer("500 Oh", "keys"),
            answer("200 OK", &large),
        ]);
        assert_eq!(get(&url, PATIENCE, None).unwrap(), "keys");
        for what in ["a redirect", "nothing there", "an error", "too much"] {
            assert!(get(&url, PATIENCE, None).is_err(), "{what}");
        }
    }

    #[test]
    fn an_issuer_that_does_not_answer_is_not_waited_for() {
        let url = serving(Vec::new());
        assert!(get(&url, Duration::from_millis(100), None).is_err());
        // Nor is one that trickles its answer.
        let slow = serving(vec![b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()]);
        assert!(get(&slow, Duration::from_millis(100), None).is_err());
    }

    /// Keys from this machine are in plain text, so no proxy is used for them.
    #[test]
    fn a_proxy_never_carries_keys_in_plain_text() {
        let proxy = serving(vec![answer("200 OK", "forged")]);
        let proxy = Proxy::new(proxy.trim_end_matches("/keys")).unwrap();
        let url = serving(vec![answer("200 OK", "keys")]);
        assert_eq!(get(&url, PATIENCE, Some(proxy.clone())).unwrap(), "keys");
        // The proxy is used: it is asked for a tunnel and answers with forged keys at most.
        assert!(get("https://127.0.0.1:1/keys", Duration::from_millis(500), Some(proxy)).is_err());
    }

    #[test]
    fn only_safe_urls() {
        for good in [
            "https://id.example.com/keys",
            "http://127.0.0.1:1/k",
            "http://localhost/k",
            "http://[::1]:2",
            "http://localhost",
        ] {
            assert!(is_safe(good), "{good}");
        }
        for bad in [
            "http://id.example.com/keys",
            "http://localhost.evil.com/keys",
            "http://127.0.0.1.evil.com/",
            "http://127.0.0.1@evil.com/",
            "http://localhost:1@evil.com/",
            "https://user@id.example.com/",
            "ftp://localhost/",
            "",
        ] {
            assert!(!is_safe(bad), "{bad}");
        }
    }
}
