//! Tests with servers that are hostile in every phase: the session ends after a limited part of their data, and the log
//! says why.

use super::*;
use crate::db::options::Database;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// The data that a hostile server repeats without end, after the start of a message or a phase.
enum Flood {
    /// Sends nothing for as long as the client stays.
    Silence,
    /// These bytes, without an end.
    Endless(Vec<u8>),
    /// These bytes once, and then silence.
    Once(Vec<u8>),
}

/// A server for one connection. Returns how many bytes of its flood were taken from it.
fn serve(phase: &'static str, flood: Flood) -> (u16, JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        answer(&mut socket, phase, &flood).unwrap_or_default()
    });
    (port, serving)
}

/// Plays a server until `phase`, in which the flood begins.
fn answer(socket: &mut TcpStream, phase: &str, flood: &Flood) -> std::io::Result<u64> {
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let mut rest = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap() - 4];
    socket.read_exact(&mut rest)?;
    if phase == "start" {
        return pour(socket, flood);
    }
    socket.write_all(&message(b'R', &0_i32.to_be_bytes()))?;
    if phase == "settings" {
        return pour(socket, flood);
    }
    socket.write_all(&message(b'Z', b"I"))?;
    loop {
        let mut kind = [0];
        socket.read_exact(&mut kind)?;
        socket.read_exact(&mut head)?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap() - 4];
        socket.read_exact(&mut body)?;
        match &kind {
            b"Q" => {
                let done = [message(b'C', b"SET\0"), message(b'Z', b"I")].concat();
                socket.write_all(&done)?;
            }
            b"P" if phase == "parse" => return pour(socket, flood),
            b"P" => socket.write_all(&message(b'1', b""))?,
            b"D" if phase == "describe" => return pour(socket, flood),
            b"D" => {
                let columns =
                    [column("oid", 26), column("n", 25), column("r", 25), column("k", 25), column("v", 16)];
                let columns = [&5_i16.to_be_bytes()[..], &columns.concat()].concat();
                socket.write_all(&[message(b't', &0_i16.to_be_bytes()), message(b'T', &columns)].concat())?;
            }
            b"S" => socket.write_all(&message(b'Z', b"I"))?,
            b"B" => socket.write_all(&message(b'2', b""))?,
            b"E" => return pour(socket, flood),
            _ => {}
        }
    }
}

fn pour(socket: &mut TcpStream, flood: &Flood) -> std::io::Result<u64> {
    let mut poured = 0;
    let (bytes, is_endless) = match flood {
        Flood::Silence => (&[][..], false),
        Flood::Endless(bytes) => (&bytes[..], true),
        Flood::Once(bytes) => (&bytes[..], false),
    };
    let block = if is_endless { bytes.repeat(1 + 65_536 / bytes.len()) } else { bytes.to_vec() };
    loop {
        if socket.write_all(&block).is_err() {
            return Ok(poured);
        }
        poured += block.len() as u64;
        if !is_endless {
            // Until the client leaves.
            let _ = socket.read_to_end(&mut Vec::new());
            return Ok(poured);
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn column(name: &str, kind: u32) -> Vec<u8> {
    let mut column = [name.as_bytes(), b"\0", &0_u32.to_be_bytes(), &0_i16.to_be_bytes()].concat();
    column.extend_from_slice(&kind.to_be_bytes());
    column.extend_from_slice(&[0; 8]);
    column
}

fn row(values: &[&[u8]]) -> Vec<u8> {
    let mut body = i16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        body.extend_from_slice(&i32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend_from_slice(value);
    }
    message(b'D', &body)
}

fn session(port: u16) -> Postgres {
    let url = format!("postgres://me:hunter2-canary@127.0.0.1:{port}/shop?sslmode=disable");
    let source = DbSource::new("shop".into(), Database::new(url).tables(["customers"])).unwrap();
    Postgres::new(source)
}

/// The session's fault with a hostile server, and the number of bytes that it has read from it.
fn attacked(phase: &'static str, flood: Flood) -> (SessionFault, u64) {
    let (port, serving) = serve(phase, flood);
    let mut session = session(port);
    let fault = session.catalog().map(|_| phase).unwrap_err();
    drop(session);
    (fault, serving.join().unwrap())
}

// S-20: whatever a server sends without an end, in whichever phase, a limited part of it is taken.
#[test]
fn endless_messages_are_left() {
    let setting = message(b'S', b"name\0value\0");
    let long = "x".repeat(4_000);
    let notice = message(b'N', format!("SNOTICE\0VNOTICE\0C00000\0M{long}\0\0").as_bytes());
    let notification = message(b'A', &[b"\0\0\0\x01channel\0", long.as_bytes(), b"\0"].concat());
    let table = row(&[&7_u32.to_be_bytes(), b"public", long.as_bytes(), b"r", &[1]]);
    for (phase, bytes, max) in [
        ("start", notice.clone(), 16 << 20),
        ("start", setting.clone(), 16 << 20),
        ("settings", setting.clone(), 16 << 20),
        ("settings", notice.clone(), 16 << 20),
        ("settings", notification.clone(), 16 << 20),
        ("parse", setting, 16 << 20),
        ("describe", notification, 80 << 20),
        ("rows", notice, 80 << 20),
        ("rows", table, 80 << 20),
        ("rows", [message(b'C', b"x\0"), message(b'Z', b"I")].concat(), 16 << 20),
    ] {
        let name = char::from(bytes[0]);
        let (fault, taken) = attacked(phase, Flood::Endless(bytes));
        assert!(matches!(fault, SessionFault::Down(_)), "{name} in {phase}: {fault:?}");
        assert!(taken < max, "{name} in {phase}: {taken}");
    }
}

// S-20: impossible lengths, and texts of many megabytes, are not waited for; nothing that is said is long or has the password.
#[test]
fn lengths_are_limited() {
    let head = |kind: u8, length: i32| [&[kind][..], &length.to_be_bytes()].concat();
    let text = "hunter2-canary \u{1b}[2J\n".repeat(20_000);
    let error = message(b'E', format!("SFATAL\0VFATAL\0CXX000\0M{text}\0\0").as_bytes());
    let large = [&head(b'E', 50_000_000)[..], b"SFATAL\0VFATAL\0CXX000\0M", &[b'x'; 2_000_000]].concat();
    for phase in ["start", "settings", "parse", "describe", "rows"] {
        for bytes in [
            head(b'R', i32::MAX),
            head(b'D', i32::MAX),
            head(b'E', -1),
            head(b'Z', 0),
            head(b'T', i32::MIN),
            large.clone(),
            error.clone(),
        ] {
            let name = char::from(bytes[0]);
            let length = bytes.len();
            let (fault, _) = attacked(phase, Flood::Once(bytes));
            let SessionFault::Down(what) = fault else { panic!("{name} in {phase}: {fault:?}") };
            assert!(what.len() < 2_000 && !what.contains("hunter2"), "{name} of {length} in {phase}: {what}");
            assert!(!what.contains(['\u{1b}', '\n']), "{what}");
        }
    }
}

// S-20: types that lie in each other without an end are looked up to a limited depth.
#[test]
fn nested_types_have_a_depth() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = nest(&mut socket);
    });
    let fault = session(port).catalog().unwrap_err();
    assert_eq!(fault, SessionFault::Down("it is left, because it sends answers without an end".into()));
    serving.join().unwrap();
}

/// Answers each question for a type with an array of another unknown type.
fn nest(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let mut rest = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap() - 4];
    socket.read_exact(&mut rest)?;
    socket.write_all(&[message(b'R', &0_i32.to_be_bytes()), message(b'Z', b"I")].concat())?;
    let mut next = 100_000_u32;
    let mut is_typeinfo = false;
    loop {
        let mut kind = [0];
        socket.read_exact(&mut kind)?;
        socket.read_exact(&mut head)?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap() - 4];
        socket.read_exact(&mut body)?;
        match &kind {
            b"Q" => socket.write_all(&[message(b'C', b"SET\0"), message(b'Z', b"I")].concat())?,
            b"P" => {
                is_typeinfo = String::from_utf8_lossy(&body).contains("typtype");
                socket.write_all(&message(b'1', b""))?;
            }
            b"D" if is_typeinfo => {
                let parameters = [&1_i16.to_be_bytes()[..], &26_u32.to_be_bytes()].concat();
                let columns = [
                    column("typname", 19),
                    column("typtype", 18),
                    column("typelem", 26),
                    column("rngsubtype", 26),
                    column("typbasetype", 26),
                    column("nspname", 19),
                    column("typrelid", 26),
                ];
                let columns = [&7_i16.to_be_bytes()[..], &columns.concat()].concat();
                socket.write_all(&[message(b't', &parameters), message(b'T', &columns)].concat())?;
            }
            b"D" => {
                let columns = [&1_i16.to_be_bytes()[..], &column("x", next)].concat();
                socket.write_all(&[message(b't', &0_i16.to_be_bytes()), message(b'T', &columns)].concat())?;
            }
            b"B" => socket.write_all(&message(b'2', b""))?,
            b"E" => {
                next += 1;
                let zero = 0_u32.to_be_bytes();
                let values: [&[u8]; 7] = [b"t", b"b", &next.to_be_bytes(), &zero, &zero, b"public", &zero];
                socket.write_all(&[row(&values), message(b'C', b"SELECT 1\0")].concat())?;
            }
            b"S" => socket.write_all(&message(b'Z', b"I"))?,
            _ => {}
        }
    }
}

// S-20: a cancelled request ends soon, and the connection to a silent server is closed after the time limit.
#[test]
fn a_silent_server_is_left() {
    let (port, serving) = serve("start", Flood::Silence);
    let url = format!("postgres://me@127.0.0.1:{port}/shop?connect_timeout=1&sslmode=disable");
    let source = DbSource::new("shop".into(), Database::new(url).tables(["customers"])).unwrap();
    let mut session = Postgres::new(source);
    let fault = session.catalog().unwrap_err();
    assert!(
        matches!(&fault, SessionFault::Down(what) if what.contains("does not answer in time")),
        "{fault:?}"
    );
    drop(session);
    assert_eq!(serving.join().unwrap(), 0);
}

/// The fault of a session that asks a server for TLS, which answers with these bytes, again and again.
fn negotiated(mode: &str, answer: &'static [u8]) -> SessionFault {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        socket.read_exact(&mut request).unwrap();
        assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47]);
        // The client leaves.
        while socket.write_all(answer).is_ok() {}
    });
    let url = format!("postgres://me:hunter2-canary@127.0.0.1:{port}/shop?sslmode={mode}&connect_timeout=2");
    let source = DbSource::new("shop".into(), Database::new(url).tables(["customers"])).unwrap();
    let fault = Postgres::new(source).catalog().unwrap_err();
    serving.join().unwrap();
    fault
}

// S-20: whatever a server answers to the question for TLS, nothing is sent to it unencrypted, and it is left.
#[test]
fn answers_to_the_question_for_tls() {
    for (mode, answer, said) in [
        ("require", &b"N"[..], "the server has no TLS; set `ssl = on` there"),
        ("verify-full", b"N", "the server has no TLS; set `ssl = on` there"),
        ("require", b"X", "it does not answer as Postgres does"),
        ("require", b"E\0\0\0\x10SFATAL\0\0", "it does not answer as Postgres does"),
        ("require", b"S\x16\x03\x03\xff\xff", "TLS failed"),
        ("require", b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "TLS failed"),
        ("prefer", b"X", "it does not answer as Postgres does"),
    ] {
        let fault = negotiated(mode, answer);
        let (SessionFault::Down(what) | SessionFault::Refused(what)) = &fault else { panic!("{fault:?}") };
        assert!(what.contains(said) && !what.contains("hunter2"), "{mode} {answer:?}: {what}");
    }
}
