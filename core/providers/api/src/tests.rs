//! Tests of valid requests and of the addresses that they may go to.

use super::cache::ApiCacheKey;
use super::service::{FetchOutcome, Service};
use super::*;
use mcp_resources_engine::option::FromOption;
use std::io::{Read as _, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Gives one answer after the other, and the last one again and again.
#[derive(Debug)]
struct Names {
    answers: Vec<Vec<SocketAddr>>,
    asked: AtomicUsize,
}

impl Resolver for Names {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let at = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        let mut found = self.empty();
        self.answers[at].iter().for_each(|address| found.push(*address));
        Ok(found)
    }
}

/// A server that counts connections. Its address.
fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let own = count.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            own.fetch_add(1, Ordering::Relaxed);
            let Ok(mut socket) = socket else { return };
            let _ = socket.read(&mut [0; 4_096]);
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        }
    });
    (address, count)
}

fn one(url: &str) -> ApiOptions {
    ApiOptions::new().endpoint("shop", "item", ApiEndpoint::new(url)).timeout(Duration::from_secs(2))
}

fn request(service: &Service) -> (FetchOutcome, Option<String>) {
    service.poll(&ApiCacheKey { endpoint: 0, id: "7".into() })
}

// S-20: a name that is public when it is declared and private when it is requested, or both at once: no socket opens.
#[test]
fn a_name_that_is_rebound_opens_no_socket() {
    let (address, count) = counting();
    let metadata: SocketAddr = "169.254.169.254:80".parse().unwrap();
    let public: SocketAddr = "203.0.114.1:80".parse().unwrap();
    for answers in [vec![vec![address]], vec![vec![metadata]], vec![vec![public, address]]] {
        let names = Names { answers, asked: AtomicUsize::new(0) };
        let service = Service::new(&one("http://rebound.example/{id}")).unwrap().resolving(names);
        let (outcome, what) = request(&service);
        assert!(matches!(outcome, FetchOutcome::Failed), "{outcome:?}");
        assert!(what.unwrap().contains("has an address that is not public"), "the log says why");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
    let names = Names { answers: vec![vec![address]], asked: AtomicUsize::new(0) };
    let options = one("http://rebound.example/{id}").private_networks(true);
    let service = Service::new(&options).unwrap().resolving(names);
    assert!(matches!(request(&service).0, FetchOutcome::Fresh(_)));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

// S-20: addresses that are written in the URL, in whatever form, are judged too.
#[test]
fn written_addresses_are_judged() {
    let (address, count) = counting();
    let port = address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
    ] {
        let service = Service::new(&one(&format!("http://{host}:{port}/{{id}}"))).unwrap();
        let (outcome, _) = request(&service);
        assert!(matches!(outcome, FetchOutcome::Failed | FetchOutcome::Stale(_)), "{host}: {outcome:?}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

// S-20: a folded header line is read as one line.
#[test]
fn folded_headers_are_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4_096]);
        let head = "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-type: text/plain;\r\n\tcharset=iso-8859-1\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(b"content-length: 2\r\nconnection: close\r\n\r\n\xE9\n").unwrap();
    });
    let options = one(&format!("http://{address}/{{id}}")).private_networks(true);
    let (outcome, what) = request(&Service::new(&options).unwrap());
    let FetchOutcome::Fresh(kept) = outcome else { panic!("{outcome:?} {what:?}") };
    assert_eq!((kept.copy.body.bytes(), &*kept.copy.mime_type), ("é\n".as_bytes(), "text/plain"));
    serving.join().unwrap();
}

// S-20: a request ends soon after it was cancelled.
#[test]
fn an_unwanted_request_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        // Until the client is gone.
        while socket.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let options =
        one(&format!("http://{address}/{{id}}")).private_networks(true).timeout(Duration::from_secs(3_600));
    let checked = ApiEndpoint::new(format!("http://{address}/")).check("x").unwrap();
    let looks = Arc::new(AtomicUsize::new(0));
    let own = looks.clone();
    let is_wanted = move || own.fetch_add(1, Ordering::Relaxed) < 3;
    let fetcher = super::fetch::Fetcher::new(&options);
    let fetched =
        mcp_resources_provider_kit::wanted::while_wanted(is_wanted, || fetcher.fetch(&checked, "", None));
    assert!(matches!(fetched, super::fetch::FetchedAnswer::Unwanted), "{fetched:?}");
    drop(fetcher);
    serving.join().unwrap();
}

fn members(all: &[(&str, OptionValue)]) -> OptionValue {
    OptionValue::Members(all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn declared(endpoint: OptionValue) -> OptionValue {
    let endpoints = members(&[("endpoints", members(&[("item", endpoint)]))]);
    members(&[("apis", members(&[("shop", endpoints)]))])
}

// S-20: what is wrong is named at the start, without a value that may be a secret.
#[test]
fn wrong_options_are_named() {
    let url = || ("url", OptionValue::from("https://host/{id}"));
    let header =
        |name: &str, value: OptionValue| declared(members(&[url(), ("headers", members(&[(name, value)]))]));
    for (options, message) in [
        (one("https://host/{id}").timeout(Duration::ZERO), "api: timeout is 0ns, expected 1ms or more"),
        (one("https://host/{id}").bytes(0), "api: bytes is 0, expected 1 or more"),
        (
            one("https://host/{id}").poll(Duration::from_millis(50)),
            "api: poll is 50ms, expected 100ms or more",
        ),
    ] {
        assert_eq!(Api::new(options).unwrap_err().to_string(), message);
    }
    for (value, message) in [
        (members(&[]), "api: there is no endpoint; name one"),
        (declared(members(&[])), "api: shop/item: there is no url"),
        (declared("https://me:hunter2@host/".into()), "api: shop/item: the url has a user or a password"),
        (
            declared(members(&[url(), ("pic", "/a".into())])),
            "unexpected option \"pic\"; did you mean \"pick\"?",
        ),
        (declared(members(&[url(), ("pick", "a".into())])), "pick is \"a\", expected a JSON pointer"),
        (header("Host", "x".into()), "the header Host cannot be set"),
        (header("A b", "x".into()), "\"A b\" is no name of a header"),
        (header("A", "hunter2\r\nB: c".into()), "has a character that no header can have"),
        (
            header("A", members(&[("env", "MCP_NOT_SET".into())])),
            "the variable \"MCP_NOT_SET\", which is not set",
        ),
        (header("A", members(&[("evn", "hunter2".into())])), "the header A has neither a text nor"),
        (header("A", 5_u64.into()), "the header A has neither a text nor"),
        (
            declared(members(&[url(), ("ids", OptionValue::List(vec!["../x".into()]))])),
            "the id \"../x\" cannot stand in a URI",
        ),
        (
            declared(members(&[
                ("url", "https://host/".into()),
                ("ids", OptionValue::List(vec!["x".into()])),
            ])),
            "its url has no place for one",
        ),
        (
            members(&[("apis", members(&[("shop", members(&[("endpoint", members(&[]))]))]))]),
            "did you mean \"endpoints\"?",
        ),
        (
            members(&[(
                "apis",
                members(&[("a b", members(&[("endpoints", members(&[("c", "https://h/".into())]))]))]),
            )]),
            "\"a b\" is no name",
        ),
        (5_u64.into(), "5, expected an object of options"),
    ] {
        let said = ApiOptions::from_option(value).and_then(Api::new).unwrap_err().to_string();
        assert!(said.contains(message) && !said.contains("hunter2"), "{said}");
    }
}

// S-20: nothing that is formatted shows a URL or a header; two endpoints of one name are refused.
#[test]
fn nothing_shows_a_secret() {
    let shown = format!(
        "{:?}",
        one("https://host/{id}?key=hunter2").endpoint(
            "a",
            "b",
            ApiEndpoint::new("https://h/").header("A", "hunter2")
        )
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    let api = Api::new(one("https://host/{id}?key=hunter2")).unwrap();
    assert!(!format!("{api:?}").contains("hunter2"));
    let twice = Api::new(one("https://host/{id}")).unwrap().join(api).unwrap_err().to_string();
    assert!(twice.contains("two endpoints have the name shop/item"), "{twice}");
}
