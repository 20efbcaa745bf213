//! Bearer tokens are for HTTP: a pipe asks for none.

use super::*;
use crate::transport::http::{StaticTokens, Verified};
use mcp_resources_engine::http::Auth;
use std::io::{Read as _, Write as _};

/// an endpoint that asks for tokens has no effect on a pipe of the same server. The client of a pipe has no scopes,
/// so what needs one is for it as if it were not there.
#[tokio::test]
async fn a_pipe_asks_for_no_token_and_gives_no_scopes() {
    let server = quiet()
        .text(Resource::new("a://open"), "open")
        .text(Resource::new("a://scoped").scopes(["read"]), "scoped")
        .build()
        .unwrap();
    let mut auth = Auth::new("https://api.example.com/mcp", ["https://login.example.com".to_owned()]);
    auth.required_scopes = vec!["read".into()];
    let tokens = StaticTokens::new([("token", Verified::new("ada").scopes(["read"]))]).unwrap();
    let _endpoint = server.http().auth(auth, tokens).build().unwrap();
    let (mut socket, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    for uri in ["a://open", "a://scoped", "a://absent"] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"uri": uri, "_meta": meta});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
        writeln!(socket, "{request}").unwrap();
    }
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    server.run_on(theirs.try_clone().unwrap(), theirs).await.unwrap();
    let mut output = String::new();
    socket.read_to_string(&mut output).unwrap();
    let lines: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [open, scoped, absent] = &lines[..] else { panic!("{output}") };
    assert_eq!(open["result"]["contents"][0]["text"], "open");
    assert!(scoped["error"].is_object(), "{scoped}");
    assert_eq!(scoped.to_string().replace("scoped", "absent"), absent.to_string());
}
