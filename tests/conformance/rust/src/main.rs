//! The conformance fixture server in Rust: what it holds is the same in every language.

mod constants;
mod templates;

use mcp_resources::{
    Answer, Audience, Builder, Contents, Handled, HandlerError, Icon, InputAsk, InputRequest, InputRequired,
    IntoAnswer, Limits, Read, ReadRequest, Resource, ResourceServer, Sse24,
};
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME_FORM: &str = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut limits = Limits::default();
    limits.page = 20;
    let watched = Arc::new(AtomicU64::new(1));
    let server = ResourceServer::builder("conformance-rust", "1.0.0").limits(limits);
    let server = constants::add(server)?;
    let server = templates::add(server, &watched);
    let server = add_handlers(server, watched).build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio"] => Ok(server.run_stdio().await?),
        ["--http", port] => Ok(server.run_http((Ipv4Addr::LOCALHOST, port.parse()?)).await?),
        ["--sse", port] => {
            Ok(server.http().sse24(Sse24::default()).run((Ipv4Addr::LOCALHOST, port.parse()?)).await?)
        }
        _ => Err("usage: conformance-server --stdio | --http PORT | --sse PORT".into()),
    }
}

/// A listed resource with what every one of them has.
fn described(path: &str, mime_type: &str, description: &str) -> Resource {
    Resource::new(format!("test://{path}")).name(path).mime_type(mime_type).description(description)
}

fn add_handlers(server: Builder, watched: Arc<AtomicU64>) -> Builder {
    let annotated = described("annotated", "text/markdown", "Everything that a resource can say of itself")
        .title("Annotated Resource")
        .size(11)
        .audience([Audience::User, Audience::Assistant])
        .priority(0.8)
        .last_modified("2025-01-12T15:00:58Z")
        .icon(Icon::new("https://example.com/icon.png").mime_type("image/png").size("48x48"))
        .meta(r#"{"com.example/tag":"v1"}"#);
    server
        .resource(described("watched-resource", "text/plain", "A text that changes"), move |_| {
            let version = watched.load(Ordering::SeqCst);
            async move { format!("Version {version}") }
        })
        .resource(described("multi", "text/plain", "Two contents"), |_| async {
            vec![
                Contents::text("part a").with_uri("test://multi/a").with_mime_type("text/plain"),
                Contents::blob(b"\x00\xff".as_slice())
                    .with_uri("test://multi/b")
                    .with_mime_type("application/octet-stream"),
            ]
        })
        .resource(annotated, |_| async {
            Contents::text("# Annotated").with_meta(r#"{"com.example/content":"c1"}"#)
        })
        .resource(described("error", "text/plain", "Its handler fails"), |_| async {
            Err::<String, _>(HandlerError::new("secret-detail-4711"))
        })
        .resource(described("input-required", "text/plain", "Needs the user's name"), greet)
}

async fn greet(request: ReadRequest) -> Handled {
    #[derive(serde::Deserialize)]
    struct Form {
        name: String,
    }
    match request.input::<Form>("name")? {
        Some(Form { name }) => IntoAnswer::<Read>::into_answer(format!("Hello, {name}")),
        None => {
            let ask = InputAsk::Form { message: "What is your name?".into(), schema: NAME_FORM.into() };
            let requests = vec![InputRequest { key: "name".into(), ask }];
            let state = Some(b"name".as_slice().into());
            Ok(Answer::InputRequired(InputRequired { requests, state }))
        }
    }
}
