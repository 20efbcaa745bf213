//! Tools and prompts whose schemas come from types.

use super::*;
use mcp_resources_engine::connection::{ContentBlock, ToolResult};
use mcp_resources_engine::resource::{Parameter, ParameterKind, Prompt, RegistrationError, Tool, UiPage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Pair {
    /// The dividend.
    a: i32,
    b: Option<i32>,
}

#[derive(Serialize, JsonSchema)]
struct Quotient {
    value: i32,
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
    years: Option<u8>,
}

async fn divide(pair: Pair) -> Result<Structured<Quotient>, HandlerError> {
    match (pair.a, pair.b.unwrap_or(1)) {
        (_, 0) => Err(ToolError::new("b must not be 0").into()),
        (13, _) => Err(std::io::Error::other("secret").into()),
        (a, b) => Ok(Structured(Quotient { value: a / b })),
    }
}

fn served() -> ResourceServer {
    let greet =
        |person: Person, _| async move { format!("{} is {}", person.name, person.years.unwrap_or(1)) };
    let server = quiet()
        .tool(Tool::new("divide").title("Divide"), |pair: Pair, _| divide(pair))
        .tool_with("echo", |call: NamedCall| async move { call.arguments })
        .prompt(Prompt::new("greet"), greet)
        .complete("name", |_| async { vec!["Ada"] });
    server.build().unwrap()
}

async fn called(client: &mut Client, name: &str, arguments: Value) -> Value {
    client.request("tools/call", json!({"name": name, "arguments": arguments})).await.unwrap()
}

// S-60
#[tokio::test]
async fn schemas_come_from_types() {
    let mut client = Client::modern(&served()).unwrap();
    let tools = client.request("tools/list", json!({})).await.unwrap();
    let divide = &tools["tools"][0];
    assert_eq!(divide["inputSchema"]["required"], json!(["a"]));
    assert_eq!(divide["inputSchema"]["properties"]["a"]["description"], "The dividend.");
    assert_eq!(divide["outputSchema"]["properties"]["value"]["type"], "integer");
    assert!(divide["inputSchema"].get("title").is_none(), "{divide}");
    assert_eq!(tools["tools"][1], json!({"name": "echo", "inputSchema": {"type": "object"}}));
    let prompts = client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(
        prompts["prompts"][0]["arguments"],
        json!([{"name": "name", "required": true}, {"name": "years"}])
    );
}

// S-60: what a model can mend is a result; what it cannot is logged, and says nothing.
#[tokio::test]
async fn results_and_failures_of_tools() {
    let mut client = Client::modern(&served()).unwrap();
    let result = called(&mut client, "divide", json!({"a": 6, "b": 3})).await;
    assert_eq!(result["structuredContent"], json!({"value": 2}));
    assert_eq!(result["content"][0]["text"], r#"{"value":2}"#);
    for (arguments, sentence) in [
        (json!({"a": 1, "b": 0}), "b must not be 0"),
        (json!({"a": 13}), "The tool divide failed"),
        (json!({}), "Invalid arguments for divide: arguments: missing field `a`"),
        (
            json!({"a": "x"}),
            "Invalid arguments for divide: arguments: invalid type: string \"x\", expected i32",
        ),
    ] {
        let result = called(&mut client, "divide", arguments).await;
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!(sentence)));
    }
    let echoed = called(&mut client, "echo", json!({"x": 1})).await;
    assert_eq!(echoed["content"][0]["text"], r#"{"x":1}"#);
}

// S-60
#[tokio::test]
async fn arguments_of_prompts_are_texts_of_their_types() {
    let mut client = Client::modern(&served()).unwrap();
    let got = |years: &str| json!({"name": "greet", "arguments": {"name": "Ada", "years": years}});
    let prompt = client.request("prompts/get", got("36")).await.unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "Ada is 36");
    let refused = client.request("prompts/get", got("x")).await.unwrap_err();
    assert_eq!(refused.data["parameter"], "years");
    let reference =
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}});
    let completed = client.request("completion/complete", reference).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["Ada"]));
}

// S-60
#[tokio::test]
async fn tools_come_and_go() {
    let server = served();
    let twice = ServerChanges::new().tool_with("echo", |_| async { "again" });
    assert_eq!(server.apply(twice), Err(RegistrationError::DuplicateTool { name: "echo".into() }));
    server.apply(ServerChanges::new().remove_tool("echo").remove_prompt("greet")).unwrap();
    let mut client = Client::modern(&server).unwrap();
    let tools = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(1));
    assert!(client.request("prompts/list", json!({})).await.is_err());
}

// S-60, S-63: what an author gets wrong is refused when the server is built, with the value and what is expected.
#[test]
fn mistakes_are_named() {
    let said = |builder: Builder| builder.build().err().map(|error| error.to_string()).unwrap_or_default();
    let empty = || ResourceServer::builder("tools", "1");
    let tool = |tool: Tool| said(empty().tool_with(tool, |_| async { "" }));
    let header = r#"{"type":"object","properties":{"day":{"type":"string","x-mcp-header":"Day"}}}"#;
    for (error, expected) in [
        (
            tool(Tool::new("no spaces")),
            r#""no spaces": name is "no spaces", expected 1 to 128 ASCII letters, digits, underscores, hyphens and dots"#,
        ),
        (
            tool(Tool::new("x").input_schema(r#"{"type":"array"}"#)),
            r#""x": inputSchema is "{\"type\":\"array\"}", expected a JSON schema with "type": "object""#,
        ),
        (
            tool(Tool::new("x").input_schema(header)),
            r#""x": inputSchema.properties.day.x-mcp-header is "\"Day\"", expected a schema without x-mcp-header, which this library does not check"#,
        ),
        (
            said(served_builder().tool_with("echo", |_| async { "" })),
            r#"a tool with the name "echo" is registered already"#,
        ),
        (
            said(served_builder().template(Template::new("note://{day}").tool("echo"), |_| async { "" })),
            r#"a tool with the name "echo" is registered already"#,
        ),
        (
            tool(Tool::new("x").ui("ui://shop/order")),
            r#""x": ui is "ui://shop/order", expected the URI of a registered page: register the page first, or together with the tool"#,
        ),
        (
            said(empty().ui(UiPage::new("page://order", ""))),
            r#""page://order": uri is "page://order", expected a URI that begins with ui://"#,
        ),
    ] {
        assert_eq!(error, expected);
    }
    // The order in one build does not matter.
    let both = empty().tool_with(Tool::new("x").ui("ui://a"), |_| async { "" }).ui(UiPage::new("ui://a", ""));
    assert_eq!(said(both), "");
}

fn served_builder() -> Builder {
    ResourceServer::builder("tools", "1").tool_with("echo", |_| async { "" })
}

// S-60: a link leads to what is registered, with its details, or is an error of the tool.
#[tokio::test]
async fn links_are_checked() {
    let order = Template::new("shop://orders/{number}")
        .description("An order.")
        .mime_type("text/plain")
        .parameter(Parameter::new("number").kind(ParameterKind::Integer));
    let server = quiet()
        .template(order, |_| async { "an order" })
        .resource(Resource::new("shop://news").title("News"), |_| async { "news" })
        .tool_with("find", |call: NamedCall| async move {
            let link = call.context.server().link("shop://orders/{number}", &[("number", "7")]);
            link.map(|link| ToolResult::new([ContentBlock::link(link)])).map_err(HandlerError::from)
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let found = called(&mut client, "find", json!({})).await;
    let expected = json!({"type": "resource_link", "uri": "shop://orders/7", "name": "7", "description": "An order.",
        "mimeType": "text/plain"});
    assert_eq!(found["content"][0], expected);
    assert_eq!(server.link("shop://news", &[]).unwrap().details.title.as_deref(), Some("News"));
    for (registered, values, sentence) in [
        (
            "shop://orders/{number}",
            &[("id", "7")][..],
            "shop://orders/{number} has no variable id; it has number",
        ),
        ("shop://orders/{number}", &[("number", "x")], "the variable number is \"x\", expected an integer"),
        ("shop://orders/{number}", &[], "does not accept shop://orders/"),
        ("shop://news", &[("day", "1")], "shop://news has no variables, so it takes no value for day"),
        ("shop://old", &[], "shop://old is not registered now, so a link to shop://old would lead nowhere"),
    ] {
        let error = server.link(registered, values).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
}
