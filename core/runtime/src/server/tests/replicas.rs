//! Several processes as one deployment: with shared keys, each opens the texts that another has sealed.

use super::*;
use mcp_resources_engine::seal::SealKey;

async fn ask(request: ReadRequest) -> Handled {
    if request.state.is_some() {
        return IntoAnswer::<Read>::into_answer("answered");
    }
    let ask =
        InputAsk::Form { message: "Name?".into(), schema: r#"{"type":"object","properties":{}}"#.into() };
    let requests = vec![InputRequest { key: "name".into(), ask }];
    Ok(Answer::InputRequired(InputRequired { requests, state: Some(b"kept".as_slice().into()) }))
}

/// One process: a server with two pages, and a read that asks for input.
fn replica(key: Option<&str>) -> ResourceServer {
    let mut limits = Limits::default();
    limits.page = 1;
    let builder =
        quiet().limits(limits).resource(Resource::new("a://ask"), ask).text(Resource::new("a://two"), "two");
    match key {
        Some(key) => builder.key(SealKey::from_secret(key.as_bytes()).unwrap()).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

/// Starts a walk and a read on one server and continues on another; returns the second page and the second round.
async fn go_on(one: &ResourceServer, other: &ResourceServer) -> [Option<String>; 2] {
    let [mut one, mut other] = [one, other]
        .map(|server| Client::modern(server).unwrap().with_capabilities(json!({"elicitation": {}})));
    let page = one.request("resources/list", json!({})).await.unwrap();
    let next = other.request("resources/list", json!({"cursor": page["nextCursor"]})).await;
    let asked = one.read("a://ask").await.unwrap();
    let responses = json!({"name": {"action": "accept", "content": {}}});
    let retry = json!({"uri": "a://ask", "requestState": asked["requestState"], "inputResponses": responses});
    let read = other.request("resources/read", retry).await;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    for refused in [next.as_ref().err(), read.as_ref().err()].into_iter().flatten() {
        assert_eq!(refused.code, -32602);
    }
    [
        next.ok().and_then(|page| text(&page["resources"][0]["uri"])),
        read.ok().and_then(|read| text(&read["contents"][0]["text"])),
    ]
}

// R-104, R-105, R-140.
#[tokio::test]
async fn processes_with_the_same_keys_go_on_for_one_another() {
    let key = Some("a key that all processes share");
    let [first, second] = go_on(&replica(key), &replica(key)).await;
    assert_eq!((first.as_deref(), second.as_deref()), (Some("a://two"), Some("answered")));
}

// R-104, R-105: without keys each process has its own random one.
#[tokio::test]
async fn a_process_without_keys_opens_its_own_texts_alone() {
    let one = replica(None);
    assert!(go_on(&one, &one).await.iter().all(Option::is_some));
    assert_eq!(go_on(&one, &replica(None)).await, [None, None]);
}
