//! The templates, their completions, and the triggers.

use crate::described;
use mcp_resources::{
    Builder, CompletionRequest, Contents, HandlerError, ReadError, ReadRequest, ResourceServer,
    ServerChanges, Template,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const FILES: [(&str, &[&str]); 2] = [("alice", &["a1.txt", "a2.txt"]), ("bob", &["b1.txt"])];

/// What the triggers change.
struct Outside {
    watched: Arc<AtomicU64>,
    /// Whether `test://dynamic` is there.
    dynamic: Mutex<bool>,
}

pub(crate) fn add(server: Builder, watched: &Arc<AtomicU64>) -> Builder {
    let outside = Arc::new(Outside { watched: watched.clone(), dynamic: Mutex::new(false) });
    let mut server = server
        .template(
            template("template/{id}/data", "template_data", "Data by id").mime_type("application/json"),
            data,
        )
        .complete("id", |request| async move { starting(&request, &words()) })
        .template(template("users/{user}/files/{file}", "user_file", "A user's file"), |request| async move {
            format!("{}:{}", text(&request, "user"), text(&request, "file"))
        })
        .complete("user", |request| async move { starting(&request, &FILES.map(|(user, _)| user)) })
        .complete("file", |request: CompletionRequest| async move {
            let user = request.argument("user");
            let files = FILES.iter().find(|(name, _)| user == Some(name)).map(|(_, files)| *files);
            starting(&request, files.unwrap_or_default())
        })
        .template(template("path/{+path}", "path", "A path of many segments"), |request| async move {
            text(&request, "path")
        })
        .template(template("slow/{ms}", "slow", "Answers after a while"), slow)
        .template(
            template("trigger/{event}", "trigger", "Simulates a change from outside"),
            move |request| {
                let outside = outside.clone();
                async move { outside.trigger(&request.context.server(), &text(&request, "event")) }
            },
        );
    for number in 0..30 {
        let name = format!("tpl-{number:02}");
        let one = template(&format!("{name}/{{x}}"), &name, "One of many templates");
        server = server.template(one, |request| async move { text(&request, "x") });
    }
    server
}

fn template(path: &str, name: &str, description: &str) -> Template {
    let template = Template::new(format!("test://{path}"));
    template.name(name).mime_type("text/plain").description(description)
}

fn text(request: &ReadRequest, name: &str) -> String {
    request.param(name).unwrap_or_default().to_owned()
}

async fn data(request: ReadRequest) -> Result<Contents<'static>, HandlerError> {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        id: String,
        template_test: bool,
        data: String,
    }
    let id = text(&request, "id");
    let data = format!("Data for ID: {id}");
    Ok(Contents::json(&Data { id, template_test: true, data })?)
}

async fn slow(request: ReadRequest) -> Result<String, ReadError> {
    #[derive(serde::Deserialize)]
    struct Slow {
        ms: u64,
    }
    let Slow { ms } = request.params()?;
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(format!("slept {ms}"))
}

fn words() -> Vec<String> {
    let words = ["alpha", "alphabet", "beta", "gamma"].map(String::from);
    words.into_iter().chain((0..150).map(|number| format!("item-{number:03}"))).collect()
}

fn starting(request: &CompletionRequest, values: &[impl AsRef<str>]) -> Vec<String> {
    let starts = values.iter().map(AsRef::as_ref).filter(|value| value.starts_with(&request.value));
    starts.map(String::from).collect()
}

impl Outside {
    fn trigger(&self, server: &ResourceServer, event: &str) -> Result<&'static str, HandlerError> {
        match event {
            "updated" => {
                self.watched.fetch_add(1, Ordering::SeqCst);
                server.notify_updated("test://watched-resource")?;
            }
            "updated-other" => server.notify_updated("test://static-text")?,
            "list-changed" => self.switch_dynamic(server)?,
            "print" => println!("a stray print"),
            _ => return Err(ReadError::NotFound.into()),
        }
        Ok("ok")
    }

    fn switch_dynamic(&self, server: &ResourceServer) -> Result<(), HandlerError> {
        let mut is_there = self.dynamic.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = if *is_there {
            ServerChanges::new().remove_resource("test://dynamic")
        } else {
            let dynamic = described("dynamic", "text/plain", "Here only while it is switched on");
            ServerChanges::new().text(dynamic, "dynamic")
        };
        server.apply(changes)?;
        *is_there = !*is_there;
        Ok(())
    }
}
