//! Bearer tokens are for HTTP; a pipe requires none.

use super::*;
use crate::transport::http::{StaticTokens, Verified};
use mcp_resources_engine::http::Auth;

// requiring tokens over HTTP has no effect on a pipe of the same server. The client of a pipe has no scopes, so
// resources that require some do not exist for it.
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
    let reads = ["a://open", "a://scoped", "a://absent"];
    let lines = conversation(&server, &reads.map(|uri| (1, "resources/read", json!({"uri": uri})))).await;
    let [open, scoped, absent] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(open["result"]["contents"][0]["text"], "open");
    assert!(scoped["error"].is_object(), "{scoped}");
    assert_eq!(scoped.to_string().replace("scoped", "absent"), absent.to_string());
}
