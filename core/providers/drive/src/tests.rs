//! Tests of Google Drive, against servers of this process.

use super::*;
use mcp_resources_provider_kit::wanted::while_wanted;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A Drive that answers every call with the next of these, and then with the last one: the head's lines, and the body.
fn drive(answers: Vec<(String, String)>) -> Drive {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut next = 0;
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let mut head = vec![0; 16 << 10];
            let size = socket.read(&mut head).unwrap_or_default();
            let is_token = head.get(..size).unwrap_or_default().starts_with(b"POST /token");
            let token =
                (String::from("HTTP/1.1 200 X"), r#"{"access_token":"canary","expires_in":1e300}"#.into());
            let (lines, body) = if is_token { &token } else { &answers[next.min(answers.len() - 1)] };
            next += usize::from(!is_token);
            let length = body.len();
            let _ = write!(socket, "{lines}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            // A request that came in two parts is read to its end: closed before, the connection would be reset.
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = std::io::copy(&mut socket, &mut std::io::sink());
        }
    });
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("mcp-drive-{}-{number}.json", std::process::id()));
    std::fs::write(&file, r#"{"client_id":"a","client_secret":"b","refresh_token":"c"}"#).unwrap();
    Drive::new(DriveOptions::new(file).base_url(url)).unwrap()
}

fn ok(body: impl Into<String>) -> (String, String) {
    ("HTTP/1.1 200 X".into(), body.into())
}

// S-20: numbers that no number holds, and dates, are times to wait; a call is not made again after the longest one.
#[test]
fn a_server_may_name_any_time() {
    let day = Duration::from_secs(86_400);
    for (text, wait) in [
        ("18446744073709551615", Some(day)),
        ("99999999999999999999999", Some(day)),
        ("Thu, 01 Jan 2099 00:00:00 GMT", Some(day)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", Some(Duration::ZERO)),
        ("3", Some(Duration::from_secs(3))),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(retry_after(text), wait, "{text}");
    }
    for status in [429, 503] {
        let busy = format!("HTTP/1.1 {status} X\r\nretry-after: 18446744073709551615");
        let said = drive(vec![(busy, String::new())]).list().unwrap_err();
        assert_eq!(said, SourceError::Failed(format!("Drive answers with {status}")));
    }
}

/// Asks for a document, and stops waiting for it soon; the time until the call has ended.
fn unwanted(drive: &Drive) -> Duration {
    let begun = Instant::now();
    let is_wanted = move || begun.elapsed() < Duration::from_millis(100);
    let said = while_wanted(is_wanted, || drive.fetch("a"));
    assert!(matches!(said, Err(SourceError::Failed(_))), "{said:?}");
    begun.elapsed()
}

// S-32: a pause, an endless answer, and a wait for another thread's token end when the request has ended.
#[test]
fn calls_end_when_nobody_waits() {
    const SOON: Duration = Duration::from_secs(5);
    let busy = ("HTTP/1.1 429 X\r\nretry-after: 30".to_owned(), String::new());
    assert!(unwanted(&drive(vec![busy])) < SOON);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut waiting = drive(vec![ok("")]);
    waiting.api = format!("http://{}", silent.local_addr().unwrap());
    assert!(unwanted(&waiting) < SOON);
    waiting.token_url = waiting.api.clone();
    *waiting.token.lock() = None;
    assert!(unwanted(&waiting) < SOON);
    let _held = waiting.token.lock();
    assert!(unwanted(&waiting) < SOON);
    // What ends a call has no effect on the next one.
    let again = drive(vec![ok("{}")]);
    assert!(again.list().is_ok());
}

// S-20: many changes of one page, and of the same file, are taken once each, in the order of the last ones.
#[test]
fn changes_are_taken_in_linear_time() {
    let removed = |from: usize| {
        let change = |id| format!(r#"{{"fileId":"f{id}","removed":true}}"#);
        (from..from + 20_000).map(change).collect::<Vec<_>>().join(",")
    };
    let file = r#"{"fileId":"f7","file":{"id":"f7","mimeType":"text/plain","modifiedTime":"x","version":"2","size":"-1"}}"#;
    let first = format!(r#"{{"nextPageToken":"2","changes":[{}]}}"#, removed(0));
    let last = format!(
        r#"{{"newStartPageToken":"3","changes":[{},{file},{{"fileId":"../x"}},{{}}]}}"#,
        removed(10_000)
    );
    let found = drive(vec![ok(first), ok(last)]).changes_since(Some("1")).unwrap();
    let SourceChanges::Some { changed, gone, token } = found else { panic!("not all is listed") };
    assert_eq!((gone.len(), token.as_deref()), (29_999, Some("3")));
    assert_eq!((&*gone[0], &*gone[29_998]), ("f0", "f29999"));
    let listed = ListedDocument { id: "f7".into(), stamp: "2/x/".into(), ..ListedDocument::default() };
    assert_eq!(changed, [listed]);
}

// S-20: pages that come again, and files that are listed twice, have an end.
#[test]
fn pages_have_an_end() {
    let file = r#"{"id":"a","mimeType":"text/plain"}"#;
    let again = ok(format!(r#"{{"nextPageToken":"1","files":[{file}],"changes":[]}}"#));
    let said = drive(vec![again.clone()]).list().unwrap_err();
    assert!(matches!(said, SourceError::Failed(what) if what.contains("twice")));
    assert!(drive(vec![again]).changes_since(Some("1")).is_err());
    let twice = ok(format!(r#"{{"files":[{file},{file}]}}"#));
    assert_eq!(drive(vec![twice]).list().unwrap().len(), 1);
}

// S-20: credentials are read from a file alone: not from a pipe, a folder, or a device without an end.
#[test]
fn credentials_are_a_file() {
    for file in ["/dev/zero", "/tmp"] {
        let said = Drive::new(DriveOptions::new(file)).unwrap_err().to_string();
        assert!(said.contains("cannot be read"), "{said}");
    }
}
