//! Converts events of the client's queue into values of JavaScript.

use crate::values::contents::Entry;
use crate::values::spelling::number;
use mcp_resources_client::queue::ClientEvent;
use mcp_resources_engine::client::{Change, ClientError, Failure, Listed, Progress, ServerAbout};
use mcp_resources_engine::connection::{Completion, Contents, PlainContents};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::borrow::Cow;
use std::os::fd::IntoRawFd;

/// The kind of an arrival. JavaScript imports its numbers from here.
#[napi]
#[derive(Default)]
pub enum ArrivalKind {
    /// The call has ended without a value.
    #[default]
    Done,
    /// The call has failed.
    Failed,
    /// The contents of a resource.
    Contents,
    /// JSON text.
    Json,
    /// A page of a list.
    Listed,
    /// A change of a watched resource.
    Change,
    /// The values of a completion.
    Completion,
    /// The description of a server.
    About,
    /// A list has changed.
    ListChanged,
    /// A report of progress.
    Progress,
    /// A question of a server.
    Question,
    /// A question that is no longer asked.
    Withdrawn,
    /// A note of a server, for the log.
    Note,
    /// The output of a server, to be read here: a loan.
    Lent,
    /// A loan that is to be returned.
    Recalled,
}

/// An event of the client's queue, for the event loop.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Arrival {
    /// The call or the question.
    pub id: f64,
    /// Its kind.
    pub kind: ArrivalKind,
    /// A text: contents, JSON text, a sentence, the message of an error.
    pub text: Option<String>,
    /// Contents that are bytes.
    pub bytes: Option<Buffer>,
    /// Contents that are neither one text nor one blob.
    pub entries: Option<Vec<Entry>>,
    /// The name of the server.
    pub server: Option<String>,
    /// A URI.
    pub uri: Option<String>,
    /// The word for an error; the method of a question; the revision that is spoken.
    pub word: Option<String>,
    /// Further texts.
    pub details: Option<Vec<String>>,
    /// Values of a completion.
    pub values: Option<Vec<String>>,
    /// The code of an error; how much there is of something; a descriptor, which the receiver closes.
    pub count: Option<f64>,
    /// The total.
    pub total: Option<f64>,
    /// Whether there is more.
    pub has_more: Option<bool>,
}

impl Arrival {
    /// Converts an event of the call with this number.
    pub(super) fn from_event(call: u64, event: ClientEvent) -> Self {
        let mut arrival = converted(event);
        arrival.id = number(call);
        arrival
    }
}

fn converted(event: ClientEvent) -> Arrival {
    match event {
        ClientEvent::Done => Arrival::default(),
        ClientEvent::Failed(error) => failed(&error),
        ClientEvent::Contents(contents) => {
            of_contents(contents, Arrival { kind: ArrivalKind::Contents, ..Arrival::default() })
        }
        ClientEvent::Entries(contents) => {
            Arrival { kind: ArrivalKind::Contents, entries: Some(entries(contents)), ..Arrival::default() }
        }
        ClientEvent::Json(text) => {
            Arrival { kind: ArrivalKind::Json, text: Some(text), ..Arrival::default() }
        }
        ClientEvent::Listed(items) => listed(&items),
        ClientEvent::Change(change) => changed(change),
        ClientEvent::Completion(completion) => completed(completion),
        ClientEvent::About(about) => described(&about),
        ClientEvent::ListChanged(server) => Arrival {
            kind: ArrivalKind::ListChanged,
            text: Some(server.as_ref().into()),
            ..Arrival::default()
        },
        ClientEvent::Progress(Progress { progress, total, message }) => Arrival {
            kind: ArrivalKind::Progress,
            count: Some(progress),
            total,
            text: message,
            ..Arrival::default()
        },
        ClientEvent::Question(question, capability) => Arrival {
            kind: ArrivalKind::Question,
            details: Some(vec![capability.into()]),
            server: Some(question.server.as_ref().into()),
            word: Some(question.method),
            text: Some(question.params),
            ..Arrival::default()
        },
        ClientEvent::Withdrawn => Arrival { kind: ArrivalKind::Withdrawn, ..Arrival::default() },
        ClientEvent::Note(server, note) => {
            Arrival { kind: ArrivalKind::Note, server: Some(server), text: Some(note), ..Arrival::default() }
        }
        ClientEvent::Lent(output) => Arrival {
            kind: ArrivalKind::Lent,
            count: Some(f64::from(output.into_raw_fd())),
            ..Arrival::default()
        },
        ClientEvent::Recalled => Arrival { kind: ArrivalKind::Recalled, ..Arrival::default() },
    }
}

/// An error, with what its class in `js/errors.ts` needs.
fn failed(error: &ClientError) -> Arrival {
    let (code, data) = match error {
        ClientError::Failed(Failure::Server { code, data, .. }) => (Some(*code), data.clone()),
        _ => (None, None),
    };
    Arrival {
        kind: ArrivalKind::Failed,
        text: Some(error.to_string()),
        word: Some(error.kind().into()),
        uri: error.uri().map(Into::into),
        #[expect(clippy::cast_precision_loss, reason = "codes are small; another is shown, not compared")]
        count: code.map(|code| code as f64),
        details: data.map(|data| vec![data]),
        ..Arrival::default()
    }
}

fn of_contents(contents: Vec<Contents<'static>>, arrival: Arrival) -> Arrival {
    match <[_; 1]>::try_from(contents) {
        Ok([one]) => match one.body.into_plain() {
            Some(PlainContents::Text(text)) => Arrival { text: Some(text.into_owned()), ..arrival },
            Some(PlainContents::Blob(bytes)) => Arrival { bytes: Some(bytes.into_owned().into()), ..arrival },
            None => Arrival { entries: Some(Vec::new()), ..arrival },
        },
        Err(many) => Arrival { entries: Some(entries(many)), ..arrival },
    }
}

/// All contents, with their fields besides the bodies.
fn entries(contents: Vec<Contents<'static>>) -> Vec<Entry> {
    contents.into_iter().filter_map(Entry::from_contents).collect()
}

/// The entries as one JSON array, which is quicker to cross with than an object for each.
fn listed(items: &[Listed]) -> Arrival {
    let size = items.iter().map(|item| item.json.len() + 1).sum::<usize>();
    let mut text = String::with_capacity(size + 2);
    text.push('[');
    for (at, item) in items.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "," });
        text.push_str(&item.json);
    }
    text.push(']');
    let server = items.first().map(|item| item.server.as_ref().into());
    Arrival { kind: ArrivalKind::Listed, text: Some(text), server, ..Arrival::default() }
}

fn changed(Change { server, uri, contents }: Change) -> Arrival {
    let arrival = Arrival {
        kind: ArrivalKind::Change,
        server: Some(server.as_ref().into()),
        uri: Some(uri),
        ..Arrival::default()
    };
    match contents {
        Some(contents) => of_contents(contents, arrival),
        None => arrival,
    }
}

fn completed(Completion { values, total, has_more }: Completion<'static>) -> Arrival {
    let values = values.into_iter().map(Cow::into_owned).collect();
    Arrival {
        kind: ArrivalKind::Completion,
        values: Some(values),
        total: total.map(number),
        has_more,
        ..Arrival::default()
    }
}

fn described(about: &ServerAbout) -> Arrival {
    Arrival {
        kind: ArrivalKind::About,
        word: Some(about.revision.as_str().into()),
        text: about.instructions.clone(),
        details: Some(vec![about.info.clone(), about.capabilities.clone()]),
        ..Arrival::default()
    }
}
