//! A server of another library with our engine in it, on values alone.

use super::*;
use crate::catalog::{ItemSource, ToolSource};
use crate::connection::{Answer, Arrival, Contents, Event, RequestToken};
use crate::engine::{EngineOptions, ServerInfo};
use crate::guard::Policy;
use crate::resource::{Prompt, Resource, Template, Tool};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":5}"#;

fn engine(policy: Option<Policy>) -> Arc<Engine> {
    let info = ServerInfo { name: "ours".into(), version: "1".into(), ..ServerInfo::default() };
    let options = EngineOptions { guard: policy.unwrap_or_default(), ..EngineOptions::default() };
    let engine = Engine::new(info, options).unwrap();
    let note =
        Edit::AddResource { resource: Resource::new("shop://note"), source: ItemSource::Text("ours".into()) };
    let item = Edit::AddTemplate {
        template: Box::new(Template::new("shop://item/{id}")),
        handler: engine.new_handler(),
        mount: None,
    };
    engine.publish(vec![note, item], Now::default()).unwrap();
    engine
}

fn with_tools(engine: &Engine) -> HandlerId {
    let handler = engine.new_handler();
    let tool = |name: &str| Edit::AddTool {
        tool: Box::new(Tool::new(name)),
        source: ToolSource::Handler(handler),
        mount: None,
    };
    let prompt = Edit::AddPrompt { prompt: Box::new(Prompt::new("greet")), handler, mount: None };
    engine.publish(vec![tool("ask"), tool("tell"), prompt], Now::default()).unwrap();
    handler
}

fn server(adopts: bool) -> Arc<EmbeddedServer> {
    EmbeddedServer::new(engine(None), adopts, Now::default()).unwrap()
}

/// A client, and the events that wait for handlers.
struct Side {
    connection: EmbeddedConnection,
    sender: Arc<Principal>,
    waiting: Vec<RequestToken>,
    cancelled: usize,
}

impl Side {
    fn new(server: &Arc<EmbeddedServer>, version: &str) -> Self {
        let connection = server.connect(version, true);
        Self { connection, sender: Principal::local(), waiting: Vec::new(), cancelled: 0 }
    }

    /// A session after its handshake.
    fn session(server: &Arc<EmbeddedServer>) -> Self {
        let mut side = Self::new(server, LEGACY);
        side.greet(
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"2"}}"#,
        );
        let (mut message, sender) = (Vec::new(), side.sender.clone());
        side.connection.tell(&mut message, "notifications/initialized", "{}", &sender, Now::default());
        side
    }

    fn greet(&mut self, theirs: &str) -> EmbeddedStep {
        let params =
            r#"{"protocolVersion":"2030-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let number = self.start("initialize", params, Some(TheirAnswer::Result(theirs)));
        self.last(number)
    }

    fn start(&mut self, method: &str, params: &str, theirs: Option<TheirAnswer<'_>>) -> u64 {
        let message = self.connection.prepare(EmbeddedRequest { method, params, id: "\"theirs\"", theirs });
        let sender = self.sender.clone();
        let outcome = self.connection.start(&message, &sender, Now::default());
        self.waiting.extend(outcome.events.iter().filter_map(Event::asks));
        message.number()
    }

    /// The only step, which is the last.
    fn last(&mut self, number: u64) -> EmbeddedStep {
        let step = self.connection.next_step(number).expect("a step");
        assert_eq!(self.connection.next_step(number), None);
        self.end(number);
        step
    }

    fn end(&mut self, number: u64) {
        let events = self.connection.end(number, Now::default());
        self.cancelled += events.iter().filter(|event| matches!(event, Event::Cancelled(_))).count();
    }

    fn request(&mut self, method: &str, params: &str) -> EmbeddedStep {
        let number = self.start(method, params, None);
        self.last(number)
    }

    fn both(&mut self, method: &str, params: &str, theirs: &str) -> String {
        let number = self.start(method, params, Some(TheirAnswer::Result(theirs)));
        match self.last(number) {
            EmbeddedStep::Result(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn asked(&mut self, number: u64) -> (&'static str, String) {
        match self.connection.next_step(number) {
            Some(EmbeddedStep::Ask { method, params }) => (method, params),
            other => panic!("{other:?}"),
        }
    }
}

fn sorted(server: &EmbeddedServer, method: &str, params: &str) -> Sorted {
    server.sort(method, true, &Principal::local(), || params.into())
}

fn params(members: &str) -> String {
    format!("{{{members}{}{META}}}", if members.is_empty() { "" } else { "," })
}

#[test]
fn messages_are_sorted_by_who_answers_them() {
    let plain = server(true);
    with_tools(plain.engine());
    let left = server(false);
    for (server, method, params, expected) in [
        (&plain, "initialize", "{}", Sorted::Both),
        (&plain, "server/discover", "{}", Sorted::Both),
        (&plain, "ping", "{}", Sorted::Theirs),
        (&plain, "vendor/own", "{}", Sorted::Theirs),
        (&plain, "logging/setLevel", r#"{"level":"info"}"#, Sorted::Told),
        (&plain, "resources/list", "{}", Sorted::Ours),
        (&plain, "resources/read", r#"{"uri":"own://x"}"#, Sorted::Ours),
        (&plain, "subscriptions/listen", "{}", Sorted::Ours),
        (&plain, "resources/templates/list", "{}", Sorted::Both),
        (&left, "resources/templates/list", "{}", Sorted::Ours),
        (&plain, "resources/subscribe", r#"{"uri":"shop://note"}"#, Sorted::Ours),
        (&plain, "resources/subscribe", r#"{"uri":"own://x"}"#, Sorted::Both),
        (&left, "resources/subscribe", r#"{"uri":"own://x"}"#, Sorted::Ours),
        (&plain, "tools/list", "{}", Sorted::Both),
        (&left, "tools/list", "{}", Sorted::Theirs),
        (&plain, "tools/call", r#"{"name":"ask"}"#, Sorted::Ours),
        (&plain, "tools/call", r#"{"name":"add"}"#, Sorted::Theirs),
        (&plain, "tools/call", r#"[]"#, Sorted::Theirs),
        (&plain, "prompts/get", r#"{"name":"greet"}"#, Sorted::Ours),
        (&left, "prompts/get", r#"{"name":"greet"}"#, Sorted::Theirs),
        (&plain, "completion/complete", r#"{"ref":{"type":"ref/resource","uri":"own://{x}"}}"#, Sorted::Ours),
        (&plain, "completion/complete", r#"{"ref":{"type":"ref/prompt","name":"greet"}}"#, Sorted::Ours),
        (&plain, "completion/complete", r#"{"ref":{"type":"ref/prompt","name":"theirs"}}"#, Sorted::Theirs),
    ] {
        assert_eq!(sorted(server, method, params), expected, "{method} {params}");
    }
    let notified =
        |method, params: &'static str| plain.sort(method, false, &Principal::local(), || params.into());
    assert_eq!(notified("notifications/initialized", "{}"), Sorted::Told);
    assert_eq!(notified("notifications/progress", "{}"), Sorted::Theirs);
    assert_eq!(notified("notifications/cancelled", r#"{"requestId":"a"}"#), Sorted::Cancels("\"a\"".into()));
    assert_eq!(notified("notifications/cancelled", "{}"), Sorted::Theirs);
    assert_eq!(notified("resources/list", "{}"), Sorted::Theirs);
}

/// A greeting gets our resources, and keeps everything else of the other server, text for text.
#[test]
fn greetings_are_merged() {
    let server = server(true);
    let theirs = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":false},"logging":{},"resources":{"x":1}},"serverInfo":{"name":"t", "version":"2"},"instructions":"Be nice."}"#;
    let mut side = Side::new(&server, LEGACY);
    let EmbeddedStep::Result(greeting) = side.greet(theirs) else { panic!("a greeting") };
    let resources = r#"{"subscribe":true,"listChanged":true}"#;
    assert_eq!(greeting, theirs.replace(r#"{"x":1}"#, resources));
    assert_eq!(side.connection.told(), Some(ListKinds::RESOURCES));
    // The other server has chosen the revision, whatever the client asked for.
    let read = side.request("resources/read", r#"{"uri":"shop://note"}"#);
    assert!(matches!(&read, EmbeddedStep::Result(text) if !text.contains("ttlMs")), "{read:?}");

    with_tools(server.engine());
    let mut side = Side::new(&server, MODERN);
    let theirs = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":false},"extensions":{"a/b":{}}},"resultType":"complete"}"#;
    let merged = side.both("server/discover", &params(""), theirs);
    assert!(merged.starts_with(r#"{"supportedVersions":["2026-07-28","2025-11-25""#), "{merged}");
    assert!(merged.contains(r#""tools":{"listChanged":true},"extensions":{"a/b":{}}"#), "{merged}");
    assert!(
        merged.contains(r#""prompts":{"listChanged":true}"#) && !merged.contains("completions"),
        "{merged}"
    );
    assert!(!merged.contains("serverInfo"), "results are in the name of the other server");
}

/// A greeting that the other server refuses is not ours to give.
#[test]
fn errors_of_the_other_server_stay() {
    let server = server(true);
    let mut side = Side::new(&server, LEGACY);
    let error = |code| Some(TheirAnswer::Error { code, message: "no", data: None });
    let number = side.start("initialize", "{}", error(-32602));
    assert_eq!(side.last(number), EmbeddedStep::Theirs);
    let mut side = Side::session(&server);
    with_tools(server.engine());
    let number = side.start("tools/list", "{}", error(-32603));
    assert_eq!(side.last(number), EmbeddedStep::Theirs);
    // A server without tools has no list.
    let number = side.start("tools/list", "{}", error(-32601));
    assert!(matches!(side.last(number), EmbeddedStep::Result(text) if text.contains(r#""name":"ask""#)));
    let number = side.start("resources/subscribe", r#"{"uri":"own://x"}"#, error(-32601));
    assert_eq!(side.last(number), EmbeddedStep::Result("{}".into()));
    // A subscription that this engine refuses is none, whatever the other server says.
    let theirs = Some(TheirAnswer::Result("{}"));
    let number = side.start("resources/subscribe", r#"{"uri":""}"#, theirs);
    assert!(matches!(side.last(number), EmbeddedStep::Error { .. }));
}

#[test]
fn our_tools_follow_the_last_page_and_give_way() {
    let server = server(true);
    with_tools(server.engine());
    let mut side = Side::session(&server);
    let more = r#"{"tools":[{"name":"add"},{"name":"tell"}],"nextCursor":"2"}"#;
    assert_eq!(side.both("tools/list", "{}", more), more);
    assert_eq!(server.take_warnings().len(), 1);
    let last = side.both("tools/list", r#"{"cursor":"2"}"#, r#"{"tools":[{"name":"sub"}]}"#);
    assert!(
        last.starts_with(r#"{"tools":[{"name":"sub"},{"name":"ask""#) && !last.contains("tell"),
        "{last}"
    );
    assert_eq!(sorted(&server, "tools/call", r#"{"name":"tell"}"#), Sorted::Theirs);
    assert_eq!(sorted(&server, "tools/call", r#"{"name":"ask"}"#), Sorted::Ours);
    side.both("tools/list", "{}", more);
    assert!(server.take_warnings().is_empty(), "logged once");
    // After a change of the other server's tools both may be there again.
    assert!(!server.changed(
        Some(ListKinds::RESOURCES),
        "notifications/tools/list_changed",
        "{}",
        Now::default()
    ));
    assert_eq!(sorted(&server, "tools/call", r#"{"name":"tell"}"#), Sorted::Ours);
    assert_eq!(EmbeddedServer::tool_names(server.engine()), ["ask", "tell"]);
}

/// A hidden tool or prompt is the other server's to refuse, as is one that does not exist.
#[test]
fn hidden_names_go_to_the_other_server() {
    let policy = r#"{"tools":{"deny":["tell"]},"prompts":{"deny":["greet"]}}"#;
    let policy = Policy::from_json(policy).unwrap();
    let server = EmbeddedServer::new(engine(Some(policy)), true, Now::default()).unwrap();
    with_tools(server.engine());
    for (method, params) in [
        ("tools/call", r#"{"name":"tell"}"#),
        ("tools/call", r#"{"name":"absent"}"#),
        ("prompts/get", r#"{"name":"greet"}"#),
        ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"greet"}}"#),
    ] {
        assert_eq!(sorted(&server, method, params), Sorted::Theirs, "{method} {params}");
    }
    assert_eq!(sorted(&server, "tools/call", r#"{"name":"ask"}"#), Sorted::Ours);
}

/// A message that the other server's library has parsed is sorted as its line is.
#[test]
fn parsed_messages_are_sorted_as_lines() {
    let server = server(true);
    let local = Principal::local();
    for line in [
        r#"{"jsonrpc":"2.0","id":"7","method":"resources/read","params":{"uri":"shop://note"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"own://x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
    ] {
        let members = Json::parse(line.as_bytes(), 9).unwrap().object().unwrap();
        let method = members.get("method").unwrap().as_str().unwrap();
        let is_request = members.get("id").is_some();
        let parsed = server.client_message(&method, is_request, &local, || line.to_owned());
        assert_eq!(format!("{parsed:?}"), format!("{:?}", server.client_line(line.as_bytes(), &local)));
    }
    let unread = server.client_message("tools/call", true, &local, || panic!("nothing depends on it"));
    assert!(matches!(unread, ClientLine::Theirs));
    let key = EmbeddedServer::question_key(3);
    assert!(EmbeddedServer::is_question(&key) && !EmbeddedServer::is_question("3"));
    assert_eq!(EmbeddedServer::id_key(r#""\u0061""#), EmbeddedServer::id_key(r#""a""#));
}

#[test]
fn templates_of_both_are_listed_under_our_policy() {
    let policy = r#"{"deny":["own://secret/**"]}"#;
    let policy = Policy::from_json(policy).unwrap();
    let server = EmbeddedServer::new(engine(Some(policy)), true, Now::default()).unwrap();
    let mut side = Side::session(&server);
    let theirs = r#"{"resourceTemplates":[{"uriTemplate":"own://{a}","name":"a"},{"uriTemplate":"own://secret/{b}","name":"b"},{"uriTemplate":"shop://item/{id}","name":"c"}]}"#;
    let listed = side.both("resources/templates/list", "{}", theirs);
    assert!(listed.contains("own://{a}") && !listed.contains("secret"), "{listed}");
    assert_eq!(listed.matches("shop://item/{id}").count(), 2, "its text, and its name: {listed}");
    assert_eq!(server.take_warnings().len(), 1);
}

/// The other server lists and reads its own resources for the request at hand.
#[test]
fn resources_of_the_other_server_are_adopted() {
    let server = server(true);
    let mut side = Side::new(&server, MODERN);
    let number = side.start("resources/list", &params(""), None);
    let (method, asked) = side.asked(number);
    assert_eq!((method, asked), ("resources/list", params("")));
    let page = r#"{"resources":[{"uri":"own://a","name":"a","x":1},{"uri":"shop://item/7","name":"both"}],"nextCursor":"p2"}"#;
    side.connection.answer(number, TheirAnswer::Result(page), Now::default());
    let EmbeddedStep::Result(listed) = side.last(number) else { panic!("a list") };
    assert!(
        listed.contains(r#"{"uri":"own://a","name":"a","x":1}"#) && !listed.contains("item/7"),
        "{listed}"
    );
    assert!(server.take_warnings()[0].contains("shop://item/7"));
    let next = Json::parse(listed.as_bytes(), 9).unwrap().object().unwrap().get("nextCursor").unwrap();
    let number = side.start("resources/list", &params(&format!(r#""cursor":{}"#, next.raw())), None);
    assert_eq!(side.asked(number).1, params(r#""cursor":"p2""#));
    side.end(number);

    let number = side.start("resources/read", &params(r#""uri":"own://a""#), None);
    assert_eq!(side.asked(number), ("resources/read", params(r#""uri":"own://a""#)));
    let contents = r#"{"contents":[{"uri":"own://a","mimeType":"text/x","text":"theirs"}],"ttlMs":7,"cacheScope":"public"}"#;
    side.connection.answer(number, TheirAnswer::Result(contents), Now::default());
    let EmbeddedStep::Result(read) = side.last(number) else { panic!("contents") };
    assert!(
        read.contains(r#""mimeType":"text/x","text":"theirs""#) && read.contains(r#""ttlMs":7"#),
        "{read}"
    );

    let read = params(r#""uri":"own://b""#);
    let mut failed = |code, message| {
        let number = side.start("resources/read", &read, None);
        side.asked(number);
        side.connection.answer(number, TheirAnswer::Error { code, message, data: None }, Now::default());
        side.last(number)
    };
    assert_eq!(failed(-32000, "it burns"), EmbeddedStep::Theirs);
    let absent = failed(-32602, "Unknown resource: own://b");
    assert!(matches!(&absent, EmbeddedStep::Error { code: -32602, .. }), "{absent:?}");
    assert_eq!(side.connection.in_flight(), 0);
}

/// A resource that the policy hides gets the answer of one that does not exist, and the other server is not asked.
#[test]
fn hidden_resources_of_the_other_server_are_absent() {
    let policy = Policy::from_json(r#"{"deny":["own://secret/**"]}"#).unwrap();
    let server = EmbeddedServer::new(engine(Some(policy)), true, Now::default()).unwrap();
    let mut side = Side::session(&server);
    let subscribed = sorted(&server, "resources/subscribe", r#"{"uri":"own://secret/1"}"#);
    assert_eq!(subscribed, Sorted::Ours, "the other server does not hear of it");
    let hidden = side.request("resources/read", r#"{"uri":"own://secret/1"}"#);
    let number = side.start("resources/read", r#"{"uri":"own://gone/01"}"#, None);
    side.asked(number);
    let error = TheirAnswer::Error { code: -32002, message: "Resource not found", data: None };
    side.connection.answer(number, error, Now::default());
    let absent = side.last(number);
    let text =
        |step: &EmbeddedStep| format!("{step:?}").replace("own://secret/1", "").replace("own://gone/01", "");
    assert_eq!(text(&hidden), text(&absent));
    let number = side.start("resources/list", "{}", None);
    side.asked(number);
    let page = r#"{"resources":[{"uri":"own://secret/1","name":"a"},{"uri":"own://b","name":"b"}]}"#;
    side.connection.answer(number, TheirAnswer::Result(page), Now::default());
    let EmbeddedStep::Result(listed) = side.last(number) else { panic!("a list") };
    assert!(listed.contains("own://b") && !listed.contains("secret"), "{listed}");
}

#[test]
fn without_adoption_the_other_servers_resources_are_absent() {
    let server = server(false);
    let mut side = Side::session(&server);
    let EmbeddedStep::Result(listed) = side.request("resources/list", "{}") else { panic!("a list") };
    assert!(listed.contains("shop://note"), "{listed}");
    let read = side.request("resources/read", r#"{"uri":"own://a"}"#);
    assert!(matches!(read, EmbeddedStep::Error { code: -32002, .. }), "{read:?}");
}

/// One notification for each change, to those who subscribed, whichever server tells it.
#[test]
fn changes_reach_subscribers_only_and_once() {
    let server = server(true);
    let mut one = Side::session(&server);
    let mut other = Side::session(&server);
    one.request("resources/subscribe", r#"{"uri":"shop://note"}"#);
    let mut listen = Side::new(&server, MODERN);
    let filter = r#""notifications":{"resourceSubscriptions":["shop://note"],"toolsListChanged":true}"#;
    let number = listen.start("subscriptions/listen", &params(filter), None);
    let acknowledged = listen.connection.next_step(number);
    let Some(EmbeddedStep::Send(notice)) = acknowledged else { panic!("{acknowledged:?}") };
    let text = notice.params.unwrap();
    assert!(text.contains(r#""io.modelcontextprotocol/subscriptionId":"theirs""#), "{text}");
    assert!(text.contains(r#""toolsListChanged":true"#), "{text}");
    let tell = |method, params: &str| server.changed(None, method, params, Now::default());
    assert!(tell("notifications/resources/updated", r#"{"uri":"shop://note"}"#));
    assert!(tell("notifications/resources/updated", r#"{"uri":"shop://note"}"#));
    assert!(tell("notifications/resources/updated", r#"{"uri":"not a uri"}"#));
    assert!(!tell("notifications/message", "{}"));
    let told: Vec<_> = one.connection.deliver(ROOM).into_iter().map(|notice| notice.method).collect();
    assert_eq!(told, ["notifications/resources/updated"]);
    assert!(other.connection.deliver(ROOM).is_empty() && one.connection.deliver(ROOM).is_empty());
    let Some(EmbeddedStep::Send(notice)) = listen.connection.next_step(number) else { panic!("an update") };
    assert_eq!(notice.method, "notifications/resources/updated");
    assert!(tell("notifications/tools/list_changed", "{}"));
    let Some(EmbeddedStep::Send(notice)) = listen.connection.next_step(number) else { panic!("a change") };
    assert_eq!(notice.method, "notifications/tools/list_changed");
    assert_eq!(listen.connection.next_step(number), None);
    assert!(one.connection.deliver(ROOM).is_empty(), "a session is told by the other server");
    listen.end(number);
    listen.connection.close(Now::default());
    one.connection.close(Now::default());
    other.connection.close(Now::default());
    let counts = server.engine().subscriptions();
    assert_eq!((counts.connections, counts.subscriptions, counts.uris), (0, 0, 0), "{counts:?}");
}

/// The end of a server that another one goes on serving: listens get their results, sessions hear nothing more.
#[test]
fn listens_end_when_the_server_is_closed() {
    let server = server(true);
    let mut one = Side::session(&server);
    one.request("resources/subscribe", r#"{"uri":"shop://note"}"#);
    let mut listen = Side::new(&server, MODERN);
    let filter = r#""notifications":{"resourceSubscriptions":["shop://note"]}"#;
    let number = listen.start("subscriptions/listen", &params(filter), None);
    assert!(matches!(listen.connection.next_step(number), Some(EmbeddedStep::Send(_))), "acknowledged");
    server.shutdown();
    server.changed(None, "notifications/resources/updated", r#"{"uri":"shop://note"}"#, Now::default());
    let step = listen.connection.next_step(number);
    assert!(matches!(&step, Some(EmbeddedStep::Result(text)) if text.contains("complete")), "{step:?}");
    assert!(one.connection.deliver(ROOM).is_empty());
    assert!(matches!(one.request("resources/read", r#"{"uri":"shop://note"}"#), EmbeddedStep::Result(_)));
    let mut later = Side::new(&server, MODERN);
    let number = later.start("subscriptions/listen", &params(filter), None);
    assert!(matches!(later.connection.next_step(number), Some(EmbeddedStep::Send(_))), "a later one goes on");
    assert_eq!(later.connection.next_step(number), None);
}

/// A line as a client sends it.
fn line(id: &str, method: &str, members: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}}}}}"#).into_bytes()
}

const HELLO: &str =
    r#""protocolVersion":"2030-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}"#;
const GREETED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"2"}}}"#;

/// A message that does not concern this engine is the other server's, whatever its sender and its params; so a binding may
/// pass it on unread.
#[test]
fn what_does_not_concern_this_engine_is_the_other_servers() {
    let (bare, tools) = (server(true), engine(None));
    with_tools(&tools);
    let tools = EmbeddedServer::new(tools, true, Now::default()).unwrap();
    for (method, is_request, concerned) in [
        ("ping", true, [false, false]),
        ("tools/call", true, [false, true]),
        ("prompts/get", true, [false, true]),
        ("app/custom", true, [false, false]),
        ("notifications/progress", false, [false, false]),
        ("tools/call", false, [false, false]),
        ("notifications/initialized", false, [true, true]),
        ("notifications/cancelled", false, [true, true]),
        ("initialize", true, [true, true]),
        ("resources/read", true, [true, true]),
        ("tools/list", true, [true, true]),
    ] {
        for (server, concerned) in [&bare, &tools].into_iter().zip(concerned) {
            assert_eq!(server.concerns(method, is_request), concerned, "{method}");
            if !concerned {
                let never = || panic!("the params of {method} are not read");
                assert_eq!(server.sort(method, is_request, &Principal::local(), never), Sorted::Theirs);
            }
        }
    }
}

/// In front of a session, reads of ours alone are answered, and only once the other server has begun it.
#[test]
fn a_pipe_in_front_takes_reads_of_our_own_in_a_session() {
    let server = server(true);
    let mut front = EmbeddedFront::new(&server);
    let read = |uri: &str| line("7", "resources/read", &format!(r#""uri":"{uri}""#));
    assert_eq!(front.client_line(&line("1", "initialize", HELLO)), FrontLine::Theirs);
    assert_eq!(front.client_line(&read("shop://note")), FrontLine::Theirs);
    let message = front.server_line(GREETED.as_bytes()).expect("a session");
    let text = String::from_utf8(message.clone()).unwrap();
    assert!(text.contains(r#""protocolVersion":"2025-11-25""#), "{text}");
    let mut connection = EmbeddedFront::connect(server.engine());
    let sender = Principal::local();
    let arrival = Arrival { message: &message, principal: &sender, header_check: None };
    connection.message(arrival, Now::default(), &mut Vec::new());
    assert_eq!(connection.revision(), Revision::parse(LEGACY));
    assert_eq!(server.engine().subscriptions().connections, 0, "the session is told by the other connection");
    assert_eq!(front.waiting(), 1);
    for (uri, gets) in [
        ("shop://note", FrontLine::Ours),
        ("shop://item/7", FrontLine::Ours),
        ("app://theirs", FrontLine::Theirs),
        ("shop://no/such", FrontLine::Theirs),
    ] {
        assert_eq!(front.client_line(&read(uri)), gets, "{uri}");
    }
    let level = line("8", "logging/setLevel", r#""level":"debug""#);
    assert_eq!(front.client_line(&level), FrontLine::Both);
    assert_eq!(front.client_line(&line("9", "resources/list", "")), FrontLine::Theirs);
    assert_eq!(front.client_line(b"no JSON"), FrontLine::Theirs);
    let modern = line("10", "resources/read", &format!(r#""uri":"shop://note",{META}"#));
    assert_eq!(front.client_line(&modern), FrontLine::Theirs, "the other server refuses what mixes the eras");
}

/// What the other server has not answered is known, so that the end of input can wait for it.
#[test]
fn a_pipe_in_front_counts_what_is_not_answered() {
    let server = server(false);
    let mut front = EmbeddedFront::new(&server);
    assert_eq!(front.server_line(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#), None);
    let modern = |id: &str, method: &str, members: &str| line(id, method, &format!("{members},{META}"));
    assert_eq!(front.client_line(&modern("1", "resources/read", r#""uri":"shop://note""#)), FrontLine::Ours);
    assert_eq!(front.client_line(&modern("2", "tools/list", r#""a":1"#)), FrontLine::Theirs);
    assert_eq!(front.client_line(&modern("\"3\"", "tools/list", r#""a":1"#)), FrontLine::Theirs);
    let listen = modern("4", "subscriptions/listen", r#""notifications":{}"#);
    assert_eq!(front.client_line(&listen), FrontLine::Theirs);
    assert_eq!(front.waiting(), 2, "a listen lasts as long as the client");
    assert_eq!(front.server_line(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#), None);
    assert_eq!(front.waiting(), 1);
    let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3"}}"#;
    assert_eq!(front.client_line(cancel), FrontLine::Both);
    assert_eq!(front.waiting(), 0);
    for id in 0..3_000 {
        front.client_line(&modern(&id.to_string(), "tools/list", r#""a":1"#));
    }
    assert_eq!(front.waiting(), 1_024);
    front.server_left();
    assert_eq!(front.waiting(), 0);
}

/// Ten thousand sessions at a time, each with a subscription and a request that waits for its handler.
#[test]
fn many_sessions_leave_nothing_behind() {
    let server = server(true);
    let mut sides: Vec<Side> = (0..10_000).map(|_| Side::session(&server)).collect();
    for side in &mut sides {
        side.request("resources/subscribe", r#"{"uri":"shop://note"}"#);
        side.start("resources/read", r#"{"uri":"shop://item/7"}"#, None);
    }
    let counts = server.engine().subscriptions();
    assert_eq!((counts.connections, counts.subscriptions, counts.uris), (10_000, 10_000, 1), "{counts:?}");
    server.changed(None, "notifications/resources/updated", r#"{"uri":"shop://note"}"#, Now::default());
    let told: usize = sides.iter_mut().map(|side| side.connection.deliver(ROOM).len()).sum();
    assert_eq!(told, 10_000);
    let cancelled: usize = sides.iter_mut().map(|side| side.connection.close(Now::default()).len()).sum();
    assert_eq!(cancelled, 10_000, "each handler is told");
    assert!(sides.iter().all(|side| side.connection.in_flight() == 0));
    let counts = server.engine().subscriptions();
    assert_eq!((counts.connections, counts.subscriptions, counts.uris), (0, 0, 0), "{counts:?}");
}

const ROOM: usize = 1 << 16;

/// A request that its client gives up is cancelled; its answer is not wanted any more.
#[test]
fn a_request_that_ends_early_is_cancelled() {
    let server = server(true);
    let mut side = Side::session(&server);
    let number = side.start("resources/read", r#"{"uri":"shop://item/7"}"#, None);
    assert_eq!((side.waiting.len(), side.connection.in_flight()), (1, 1));
    side.end(number);
    assert_eq!((side.cancelled, side.connection.in_flight()), (1, 0));
    let token = side.waiting[0];
    side.connection.respond(token, Answer::Contents(Contents::text("late").into()), Now::default());
    assert_eq!(side.connection.next_step(number), None);
    // So is one that waits for the other server, without an event for a handler.
    let number = side.start("resources/read", r#"{"uri":"own://x"}"#, None);
    side.end(number);
    assert_eq!(side.cancelled, 1);
    side.connection.answer(number, TheirAnswer::Result("{}"), Now::default());
    assert_eq!(side.connection.deadline(), None);
}

#[test]
fn the_sender_is_the_owner_of_a_token() {
    let scopes = ["read".to_owned()];
    let sender = |owner| EmbeddedServer::sender(Some(SenderToken { owner, scopes: &scopes }), true);
    assert_eq!((sender("ada").id(), sender("ada").scopes()), ("ada", &scopes[..]));
    assert!(EmbeddedServer::sender(None, true).is_local());
    assert!(EmbeddedServer::sender(None, false).is_anonymous());
    for nobody in ["", "anonymous"] {
        let sender = sender(nobody);
        assert!(sender.is_anonymous() && sender.scopes().is_empty(), "{nobody:?}");
    }
}

/// A request without a session is served under the revision that the other server assumes, without notifications.
#[test]
fn a_legacy_request_may_come_without_a_session() {
    let server = server(true);
    let mut side = Side::new(&server, LEGACY);
    side.connection = server.connect("2025-03-26", false);
    assert!(matches!(side.request("resources/read", r#"{"uri":"shop://note"}"#), EmbeddedStep::Result(_)));
    assert!(matches!(
        side.request("resources/subscribe", r#"{"uri":"shop://note"}"#),
        EmbeddedStep::Error { .. }
    ));
    let EmbeddedStep::Result(greeting) = side.greet(r#"{"protocolVersion":"2025-03-26","capabilities":{}}"#)
    else {
        panic!("a greeting")
    };
    assert!(greeting.contains(r#""resources":{}"#), "{greeting}");
}

#[test]
fn an_engine_is_part_of_one_server() {
    let engine = engine(None);
    EmbeddedServer::new(engine.clone(), true, Now::default()).unwrap();
    let again = EmbeddedServer::new(engine, false, Now::default()).unwrap_err().to_string();
    assert!(again.contains("make another one"), "{again}");
    let engine = self::engine(None);
    let fallback = Edit::SetFallback { handler: Some(engine.new_handler()) };
    engine.publish(vec![fallback], Now::default()).unwrap();
    let refused = EmbeddedServer::new(engine, true, Now::default()).unwrap_err().to_string();
    assert!(refused.contains("expected false, because"), "{refused}");
}
