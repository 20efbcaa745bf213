//! The official Rust SDK as a client of one fixture server, in both eras: `rmcp-client URL`, or `rmcp-client PROGRAM
//! ARGUMENT…` for stdio. It lists, reads, completes, subscribes and hears an update. With `--skills` it lists, gets and
//! reads skills instead. Exit code 0 if all is as it should be.

use rmcp::model::{
    ClientConfig, GetSkillRequestParams, ProtocolVersion, ReadResourceDirectoryRequestParams,
    ReadResourceRequestParams, ResourceContents, ResourceUpdatedNotificationParam, ServerNotification,
    SkillResources, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use std::error::Error;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Client = RunningService<RoleClient, Hearing>;

const PATIENCE: Duration = Duration::from_secs(20);
const WATCHED: &str = "test://watched-resource";
const TRIGGER: &str = "test://trigger/updated";
const FILES: &str = "test://users/{user}/files/{file}";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut target: Vec<String> = std::env::args().skip(1).collect();
    let has_skills = target.first().is_some_and(|first| first == "--skills");
    target.drain(..usize::from(has_skills));
    if target.is_empty() {
        eprintln!("usage: rmcp-client [--skills] URL | PROGRAM ARGUMENT…");
        return ExitCode::from(2);
    }
    let mut failed = 0;
    for (era, mode, is_modern) in eras() {
        let ended = match has_skills {
            // The extension needs a modern server; a client of the legacy era sees resources.
            true if !is_modern => continue,
            true => timeout(PATIENCE, skills(&target, mode)).await,
            false => timeout(PATIENCE, talk(&target, mode, is_modern)).await,
        };
        match ended {
            Ok(Ok(())) => println!("{era}: ok"),
            Ok(Err(error)) => {
                println!("{era}: {error}");
                failed += 1;
            }
            Err(_) => {
                println!("{era}: nothing came for {PATIENCE:?}");
                failed += 1;
            }
        }
    }
    ExitCode::from(failed)
}

fn eras() -> [(&'static str, ClientLifecycleMode, bool); 3] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let legacy_version = Some(ProtocolVersion::V_2025_11_25);
    [
        ("legacy", ClientLifecycleMode::Initialize, false),
        ("modern", ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() }, true),
        ("whichever the server has", ClientLifecycleMode::Auto { preferred_versions, legacy_version }, true),
    ]
}

async fn talk(target: &[String], mode: ClientLifecycleMode, is_modern: bool) -> Outcome {
    let (told, hears) = unbounded_channel();
    let client = connect(target, Hearing(told), mode).await?;
    let before = lists_and_reads(&client).await?;
    completes(&client).await?;
    is_told_what_is_wrong(&client, is_modern).await?;
    if is_modern {
        listens(&client).await?
    } else {
        subscribes(&client, hears).await?
    }
    let after = text(&client, WATCHED).await?;
    check(before != after, "the watched resource has not changed")?;
    client.cancel().await?;
    Ok(())
}

/// The skills extension, of a server of `examples/data/skills`: entries, files of the sizes that these say, directories.
async fn skills(target: &[String], mode: ClientLifecycleMode) -> Outcome {
    let (told, _hears) = unbounded_channel();
    let client = connect(target, Hearing(told), mode).await?;
    let skills = client.list_all_skills().await?;
    let names: Vec<&str> = skills.iter().map(|skill| skill.frontmatter.name.as_str()).collect();
    check(names == ["refunds", "git-workflow"], &format!("two skills, not {names:?}"))?;
    for skill in &skills {
        let got = client.get_skill(GetSkillRequestParams::new(skill.uri.clone())).await?;
        check(got.skill == *skill, "the same entry again")?;
        let SkillResources::Files(files) = &skill.resources else { return Err("a dynamic skill".into()) };
        for file in files {
            let size = text(&client, &file.uri).await?.len() as u64;
            check(
                size == file.size && file.digest.len() == 71,
                &format!("{} bytes of {}", file.size, file.uri),
            )?;
        }
    }
    let directory = "skill://acme/billing/refunds/templates";
    let params = ReadResourceDirectoryRequestParams::new(directory);
    let children = client.read_resource_directory(params).await?.resources;
    let types: Vec<_> = children.iter().map(|child| child.mime_type.as_deref().unwrap_or_default()).collect();
    check(types == ["text/markdown", "inode/directory"], &format!("a file and a directory, not {types:?}"))?;
    let none = client.get_skill(GetSkillRequestParams::new("skill://none/SKILL.md")).await;
    check(none.is_err_and(|error| format!("{error:?}").contains("-32602")), "-32602 for what is no skill")?;
    client.cancel().await?;
    Ok(())
}

async fn connect(target: &[String], hearing: Hearing, mode: ClientLifecycleMode) -> Outcome<Client> {
    if target[0].starts_with("http") {
        let transport = StreamableHttpClientTransport::from_uri(target[0].as_str());
        return Ok(hearing.serve_with_lifecycle(transport, mode).await?);
    }
    let mut command = tokio::process::Command::new(&target[0]);
    command.args(&target[1..]).stderr(Stdio::inherit());
    Ok(hearing.serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?)
}

/// The text of the watched resource.
async fn lists_and_reads(client: &Client) -> Outcome<String> {
    let resources = client.list_all_resources().await?;
    let pages = resources.iter().filter(|resource| resource.uri.starts_with("test://page/")).count();
    check(pages == 60, "sixty numbered resources are listed")?;
    let annotated = resources.iter().find(|resource| resource.uri == "test://annotated");
    check(annotated.is_some_and(|one| one.title.as_deref() == Some("Annotated Resource")), "a title")?;
    let templates = client.list_all_resource_templates().await?;
    check(templates.len() == 35, "thirty-five templates are listed")?;
    check(text(client, "test://empty-text").await?.is_empty(), "an empty text")?;
    check(text(client, "test://unicode").await?.contains("世界! 🦀"), "text beyond ASCII")?;
    check(text(client, "test://users/alice/files/a1.txt").await? == "alice:a1.txt", "a template")?;
    let multi = client.read_resource(ReadResourceRequestParams::new("test://multi")).await?;
    check(multi.contents.len() == 2, "two contents")?;
    text(client, WATCHED).await
}

async fn completes(client: &Client) -> Outcome {
    let users = client.complete_resource_simple(FILES, "user", "b").await?;
    check(users == ["bob"], "a completion")
}

async fn is_told_what_is_wrong(client: &Client, is_modern: bool) -> Outcome {
    let Err(error) = client.read_resource(ReadResourceRequestParams::new("test://nothing")).await else {
        return Err("what is not there was read".into());
    };
    let code = if is_modern { "-32602" } else { "-32002" };
    check(format!("{error:?}").contains(code), &format!("{code} for what is not there, not {error:?}"))
}

#[expect(deprecated, reason = "what a legacy session has")]
async fn subscribes(client: &Client, mut hears: UnboundedReceiver<String>) -> Outcome {
    client.subscribe(SubscribeRequestParams::new(WATCHED)).await?;
    text(client, TRIGGER).await?;
    check(hears.recv().await.as_deref() == Some(WATCHED), "an update in the session")?;
    client.unsubscribe(UnsubscribeRequestParams::new(WATCHED)).await?;
    Ok(())
}

async fn listens(client: &Client) -> Outcome {
    let filter =
        SubscriptionFilter::builder().resources_list_changed().resource_subscriptions([WATCHED]).build();
    let mut subscription = client.listen(filter).await?;
    text(client, TRIGGER).await?;
    let told = subscription.next().await?;
    let is_update = |told: &ServerNotification| matches!(told, ServerNotification::ResourceUpdatedNotification(one) if one.params.uri == WATCHED);
    check(told.as_ref().is_some_and(is_update), &format!("an update on the listen, not {told:?}"))?;
    text(client, "test://trigger/list-changed").await?;
    let told = subscription.next().await?;
    let is_change = matches!(told, Some(ServerNotification::ResourceListChangedNotification(_)));
    check(is_change, &format!("a change of the list on the listen, not {told:?}"))?;
    subscription.cancel().await?;
    Ok(())
}

async fn text(client: &Client, uri: &str) -> Outcome<String> {
    let read = client.read_resource(ReadResourceRequestParams::new(uri)).await?;
    match read.contents.into_iter().next() {
        Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text),
        other => Err(format!("{uri}: {other:?} is no text").into()),
    }
}

fn check(is_so: bool, what: &str) -> Outcome {
    if is_so { Ok(()) } else { Err(format!("expected {what}").into()) }
}

/// Hears of updates.
struct Hearing(UnboundedSender<String>);

impl ClientHandler for Hearing {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_resource_updated(
        &self,
        told: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(told.uri);
    }
}
