//! The wire as a client sees it: words requests and takes answers apart.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::error::Error;
use std::io::Write;

/// The handshake of a legacy session.
pub(crate) const INITIALIZE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":\
{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";

/// The revision of a legacy session.
pub(crate) const LEGACY: &str = "2025-06-18";

/// The revision of requests that are complete in themselves.
pub(crate) const MODERN: &str = "2026-07-28";

/// The end of the handshake.
pub(crate) const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// `_meta` of a modern request.
const META: &[u8] = b"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"1\"},\
\"io.modelcontextprotocol/clientCapabilities\":{}}";

/// Appends a `subscriptions/listen` for one resource.
pub(crate) fn listen(out: &mut Vec<u8>, id: u64, uri: &str) -> std::io::Result<()> {
    listen_to(out, &id.to_string(), &[uri.to_owned()], false)
}

/// Appends a `subscriptions/listen` for these resources and, if `lists` says so, for the list.
pub(crate) fn listen_to(out: &mut Vec<u8>, id: &str, uris: &[String], lists: bool) -> std::io::Result<()> {
    let uris: Vec<String> = uris.iter().map(|uri| format!("\"{uri}\"")).collect();
    let uris = uris.join(",");
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":{{\
\"notifications\":{{\"resourcesListChanged\":{lists},\"resourceSubscriptions\":[{uris}]}},"
    )?;
    out.extend_from_slice(META);
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Appends a `resources/subscribe`.
pub(crate) fn subscribe(out: &mut Vec<u8>, id: u64, uri: &str) -> std::io::Result<()> {
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/subscribe\",\"params\":{{\"uri\":\"{uri}\"}}}}"
    )
}

/// Appends a `resources/unsubscribe`.
pub(crate) fn unsubscribe(out: &mut Vec<u8>, id: u64, uri: &str) -> std::io::Result<()> {
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/unsubscribe\",\"params\":{{\"uri\":\"{uri}\"}}}}"
    )
}

/// Appends a `resources/read`.
pub(crate) fn read(out: &mut Vec<u8>, id: u64, uri: &str, modern: bool) -> std::io::Result<()> {
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/read\",\"params\":{{\"uri\":\"{uri}\""
    )?;
    if modern {
        out.push(b',');
        out.extend_from_slice(META);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

/// Appends a `tools/call` of a tool with the argument `text`.
pub(crate) fn call(out: &mut Vec<u8>, id: u64, tool: &str, text: &str, modern: bool) -> std::io::Result<()> {
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\
\"arguments\":{{\"text\":\"{text}\"}}"
    )?;
    if modern {
        out.push(b',');
        out.extend_from_slice(META);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

/// Appends a `completion/complete` of a variable of a template, with the other variables as JSON.
pub(crate) fn complete(out: &mut Vec<u8>, id: u64, of: &Completed, modern: bool) -> std::io::Result<()> {
    let Completed { template, variable, typed, others } = of;
    write!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"completion/complete\",\"params\":{{\
\"ref\":{{\"type\":\"ref/resource\",\"uri\":\"{template}\"}},\
\"argument\":{{\"name\":\"{variable}\",\"value\":\"{typed}\"}},\"context\":{{\"arguments\":{others}}}"
    )?;
    if modern {
        out.push(b',');
        out.extend_from_slice(META);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

/// What is completed.
pub(crate) struct Completed {
    pub(crate) template: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) typed: &'static str,
    /// The other variables, as a JSON object.
    pub(crate) others: &'static str,
}

/// A list of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMethod {
    Resources,
    Tools,
}

/// Appends a request for a list, from a cursor on.
pub(crate) fn list(
    out: &mut Vec<u8>,
    id: u64,
    method: ListMethod,
    cursor: Option<&str>,
    modern: bool,
) -> std::io::Result<()> {
    let method = match method {
        ListMethod::Resources => "resources/list",
        ListMethod::Tools => "tools/list",
    };
    write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{")?;
    if let Some(cursor) = cursor {
        out.extend_from_slice(b"\"cursor\":");
        serde_json::to_writer(&mut *out, cursor)?;
        out.extend_from_slice(if modern { b"," } else { b"" });
    }
    if modern {
        out.extend_from_slice(META);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

/// A message of the server's.
#[derive(Deserialize)]
pub(crate) struct Answer<'a> {
    /// Absent in a notification.
    pub(crate) id: Option<u64>,
    #[serde(borrow)]
    result: Option<ReadResult<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReadResult<'a> {
    #[serde(borrow, default)]
    contents: Vec<Contents<'a>>,
    #[serde(borrow, default)]
    resources: Vec<Listed<'a>>,
    #[serde(borrow, default)]
    tools: Vec<ListedTool<'a>>,
    #[serde(borrow, default)]
    content: Vec<Contents<'a>>,
    #[serde(borrow, default, rename = "nextCursor")]
    next_cursor: Option<Cow<'a, str>>,
    #[serde(borrow)]
    completion: Option<Completion<'a>>,
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    values: Vec<Cow<'a, str>>,
}

/// A page of a list.
pub(crate) struct Page<'p, 'a> {
    pub(crate) resources: &'p [Listed<'a>],
    pub(crate) tools: &'p [ListedTool<'a>],
    /// The cursor of the next page.
    pub(crate) next: Option<&'p str>,
}

/// One entry of a list.
#[derive(Deserialize)]
pub(crate) struct Listed<'a> {
    #[serde(borrow)]
    pub(crate) uri: Cow<'a, str>,
}

/// One tool of a list.
#[derive(Deserialize)]
pub(crate) struct ListedTool<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// One entry of the contents.
#[derive(Deserialize)]
pub(crate) struct Contents<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    blob: Option<Cow<'a, str>>,
}

impl<'a> Answer<'a> {
    /// Takes one line apart.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Box<dyn Error>> {
        serde_json::from_slice(line).map_err(|error| format!("{error} in {}", shown(line)).into())
    }

    /// Whether it answers nothing: a server of a folder may notify that its list has changed.
    pub(crate) fn is_notification(&self) -> bool {
        self.id.is_none() && self.result.is_none() && self.error.is_none()
    }

    /// A page of a list, and the cursor of the next; an error of the server's is an error.
    pub(crate) fn page(&self) -> Result<Page<'_, 'a>, Box<dyn Error>> {
        if let Some(error) = self.error {
            return Err(format!("the server answered {error}").into());
        }
        let result = self.result.as_ref().ok_or("an answer without a result")?;
        let next = result.next_cursor.as_deref();
        Ok(Page { resources: &result.resources, tools: &result.tools, next })
    }

    /// The values of a completion; an error of the server's is an error.
    pub(crate) fn completed(&self) -> Result<&[Cow<'a, str>], Box<dyn Error>> {
        if let Some(error) = self.error {
            return Err(format!("the server answered {error}").into());
        }
        let completion = self.result.as_ref().and_then(|result| result.completion.as_ref());
        Ok(&completion.ok_or("an answer without a completion")?.values)
    }

    /// The text that a tool has returned; an error of the server's is an error.
    pub(crate) fn called(&self) -> Result<&str, Box<dyn Error>> {
        if let Some(error) = self.error {
            return Err(format!("the server answered {error}").into());
        }
        match self.result.as_ref().map(|result| result.content.as_slice()) {
            Some([content]) => content.text().ok_or_else(|| "the content is no text".into()),
            _ => Err("the answer has not exactly one block of content".into()),
        }
    }

    /// The one entry of the contents; an error of the server's is an error.
    pub(crate) fn contents(&self) -> Result<&Contents<'a>, Box<dyn Error>> {
        if let Some(error) = self.error {
            return Err(format!("the server answered {error}").into());
        }
        match self.result.as_ref().map(|result| result.contents.as_slice()) {
            Some([contents]) => Ok(contents),
            _ => Err("the answer has not exactly one entry of contents".into()),
        }
    }
}

impl Contents<'_> {
    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The bytes in base64, if it is a blob.
    pub(crate) fn blob(&self) -> Option<&str> {
        self.blob.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn of_text(text: &'static str) -> Self {
        Self { text: Some(text.into()), blob: None }
    }
}

/// The start of a line, for an error message.
pub(crate) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}
