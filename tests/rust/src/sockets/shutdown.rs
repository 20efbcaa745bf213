//! The end of a server.

use super::Served;
use serde_json::json;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// what is in flight finishes, what is new is refused, and then nothing is left.
#[test]
fn what_is_in_flight_finishes() {
    let served = Served::with(|limits| limits.grace = 120_000, |http| http);
    let mut busy = served.client();
    let mut idle = served.client();
    idle.read(1, "demo://hello");
    assert_eq!(idle.text(), "hello");
    busy.read(1, "demo://slow");
    served.wait_for(1);
    served.running.shutdown();
    super::eventually(|| TcpStream::connect(served.address()).is_err());
    assert!(idle.is_closed());
    served.gate.add_permits(1);
    let head = busy.head();
    assert!(busy.body(&head).contains("slow"));
    served.running.wait().unwrap();
}

#[test]
fn a_request_that_comes_too_late_is_refused() {
    let served = Served::with(|limits| limits.grace = 120_000, |http| http);
    let mut client = served.client();
    client.read(1, "demo://slow");
    served.wait_for(1);
    served.running.shutdown();
    client.read(2, "demo://hello");
    served.gate.add_permits(1);
    assert_eq!(client.text(), "slow");
    // The connection was told to end after the request that it had.
    assert!(client.is_closed());
}

/// Streams of notifications have nothing to finish: they end at once, those of sessions that hear of nothing too.
#[test]
fn streams_of_notifications_do_not_wait_for_the_grace() {
    for hears in [true, false] {
        let served = Served::with(|limits| limits.grace = 60_000, |http| http);
        let start = Instant::now();
        let mut client = served.client();
        let mut one = served.client();
        let mut two = served.client();
        let session = if hears { client.initialize() } else { client.introduce() };
        one.listen_to(&session, None);
        two.listen_to(&session, None);
        served.running.shutdown();
        for stream in [&mut one, &mut two] {
            while stream.event().is_some() {}
        }
        served.running.wait().unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "it took {:?}", start.elapsed());
    }
}

/// Requests that do not finish within the grace are cancelled; streams end.
#[test]
fn the_grace_has_an_end() {
    let served = Served::with(|limits| limits.grace = 50, |http| http);
    let mut client = served.client();
    let mut stream = served.client();
    let mut call = served.client();
    let session = client.initialize();
    stream.listen_to(&session, None);
    call.call(&session, 1, "resources/read", json!({"uri": "demo://slow"}));
    served.wait_for(1);
    served.server.shutdown();
    while stream.event().is_some() {}
    served.wait_for(0);
    served.running.wait().unwrap();
}

#[test]
fn a_server_that_is_dropped_stops() {
    let served = Served::new();
    let address = served.address();
    drop(served);
    super::eventually(|| TcpStream::connect(address).is_err());
}
