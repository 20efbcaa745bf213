//! The effect of a signal on a server over stdio: this test runs itself again as the server.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const SERVES: &str = "MCP_RESOURCES_TEST_SERVES";

/// SIGINT and SIGTERM end it like the end of input, although the client has not closed its end.
#[test]
fn a_signal_ends_a_server_over_stdio() {
    if std::env::var_os(SERVES).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = quiet().resource(Resource::new("a://b"), |_| async { "text" }).build().unwrap();
        runtime.block_on(server.run_stdio()).unwrap();
        return;
    }
    for signal in ["-INT", "-TERM"] {
        let name = std::thread::current().name().unwrap().to_owned();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([&*name, "--exact", "--nocapture"])
            .env(SERVES, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let answer = lines.map_while(Result::ok).find(|line| line.contains("jsonrpc"));
        assert!(answer.is_some(), "{signal}: not served");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        drop(input);
    }
}
