//! Keys from a URL.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST: u64 = 1 << 20;

/// Whether nobody on the way can change what comes from `url`: it is `https`, or on this machine.
pub(super) fn is_safe(url: &str) -> bool {
    let is_local = |start: &&str| {
        url.strip_prefix(*start).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    };
    let has_user = url.split('/').nth(2).is_some_and(|authority| authority.contains('@'));
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    !has_user && (url.starts_with("https://") || local.iter().any(is_local))
}

/// The text at `url`. Redirects are not followed: keys come from where the author said.
pub(super) async fn get(url: Arc<str>, patience: Duration) -> io::Result<String> {
    let work = move || {
        let config = ureq::Agent::config_builder().timeout_global(Some(patience)).max_redirects(0).build();
        let mut response =
            ureq::Agent::new_with_config(config).get(&*url).call().map_err(io::Error::other)?;
        if response.status() != 200 {
            return Err(io::Error::other(format!("status {}", response.status())));
        }
        response.body_mut().with_config().limit(LARGEST).read_to_string().map_err(io::Error::other)
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test: it has a server of its own")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers each request with the next of these, as it is, and then with nothing. Its URL.
    fn serving(answers: Vec<Vec<u8>>) -> Arc<str> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap()).into();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut socket, _)) = listener.accept() else { return };
                let _ = socket.read(&mut [0; 4_096]);
                let _ = socket.write_all(&answer);
            }
            let held = listener.accept();
            std::thread::sleep(Duration::from_secs(5));
            drop(held);
        });
        url
    }

    fn answer(head: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into()
    }

    #[tokio::test]
    async fn only_what_was_asked_for_counts() {
        let large = "x".repeat(2 << 20);
        let elsewhere = serving(vec![answer("200 OK", "stolen")]);
        let url = serving(vec![
            answer("200 OK", "keys"),
            answer(&format!("302 Found\r\nLocation: {elsewhere}"), "not here"),
            answer("404 Not Found", "keys"),
            answer("500 Oh", "keys"),
            answer("200 OK", &large),
        ]);
        assert_eq!(get(url.clone(), PATIENCE).await.unwrap(), "keys");
        for what in ["a redirect", "nothing there", "an error", "too much"] {
            assert!(get(url.clone(), PATIENCE).await.is_err(), "{what}");
        }
    }

    #[tokio::test]
    async fn an_issuer_that_does_not_answer_is_not_waited_for() {
        let url = serving(Vec::new());
        assert!(get(url, Duration::from_millis(100)).await.is_err());
        // Nor one that says something now and then.
        let slow = serving(vec![b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()]);
        assert!(get(slow, Duration::from_millis(100)).await.is_err());
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
