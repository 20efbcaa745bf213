//! Custom methods and extensions that providers declare.

use super::*;
use mcp_resources_engine::connection::RawResult;
use mcp_resources_engine::engine::Extension;

const METHOD: &str = "notes/list";
const EXTENSION: &str = "io.modelcontextprotocol/notes";

/// Answers each call with its own params.
struct Answers(&'static str);

impl Provider for Answers {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        let mount = Mount::new(self.0).method(Route(7), METHOD).method(Route(8), "notes/fails");
        Ok(mount.extension(EXTENSION, "{ \"deep\":\n true }").workers(0, 0))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Err(ReadError::NotFound));
    }

    fn call(&self, request: Call, reply: Responder<RawResult<'static>>) {
        if request.route() == Route(8) {
            return drop(reply);
        }
        let shown = json!({
            "method": request.method(), "params": serde_json::from_str::<Value>(request.params()).unwrap(),
            "page": request.page(), "who": request.principal().id(), "sees": request.permits("note:///a"),
        });
        reply.send(Ok(RawResult { members: shown.to_string().into(), ..RawResult::default() }));
    }
}

fn extensions(served: &TestServer) -> Value {
    served.ask(90, "server/discover", json!({}));
    served.wait(1)[0]["result"]["capabilities"]["extensions"].clone()
}

// S-57, R-054: the method of a mount can be called, and its extension is declared, while it is mounted.
#[test]
fn a_mount_declares_methods_and_an_extension() {
    let served = TestServer::new(Limits::default());
    assert_eq!(extensions(&served), Value::Null);
    let id = served.mount(Arc::new(Answers("notes")));
    assert_eq!(extensions(&served), json!({ EXTENSION: { "deep": true } }));
    served.ask(1, METHOD, json!({ "cursor": "x" }));
    let answer = &served.wait(1)[0]["result"];
    assert_eq!((&answer["method"], &answer["page"]), (&json!(METHOD), &json!(Limits::default().page)));
    assert_eq!((&answer["params"]["cursor"], &answer["sees"]), (&json!("x"), &json!(true)));
    assert_eq!((&answer["resultType"], &answer["ttlMs"]), (&json!("complete"), &json!(0)), "it is a list");
    served.ask(2, "notes/fails", json!({}));
    assert_eq!(kind(&served.wait(1)[0]), "read_error");
    assert_eq!(
        served.said(),
        ["notes: the provider dropped a list, a completion or a call without an answer"]
    );
    served.mounts.unmount(id);
    served.ask(3, METHOD, json!({}));
    assert_eq!(served.wait(1)[0]["error"]["code"], -32601);
    assert_eq!(extensions(&served), Value::Null);
    assert!(served.engine.catalog().is_empty());
    served.mount(Arc::new(Answers("again")));
}

// S-57: a second declaration is refused, and the error names the first.
#[test]
fn what_is_declared_twice_is_refused() {
    let served = TestServer::new(Limits::default());
    served.mount(Arc::new(Answers("notes")));
    let refused = |served: &TestServer, mount: Mount| {
        let error = served.mounts.mount(Holds::new(mount).0).unwrap_err().to_string();
        assert!(error.starts_with("second: "), "{error}");
        error
    };
    let second = || Mount::new("second").resource(ONE, Resource::new("second:///"));
    let twice = refused(&served, second().method(ONE, METHOD));
    assert_eq!(twice, "second: the method \"notes/list\" is declared already; the mount notes has it");
    let extension = refused(&served, second().extension(EXTENSION, "{}"));
    assert_eq!(extension, "second: the extension \"io.modelcontextprotocol/notes\" is declared already");
    for method in ["", "resources/read", "completion/complete", "a b", "é"] {
        assert!(refused(&served, second().method(ONE, method)).contains("not a method of the protocol"));
    }
    for (id, settings) in [("notes", "{}"), ("a b/c", "{}"), ("com.example/a", "[]"), ("com.example/a", "{")]
    {
        refused(&served, second().extension(id, settings));
    }
    assert_eq!((served.engine.catalog().len(), served.mounts.len()), (0, 1), "nothing of them");

    let handler = u32::MAX;
    let own = Extension { method: METHOD.into(), handler, ..Extension::default() };
    let served = TestServer::with(|options| {
        options.extensions.push(own);
        options.extension_capabilities.push(("com.example/a".into(), "{}".into()));
    });
    assert!(refused(&served, second().method(ONE, METHOD)).ends_with("\"notes/list\" is declared already"));
    assert!(refused(&served, second().extension("com.example/a", "{}")).contains("declared already"));
}
