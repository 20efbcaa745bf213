//! Children that behave well or badly. In every case none of their processes is left over.

use super::super::TransportKind;
use super::*;
use rustix::process::{Pid, test_kill_process};
use std::io::Read;
use std::path::PathBuf;

/// A FIFO that every process of a test keeps open for writing: when it ends, all of them have exited.
struct Alive {
    path: PathBuf,
    file: tokio::task::JoinHandle<std::fs::File>,
}

impl Alive {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-transport-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Opening blocks until the child has opened it too.
        let own = path.clone();
        Self { path, file: tokio::task::spawn_blocking(|| std::fs::File::open(own).unwrap()) }
    }

    async fn ended(self) {
        let mut file = timeout(DEADLINE, self.file).await.unwrap().unwrap();
        let read = tokio::task::spawn_blocking(move || file.read_to_end(&mut Vec::new()).unwrap());
        timeout(DEADLINE, read).await.unwrap().unwrap();
        std::fs::remove_file(self.path).unwrap();
    }
}

/// A shell that holds `alive`, prints its process id, and continues with `script`.
fn shell(alive: &Alive, script: &str) -> Target {
    let script = format!("exec 9>'{}'; echo $$; {script}", alive.path.display());
    command("sh", &["-c", &script])
}

fn command(program: &str, args: &[&str]) -> Target {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Target::Command { program: program.into(), args, env: BTreeMap::new(), directory: None }
}

/// The process id that the shell printed first.
async fn number(talk: &mut Talk) -> Pid {
    Pid::from_raw(talk.message().await.as_i64().unwrap().try_into().unwrap()).unwrap()
}

/// Waits until the process does not exist any more, not even as a zombie.
async fn reaped(pid: Pid) {
    let gone = async {
        while test_kill_process(pid).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, gone).await.unwrap();
}

// R-150: stdin is closed, and a server that exits because of that is not signalled.
#[tokio::test]
async fn a_child_ends_with_its_stdin() {
    let alive = Alive::new("ends");
    let file = alive.path.with_extension("end");
    let script = format!("trap 'echo term' TERM; cat; echo end > '{}'", file.display());
    let mut talk = Talk::open(&shell(&alive, &script)).await.unwrap();
    let pid = number(&mut talk).await;
    talk.transport.send(outgoing(Some(1), "ping", r#"{"id":1}"#));
    talk.transport.flush();
    assert_eq!(talk.message().await, json!({ "id": 1 }));
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    alive.ended().await;
    reaped(pid).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "end\n");
    std::fs::remove_file(file).unwrap();
}

// R-150: a server that ignores the end of stdin and SIGTERM is killed, with its descendants.
#[tokio::test]
async fn a_child_that_does_not_end_is_killed() {
    let alive = Alive::new("stubborn");
    let script = r#"trap "" TERM; sleep 1000 & while :; do sleep 1000; done"#;
    let mut talk = Talk::open(&shell(&alive, script)).await.unwrap();
    let pid = number(&mut talk).await;
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    reaped(pid).await;
    alive.ended().await;
}

/// A server that exits after SIGTERM is not killed.
#[tokio::test]
async fn a_child_may_end_on_sigterm() {
    let alive = Alive::new("term");
    let file = alive.path.with_extension("end");
    let script = format!("trap 'echo term > \"{}\"; exit 0' TERM; sleep 1000 & wait", file.display());
    let mut talk = Talk::open(&shell(&alive, &script)).await.unwrap();
    let pid = number(&mut talk).await;
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    reaped(pid).await;
    alive.ended().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "term\n");
    std::fs::remove_file(file).unwrap();
}

/// A dropped transport leaves no process, even if its runtime ends at the same time.
#[test]
fn a_dropped_transport_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (alive, pid, talk) = runtime.block_on(async {
        let alive = Alive::new("dropped");
        let mut talk = Talk::open(&shell(&alive, r#"trap "" TERM; sleep 1000 & sleep 1000"#)).await.unwrap();
        let pid = number(&mut talk).await;
        (alive, pid, talk)
    });
    drop(runtime);
    drop(talk);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        reaped(pid).await;
        let mut file = timeout(DEADLINE, alive.file).await.unwrap().unwrap();
        timeout(DEADLINE, tokio::task::spawn_blocking(move || file.read_to_end(&mut Vec::new())))
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        std::fs::remove_file(alive.path).unwrap();
    });
}

// R-151: a child's messages come before the report about its exit, and its descendants are killed.
#[tokio::test]
async fn the_exit_of_a_child_is_reported() {
    for (name, script, expected) in [
        ("status", "echo '{}'; exit 3", "the server ended with exit status 3"),
        ("signal", "echo '{}'; kill -9 $$", "the server was ended by signal 9"),
        ("left", "echo '{}'; sleep 1000 & exit 4", "the server ended with exit status 4"),
        ("closed", "echo '{}'; exec >&-; sleep 1000", "the server has closed the connection"),
    ] {
        let alive = Alive::new(name);
        let mut talk = Talk::open(&shell(&alive, script)).await.unwrap();
        let pid = number(&mut talk).await;
        assert_eq!(talk.message().await, json!({}));
        assert_eq!(talk.lost().await, expected, "{name}");
        drop(talk.transport);
        assert!(timeout(DEADLINE, talk.inbound.recv()).await.unwrap().is_none());
        reaped(pid).await;
        alive.ended().await;
    }
}

/// The messages distinguish a server that dies by itself from one that dies after it was sent something, and contain
/// its last lines on stderr.
#[tokio::test]
async fn a_child_that_dies_at_start_says_why() {
    let said = "echo one >&2; echo two >&2; echo three >&2; printf 'a\\033[1mb\n\n' >&2; exit 3";
    let expected = "the server ended with exit status 3: two | three | a[1mb";
    for (script, is_heard) in [(said.to_owned(), false), (format!("read line; {said}"), true)] {
        let mut talk = Talk::open(&command("sh", &["-c", &script])).await.unwrap();
        talk.transport.send(outgoing(Some(1), "ping", "{}"));
        talk.transport.flush();
        match (talk.next().await, is_heard) {
            (Inbound::NotHeard(reason), false) | (Inbound::Lost(reason), true) => {
                assert_eq!(reason, expected)
            }
            other => panic!("{script}: {other:?}"),
        }
    }
}

/// A missing program, and a file that is not a program.
#[tokio::test]
async fn programs_that_cannot_start_are_errors_with_the_reason() {
    let absent = Talk::open(&command("mcp-no-such-program", &[])).await.err().unwrap();
    assert!(absent.starts_with("\"mcp-no-such-program\" cannot be started: "), "{absent}");
    assert!(absent.contains("No such file") && absent.ends_with("on the PATH?"), "{absent}");
    let none = Talk::open(&command("/", &[])).await.err().unwrap();
    assert!(none.contains("Permission denied"), "{none}");
    let Target::Command { program, args, env, .. } = command("sh", &[]) else { panic!() };
    let directory = Some(PathBuf::from("/mcp-no-such-directory"));
    let nowhere = Talk::open(&Target::Command { program, args, env, directory }).await.err().unwrap();
    assert!(nowhere.contains("its directory /mcp-no-such-directory is not there"), "{nowhere}");
}

/// A child has the target's variables and directory, and no descriptors of this process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_has_what_the_target_says_and_no_more() {
    use std::os::fd::AsRawFd;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
    let mut first = Talk::open(&command("cat", &[])).await.unwrap();
    let script = r#"printf '"%s %s"\n"%s"\n' "$MCP_WORD" "$(pwd -P)" "$(ls -l /proc/self/fd | tr '\n' ' ')"; sleep 1000"#;
    let Target::Command { program, args, mut env, .. } = command("sh", &["-c", script]) else { panic!() };
    env.insert("MCP_WORD".into(), "word".into());
    let directory = Some(PathBuf::from("/"));
    let mut talk = Talk::open(&Target::Command { program, args, env, directory }).await.unwrap();
    assert_eq!(talk.message().await, json!("word /"));
    let descriptors = talk.message().await;
    assert!(!descriptors.as_str().unwrap().contains(own.to_str().unwrap()), "{descriptors}");
    // Nor descriptors of other children: this one exits with its stdin, although the other still runs.
    first.transport.send(outgoing(Some(1), "ping", "{}"));
    first.transport.flush();
    assert_eq!(first.message().await, json!({}));
    let Talk { transport, .. } = first;
    let TransportKind::Pipe(pipe) = transport.0 else { panic!() };
    let mut exited = pipe.child.as_ref().unwrap().exited();
    let closed = tokio::spawn(pipe.close());
    let sentence = timeout(DEADLINE, exited.wait()).await.unwrap();
    assert_eq!(sentence, "the server ended with exit status 0: does its program run the server?");
    closed.await.unwrap();
    drop(talk);
}

/// A child that floods its stdout is read only as fast as the client takes messages; an endless line is not kept.
#[tokio::test]
async fn a_flood_is_limited() {
    let alive = Alive::new("flood");
    let mut talk = Talk::open(&shell(&alive, "exec yes '{}'")).await.unwrap();
    let pid = number(&mut talk).await;
    for _ in 0..1_000 {
        assert_eq!(talk.message().await, json!({}));
    }
    // It can exit although the client takes no more messages.
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    reaped(pid).await;
    alive.ended().await;

    let alive = Alive::new("line");
    let mut talk = Talk::open(&shell(&alive, "cat /dev/zero")).await.unwrap();
    number(&mut talk).await;
    assert_eq!(talk.lost().await, format!("a line of the server's is longer than {LONGEST} bytes"));
    drop(talk);
    alive.ended().await;
}

/// The queue for a child that does not read is limited.
#[tokio::test]
async fn the_queue_for_a_child_is_limited() {
    let alive = Alive::new("deaf");
    let mut talk = Talk::open(&shell(&alive, "sleep 1000")).await.unwrap();
    number(&mut talk).await;
    let body = "x".repeat(1 << 20);
    for _ in 0..66 {
        talk.transport.send(outgoing(None, "x", &body));
        talk.transport.flush();
    }
    let reason = talk.lost().await;
    assert!(reason.starts_with("the server does not read: more than"), "{reason}");
    drop(talk);
    alive.ended().await;
}

/// A child that closes its stdin is lost.
#[tokio::test]
async fn a_child_that_closes_its_stdin_is_lost() {
    let alive = Alive::new("closes");
    let mut talk = Talk::open(&shell(&alive, "exec <&-; echo '{}'; sleep 1000")).await.unwrap();
    number(&mut talk).await;
    talk.message().await;
    talk.transport.send(outgoing(Some(1), "ping", "{}"));
    talk.transport.flush();
    let reason = talk.lost().await;
    assert!(reason.starts_with("the server does not read any more"), "{reason}");
    drop(talk);
    alive.ended().await;
}

/// Lines that the pipe does not take at once follow in their order.
#[tokio::test]
async fn a_full_pipe_keeps_the_order() {
    let mut talk = Talk::open(&command("sh", &["-c", "sleep 0.2; exec cat"])).await.unwrap();
    for number in 0..300 {
        let body = format!("[{number},\"{}\"]", "x".repeat(3_001 * (number % 3 + 1)));
        talk.transport.send(outgoing(Some(1), "ping", &body));
        talk.transport.flush();
    }
    for number in 0..300 {
        let message = talk.message().await;
        assert_eq!(
            (&message[0], message[1].as_str().map(str::len)),
            (&json!(number), Some(3_001 * (number % 3 + 1)))
        );
    }
}
