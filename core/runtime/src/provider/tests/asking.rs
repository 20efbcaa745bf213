//! Questions of providers to legacy clients.

use super::*;
use crate::provider::{AskedClient, ProviderQuestion};
use mcp_resources_engine::connection::RawResult;

const METHOD: &str = "notes/ask";

/// Asks its client `roots/list`, and keeps the call until it is answered or cancelled.
#[derive(Default)]
struct Asks {
    calls: Mutex<Vec<(Responder<RawResult<'static>>, Option<ProviderQuestion>)>>,
    clients: Mutex<Vec<AskedClient>>,
    answers: Arc<Mutex<Vec<String>>>,
}

impl Provider for Asks {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        Ok(Mount::new("asks").method(Route(1), METHOD).workers(0, 0))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Err(ReadError::NotFound));
    }

    fn call(&self, _request: Call, reply: Responder<RawResult<'static>>) {
        let Some(client) = reply.asked() else { return reply.send(Err(ReadError::InputRequired)) };
        let answers = self.answers.clone();
        let open = client.ask("roots/list", "{}", move |answer| lock(&answers).push(format!("{answer:?}")));
        lock(&self.answers).extend(open.as_ref().err().map(ToString::to_string));
        lock(&self.calls).push((reply, open.ok()));
        lock(&self.clients).push(client);
    }
}

fn shake_hands(served: &TestServer, capabilities: Value) {
    let info = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
    served.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    served.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    served.got();
}

fn legacy(served: &TestServer, id: u64) -> Vec<Value> {
    served.send(&json!({ "jsonrpc": "2.0", "id": id, "method": METHOD, "params": {} }));
    served.got()
}

// R-004, R-132: a provider asks the client of a call; the answer comes back, also after the time of a read; a question that is
// dropped is withdrawn.
#[test]
fn a_provider_asks_the_client_of_a_call() {
    let served = TestServer::new(limits(|limits| limits.read_timeout = 1_000));
    let asks = Arc::new(Asks::default());
    served.mount(asks.clone());
    shake_hands(&served, json!({ "roots": {} }));
    let asked = &legacy(&served, 1)[0];
    assert_eq!(asked["method"], "roots/list");
    served.pass(900);
    served.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } }));
    assert_eq!(*lock(&asks.answers), [r#"Some(Ok("{\"roots\":[]}"))"#]);
    // Answered: nothing to withdraw.
    lock(&asks.calls).clear();
    served.got();
    let asked = legacy(&served, 2)[0]["id"].clone();
    served.send(&json!({ "jsonrpc": "2.0", "id": asked, "error": { "code": -1, "message": "no" } }));
    assert!(lock(&asks.answers)[1].starts_with("Some(Err("), "{:?}", asks.answers);
    let asked = legacy(&served, 3)[0]["id"].clone();
    let open = lock(&asks.calls).last_mut().and_then(|(_, open)| open.take());
    drop(open);
    let withdrawn = served.got().remove(0);
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked)
    );
    served.send(&json!({ "jsonrpc": "2.0", "id": asked, "result": {} }));
    assert_eq!(lock(&asks.answers).len(), 2, "the late answer is nobody's");
    // One session for all of its calls, which ends with the connection.
    let clients = lock(&asks.clients).clone();
    assert!(clients.windows(2).all(|pair| pair[0].session() == pair[1].session()));
    assert!(clients[0].session().is_open() && clients[0].capabilities().roots);
    legacy(&served, 4);
    let events = served.pipe.close();
    served.event_handler.handle(&served.peer(), events);
    assert_eq!(lock(&asks.answers).last().map(String::as_str), Some("None"));
    assert!(!clients[0].session().is_open());
    lock(&asks.calls).clear();
}

#[test]
fn other_clients_are_not_asked() {
    let served = TestServer::new(Limits::default());
    let asks = Arc::new(Asks::default());
    served.mount(asks.clone());
    served.ask(1, METHOD, json!({}));
    assert!(served.wait(1)[0].get("error").is_some(), "a modern client");
    let served = TestServer::new(Limits::default());
    served.mount(asks.clone());
    shake_hands(&served, json!({}));
    assert_eq!(legacy(&served, 1), Vec::<Value>::new());
    assert_eq!(*lock(&asks.answers), ["the client has not declared the capability"]);
    lock(&asks.calls).clear();
}
