//! Collects the answers of a server as plain data. Every loop has a limit, because a list may never end.

use super::absent::{self, Probe};
use crate::error::Failed;
use crate::output;
use mcp_resources_client::Client;
use mcp_resources_engine::client::{ClientError, Failure};
use mcp_resources_engine::connection::PlainContents;
use mcp_resources_engine::version::Revision;
use mcp_resources_template::{UriTemplate, Value as TemplateValue, Values};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// The most entries of one list that are checked.
const MOST: usize = 20_000;
/// The entries of a list that are counted before it is considered endless.
const ENDLESS: usize = 250_000;
/// The most pages of one list.
const PAGES: usize = 5_000;
/// The error code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// Maximum number of combinations of completed values of a template that are read.
const CHOICES: usize = 3;

/// All data that is checked.
#[derive(Default)]
pub(super) struct SeenResource {
    /// Whether the revision is 2026-07-28 or later.
    pub is_modern: bool,
    pub resources: GatheredList,
    pub templates: GatheredList,
    pub reads: Vec<Reading>,
    /// Whether the server declares resources, or lists some.
    pub has_resources: bool,
    /// The answers to reads of URIs that cannot exist: of [`ABSENT`] first, then of those of [`absent::probes`].
    pub absent: Vec<(Probe, AbsentUri)>,
    /// Templates none of whose completed values can be read: the template, how many were tried, and the first error.
    pub unreadable: Vec<(String, usize, String)>,
    /// Failed completions: template, variable and error.
    pub completions: Vec<(String, String, String)>,
}

/// One list as it was received.
#[derive(Default)]
pub(super) struct GatheredList {
    /// The entries that are checked.
    pub items: Vec<Value>,
    /// The number of all entries.
    pub count: usize,
    pub end: ListEnd,
}

/// The end of a list.
#[derive(Default, PartialEq, Eq)]
pub(super) enum ListEnd {
    #[default]
    Whole,
    /// The limit was reached.
    Endless,
    /// This cursor was sent twice.
    Repeats(String),
    /// The cursor is not a text.
    OddCursor,
    /// The list is not an array.
    NoList,
}

/// A resource that was listed and read.
pub(super) struct Reading {
    pub uri: String,
    pub outcome: Result<Vec<ListPart>, String>,
}

/// One entry of contents.
pub(super) struct ListPart {
    pub uri: Option<String>,
    pub mime_type: Option<String>,
    pub size: u64,
}

/// The answer to a read of a URI that cannot exist.
pub(super) enum AbsentUri {
    Contents,
    Refused { code: i64, uri: Option<String> },
}

/// Fetches all lists, and reads up to `limit` resources.
///
/// # Errors
/// If the server cannot be reached, or its resources cannot be listed.
pub(super) async fn all(client: &Client, limit: usize) -> Result<SeenResource, Failed> {
    let about = client.about().await?;
    let mut progress = LintProgress::new();
    let mut seen =
        SeenResource { is_modern: about.revision >= Revision::V2026_07_28, ..SeenResource::default() };
    seen.resources = list(client, "resources/list", "resources", &mut progress).await?;
    seen.templates = list(client, "resources/templates/list", "resourceTemplates", &mut progress).await?;
    seen.has_resources = about.declares("resources") || seen.resources.count + seen.templates.count > 0;
    if !seen.has_resources {
        return Ok(seen);
    }
    seen.reads = reads(client, &seen.resources.items, limit, &mut progress).await;
    let probes = absent::probes(&texts(&seen.resources, "uri"), &texts(&seen.templates, "uriTemplate"));
    seen.absent = ask_absent(client, probes).await?;
    if about.has_completions {
        seen.completions = completions(client, &seen.templates.items, limit, &mut progress).await;
        seen.unreadable = unreadable(client, &seen, limit, &mut progress).await;
    }
    Ok(seen)
}

async fn list(
    client: &Client,
    method: &str,
    key: &str,
    progress: &mut LintProgress,
) -> Result<GatheredList, Failed> {
    let mut listed = GatheredList::default();
    let mut cursors = HashSet::new();
    let mut params = json!({});
    for _ in 0..PAGES {
        let page = match client.request(method, &params.to_string()).await {
            // A server may have resources and no templates, or templates alone, or neither.
            Err(ClientError::Failed(Failure::Server { code: METHOD_NOT_FOUND, .. })) => return Ok(listed),
            Err(ClientError::AccessDenied { .. }) => {
                return Err(Failed::new(
                    "the configuration restricts the resources; lint needs the whole server: give its command or URL",
                ));
            }
            page => serde_json::from_str::<Value>(&page?).unwrap_or_default(),
        };
        let Some(items) = page.get(key).and_then(Value::as_array) else {
            listed.end = ListEnd::NoList;
            return Ok(listed);
        };
        listed.items.extend(items.iter().take(MOST - listed.items.len()).cloned());
        listed.count += items.len();
        progress.say(&format!("listing, {} entries", listed.count));
        let cursor = match page.get("nextCursor") {
            None | Some(Value::Null) => return Ok(listed),
            Some(Value::String(cursor)) => cursor.clone(),
            Some(_) => {
                listed.end = ListEnd::OddCursor;
                return Ok(listed);
            }
        };
        if listed.count >= ENDLESS {
            break;
        }
        params = json!({ "cursor": cursor });
        if !cursors.insert(cursor.clone()) {
            listed.end = ListEnd::Repeats(cursor);
            return Ok(listed);
        }
    }
    listed.end = ListEnd::Endless;
    Ok(listed)
}

async fn reads(client: &Client, items: &[Value], limit: usize, progress: &mut LintProgress) -> Vec<Reading> {
    let mut seen = HashSet::new();
    let uris = items.iter().filter_map(|item| item.get("uri")?.as_str()).filter(|uri| seen.insert(*uri));
    let uris: Vec<&str> = uris.take(limit).collect();
    let mut reads = Vec::new();
    for uri in &uris {
        progress.say(&format!("reading {} of {}", reads.len() + 1, uris.len()));
        let contents = client.read(uri).await.map_err(|error| match error {
            ClientError::Failed(failure) => failure.to_string(),
            error => error.to_string(),
        });
        let outcome = contents.map(|contents| {
            let part = |one: mcp_resources_engine::connection::Contents<'_>| ListPart {
                uri: one.uri.map(|uri| uri.into_owned()),
                mime_type: one.mime_type.map(|mime| mime.into_owned()),
                size: match one.body.into_plain() {
                    Some(PlainContents::Text(text)) => text.len() as u64,
                    Some(PlainContents::Blob(bytes)) => bytes.len() as u64,
                    None => 0,
                },
            };
            contents.into_iter().map(part).collect()
        });
        reads.push(Reading { uri: (*uri).to_owned(), outcome });
    }
    reads
}

/// The texts that identify the entries of a list.
fn texts<'l>(listed: &'l GatheredList, key: &str) -> Vec<&'l str> {
    listed.items.iter().filter_map(|item| item.get(key)?.as_str()).collect()
}

/// Uses the method itself, so that the error code is known.
async fn ask_absent(client: &Client, probes: Vec<Probe>) -> Result<Vec<(Probe, AbsentUri)>, Failed> {
    let mut answers = Vec::new();
    for probe in probes {
        let answer = match client.request("resources/read", &json!({ "uri": probe.uri }).to_string()).await {
            Ok(_) => AbsentUri::Contents,
            Err(ClientError::Failed(Failure::Server { code, data, .. })) => {
                let data: Value = data.and_then(|data| serde_json::from_str(&data).ok()).unwrap_or_default();
                let uri = data.get("uri").and_then(Value::as_str).map(str::to_owned);
                AbsentUri::Refused { code, uri }
            }
            Err(error) => return Err(error.into()),
        };
        answers.push((probe, answer));
    }
    Ok(answers)
}

/// Reads the URIs that templates give with completed values, and returns the templates without a readable one.
async fn unreadable(
    client: &Client,
    seen: &SeenResource,
    limit: usize,
    progress: &mut LintProgress,
) -> Vec<(String, usize, String)> {
    let mut unreadable = Vec::new();
    let templates = texts(&seen.templates, "uriTemplate").into_iter();
    let templates = templates.filter_map(|text| UriTemplate::parse(text).ok());
    for (number, template) in (1..).zip(templates.take(limit)) {
        progress.say(&format!("reading values of {number} templates"));
        let mut tried = HashSet::new();
        let mut first = None;
        for choice in 0..CHOICES {
            let Some(uri) =
                completed(client, &template, choice).await.filter(|uri| tried.insert(uri.clone()))
            else {
                continue;
            };
            match client.read(&uri).await {
                Err(ClientError::Failed(failure)) => drop(first.get_or_insert(failure.to_string())),
                Err(error) => drop(first.get_or_insert(error.to_string())),
                Ok(_) => {
                    tried.clear();
                    break;
                }
            }
        }
        if let Some(error) = first.filter(|_| !tried.is_empty()) {
            unreadable.push((template.as_str().to_owned(), tried.len(), error));
        }
    }
    unreadable
}

/// The expansion of a template by the `choice`th completed value of each variable; `None` if one has no values.
async fn completed(client: &Client, template: &UriTemplate, choice: usize) -> Option<String> {
    let mut chosen: Vec<(String, String)> = Vec::new();
    for variable in template.variables() {
        let context: Vec<(&str, &str)> =
            chosen.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let found = client.complete(template.as_str(), &variable.name, "", &context).await.ok()?;
        let value = found.values.get(choice % found.values.len().max(1))?;
        chosen.push((variable.name.to_string(), value.to_string()));
    }
    let values: Values<'_> =
        chosen.into_iter().map(|(name, value)| (name, TemplateValue::from(value))).collect();
    template.expand(&values).ok().filter(|_| !template.variables().is_empty())
}

async fn completions(
    client: &Client,
    items: &[Value],
    limit: usize,
    progress: &mut LintProgress,
) -> Vec<(String, String, String)> {
    let templates = items.iter().filter_map(|item| item.get("uriTemplate")?.as_str());
    let templates = templates.filter_map(|text| UriTemplate::parse(text).ok());
    let variables = templates.flat_map(|template| {
        let text = template.as_str().to_owned();
        let names: Vec<_> = template.variables().iter().map(|variable| variable.name.clone()).collect();
        names.into_iter().map(move |name| (text.clone(), name))
    });
    let mut failed = Vec::new();
    for (number, (template, variable)) in (1..).zip(variables.take(limit)) {
        progress.say(&format!("completing {number} variables"));
        if let Err(error) = client.complete(&template, &variable, "", &[]).await {
            failed.push((template, variable.to_string(), error.to_string()));
        }
    }
    failed
}

/// A progress line on stderr, shown on a terminal after one second.
struct LintProgress {
    next: Option<Instant>,
    is_shown: bool,
}

impl LintProgress {
    const PAUSE: Duration = Duration::from_millis(200);

    fn new() -> Self {
        let next = (io::stderr().is_terminal()).then(|| Instant::now() + Duration::from_secs(1));
        Self { next, is_shown: false }
    }

    fn say(&mut self, what: &str) {
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            self.next = Some(now + Self::PAUSE);
            self.is_shown = true;
            output::hint(&format!("\r\x1b[K{}", output::plain(what)));
        }
    }
}

impl Drop for LintProgress {
    fn drop(&mut self) {
        if self.is_shown {
            output::hint("\r\x1b[K");
        }
    }
}
