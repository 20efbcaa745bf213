//! The fixture of the benchmark on `mcp-resources` in Rust.

use mcp_resources::provider::{Feed, Mount, Provider, Read, ReadRef, Responder, Route};
use mcp_resources::{
    Builder, Contents, Limits, Policy, ReadError, ReadRequest, ReadResult, RegistrationError, Resource,
    ResourceServer, Template, Tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};

const TEXT: &str = include_str!("static.txt");
const LARGE: usize = 1 << 20;

static LARGE_TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = "resource contents 1\n".repeat(LARGE / 20 + 1);
    text.truncate(LARGE);
    text
});
static LARGE_BLOB: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..LARGE).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect());

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut limits = Limits::default();
    limits.page = 1_000;
    limits.templates = 100_000;
    limits.sessions = 20_000;
    limits.sessions_per_client = 20_000;
    limits.connections_per_client = 20_000;
    let mut builder = ResourceServer::builder("bench", "1.0.0")
        .limits(limits)
        .resource(plain("bench://static"), |_| async { TEXT })
        .text(plain("bench://const"), TEXT)
        .template(Template::new("bench://item/{id}").mime_type("text/plain"), item)
        .template(Template::new("bench://aitem/{id}").mime_type("text/plain"), item)
        .resource(plain("bench://text1m"), |_| async { LARGE_TEXT.as_str() })
        .resource(Resource::new("bench://blob1m").mime_type("application/octet-stream"), |_| async {
            LARGE_BLOB.as_slice()
        })
        .template("bench://sub/{n}", |request| async move { request.uri })
        .template("bench://touch/{n}", touch)
        .mount(Items);
    for number in 0..number("STATIC", 1_000)? {
        builder = builder.resource(plain(&format!("bench://r/{number}")), move |_| async move {
            format!("resource {number}")
        });
    }
    for number in 0..number("TEMPLATES", 0)? {
        builder = template(builder, number);
    }
    if let Ok(tools) = std::env::var("TOOLS") {
        let names = (0..tools.parse::<u32>()?).map(|number| format!("t{number}"));
        for name in names.chain(["echo".into()]) {
            let tool = Tool::new(name).description("Returns a text.");
            builder = builder.tool(tool, |echo: Echo, _| async move { echo.text });
        }
    }
    let rules = number("RULES", 0)?;
    if rules > 0 {
        builder = builder.guard(policy(rules));
    }
    let server = builder.build()?;
    match std::env::args().nth(2) {
        Some(port) => Ok(server.run_http((Ipv4Addr::LOCALHOST, port.parse()?)).await?),
        None => Ok(server.run_stdio().await?),
    }
}

/// The arguments of the tools.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

/// The items of a provider: at once, or on a worker.
struct Items;

const AT_ONCE: Route = Route(0);
const ON_A_WORKER: Route = Route(1);

impl Provider for Items {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        let template = |uri_template: &str| Template::new(uri_template).mime_type("text/plain");
        Ok(Mount::new("items")
            .template(AT_ONCE, template("bench://pitem/{id}"))
            .template(ON_A_WORKER, template("bench://witem/{id}")))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        (request.route() == AT_ONCE).then(|| Ok(named(request.param("id"))))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Ok(named(request.param("id"))));
    }
}

fn named(id: Option<&str>) -> ReadResult<'static> {
    Contents::text(format!("item {}", id.unwrap_or_default())).into()
}

/// So many globs, half of them allowed and half denied; one of them allows what is read.
fn policy(rules: u32) -> Policy {
    let half = rules / 2;
    let rooms = (1..half).map(|number| format!("bench://room{number}/**"));
    let mut policy = Policy::default();
    policy.allow = Some(rooms.chain(["bench://*/**".to_owned()]).collect());
    policy.deny = (half..rules).map(|number| format!("bench://vault{number}/*.key")).collect();
    policy
}

fn plain(uri: &str) -> Resource {
    Resource::new(uri).mime_type("text/plain")
}

async fn item(request: ReadRequest) -> String {
    format!("item {}", request.param("id").unwrap_or_default())
}

async fn touch(request: ReadRequest) -> Result<&'static str, ReadError> {
    let uri = format!("bench://sub/{}", request.param("n").unwrap_or_default());
    request.context.server().notify_updated(&uri).map_err(|_| ReadError::InvalidUri)?;
    Ok("ok")
}

fn template(builder: Builder, number: u32) -> Builder {
    let text = format!("bench://t{number}/{{a}}/{{b}}");
    builder.template(Template::new(text).mime_type("text/plain"), |request: ReadRequest| async move {
        let text = |name| request.param(name).unwrap_or_default();
        format!("{} {}", text("a"), text("b"))
    })
}

/// A number from the environment.
fn number(name: &str, default: u32) -> Result<u32, Box<dyn Error>> {
    match std::env::var(name) {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(default),
    }
}
