//! The workloads: which URI a request reads, and what its answer must hold.

use crate::client::{self, Answer, Completed, Contents};
use crate::database::Part;
use crate::files::{self, Work};
use crate::history::HistoryQuery;
use crate::repository::Query;
use crate::scale::ScaleWork;
use crate::servers::{Contestant, Handler};
use crate::settings;
use crate::tools::ToolWork;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::error::Error;
use std::sync::LazyLock;
use std::time::Duration;

/// The text behind `bench://static`: 96 bytes.
pub(crate) const STATIC_TEXT: &str = include_str!("../../servers/static.txt");

/// The number of bytes of `bench://text1m` and `bench://blob1m`.
pub(crate) const LARGE: usize = 1 << 20;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// W1 to W3, over stdio.
    Read(Read),
    /// W2, with each request written by itself.
    Each,
    /// W2, answered by a native provider.
    Provided,
    /// W4: `resources/list` with so many resources, page by page to its end.
    List(u32),
    /// W5: the last of so many templates.
    Template(u32),
    /// W6: one subscriber of 10,000 resources, one update of each.
    Updates,
    /// W6: 1,000 subscribers of one resource, over HTTP.
    Subscribers,
    /// W7: `bench://item/{id}` over so many HTTP connections.
    Http(u32),
    /// W7, so many requests in a second, whether they are answered or not.
    Open(u32),
    /// W8: the start, and memory.
    Start,
    /// W9: listeners that wait, then one update.
    Listeners,
    /// W10 and W15: the files of a folder.
    Files(Work),
    /// W11: documentation that is indexed, searched and edited.
    Docs,
    /// W17: a table in SQLite.
    Database(Part),
    /// W12: a git repository.
    Git(Query),
    /// W16: what a client spends on reading from our server, with so many reads in flight.
    Client(u32),
    /// W18: a key of a configuration file.
    Settings,
    /// W13: an existing server, alone and with ours: what is read, or a tool of its own that is called.
    Attached(AttachedPart),
    /// W19: tools.
    Tools(ToolWork),
    /// W23: a repository with a long history.
    History(HistoryQuery),
    /// W24 to W26: many pages, directories and subscriptions.
    Scale(ScaleWork),
}

/// The half of a server that has ours beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachedPart {
    /// `bench://item/{id}`, which ours answers.
    Resource,
    /// `echo`, which stays with the other server.
    Tool,
}

/// What a request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// `bench://static`.
    Static,
    /// `bench://inline`.
    Inline,
    /// `bench://const`.
    Constant,
    /// `bench://item/{id}`.
    Item,
    /// `bench://aitem/{id}`.
    AsyncItem,
    /// `bench://pitem/{id}`.
    ProviderItem,
    /// `bench://witem/{id}`.
    WorkerItem,
    /// `bench://iitem/{id}`.
    InlineItem,
    /// `bench://text1m`.
    Text,
    /// `bench://blob1m`.
    Blob,
    /// `bench://t<n>/{id}/z` with this n.
    Template(u32),
    /// The file of 4 KiB in the folder of W10.
    Page,
    /// Of the repository of W12.
    Git(Query),
    /// The key of W18.
    Key,
    /// The tool `echo` is called.
    Echo,
    /// Anything, answered with the static text.
    Anything,
}

impl Workload {
    /// Every workload, in the order of the tables.
    pub(crate) fn all() -> Vec<Self> {
        let reads = [Read::Static, Read::Item, Read::Text, Read::Blob].map(Self::Read);
        let rest = [
            Self::Each,
            Self::Provided,
            Self::List(1_000),
            Self::List(100_000),
            Self::Template(1),
            Self::Template(100),
            Self::Template(1_000),
            Self::Template(10_000),
            Self::Updates,
            Self::Subscribers,
            Self::Http(8),
            Self::Http(64),
            Self::Open(250),
            Self::Open(5_000),
            Self::Start,
            Self::Listeners,
            Self::Client(1),
            Self::Client(64),
            Self::Settings,
        ];
        let files = Work::ALL.map(Self::Files).into_iter().chain(Query::ALL.map(Self::Git));
        reads
            .into_iter()
            .chain(rest)
            .chain(files)
            .chain([Self::Docs, Self::Database(Part::Pages), Self::Database(Part::Change)])
            .chain(HistoryQuery::ALL.map(Self::History))
            .chain(ScaleWork::ALL.map(Self::Scale))
            .chain([AttachedPart::Resource, AttachedPart::Tool].map(Self::Attached))
            .chain(ToolWork::ALL.map(Self::Tools))
            .collect()
    }

    /// The workload with this name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::all().into_iter().find(|workload| workload.name() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().iter().map(|workload| workload.name()).collect();
            format!("no workload {name}; there are {}", names.join(", "))
        })
    }

    /// Its name.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Read(Read::Text) => "W3-text".into(),
            Self::Read(Read::Blob) => "W3-blob".into(),
            Self::Read(Read::Item) => "W2".into(),
            Self::Read(_) => "W1".into(),
            Self::Each => "W2-each".into(),
            Self::Provided => "W2-provider".into(),
            Self::List(count) => format!("W4-{count}"),
            Self::Template(count) => format!("W5-{count}"),
            Self::Updates => "W6-one".into(),
            Self::Subscribers => "W6-many".into(),
            Self::Http(connections) => format!("W7-{connections}"),
            Self::Open(rate) => format!("W7-open-{rate}"),
            Self::Start => "W8".into(),
            Self::Listeners => "W9".into(),
            Self::Files(Work::List) => "W10-list".into(),
            Self::Files(Work::Read) => "W10-read".into(),
            Self::Files(Work::Change) => "W10-change".into(),
            Self::Files(Work::Start) => "W15".into(),
            Self::Docs => "W11".into(),
            Self::Database(Part::Pages) => "W17-pages".into(),
            Self::Database(Part::Change) => "W17-change".into(),
            Self::Git(query) => query.name().into(),
            Self::Client(in_flight) => format!("W16-{in_flight}"),
            Self::Settings => "W18".into(),
            Self::Attached(AttachedPart::Resource) => "W13-read".into(),
            Self::Attached(AttachedPart::Tool) => "W13-tool".into(),
            Self::Tools(work) => work.name(),
            Self::History(query) => query.name().into(),
            Self::Scale(work) => work.name(),
        }
    }

    /// Whether it goes over HTTP.
    pub(crate) fn is_http(self) -> bool {
        matches!(
            self,
            Self::Subscribers
                | Self::Http(_)
                | Self::Open(_)
                | Self::Listeners
                | Self::Tools(ToolWork::Http(_))
        )
    }

    /// Requests in flight; over HTTP, connections.
    pub(crate) fn in_flight(self) -> u64 {
        match self {
            Self::Read(Read::Item)
            | Self::Each
            | Self::Provided
            | Self::Open(_)
            | Self::Start
            | Self::Attached(_)
            | Self::Files(Work::Read) => 64,
            // A server that tries one template after the other takes long for each.
            Self::Template(_) => 8,
            Self::Http(connections) => connections.into(),
            Self::Client(in_flight) => in_flight.into(),
            Self::Tools(ToolWork::Stdio(in_flight) | ToolWork::Http(in_flight)) => in_flight.into(),
            _ => 1,
        }
    }

    /// Requests of one measurement, or listeners.
    pub(crate) fn requests(self, quick: bool) -> u64 {
        let full = match self {
            Self::Read(Read::Item) | Self::Each | Self::Provided | Self::Template(_) | Self::Client(_) => {
                100_000
            }
            Self::Read(Read::Text | Read::Blob) => 500,
            Self::Read(_) => 30_000,
            Self::Http(_) | Self::Open(_) => 50_000,
            Self::List(count) => 200_000 / u64::from(count),
            Self::Updates | Self::Listeners | Self::Start => 10_000,
            Self::Files(Work::Read) | Self::Git(_) | Self::Settings | Self::History(_) => 100_000,
            Self::Docs => 4_000,
            Self::Files(Work::Change) | Self::Database(_) => 200,
            Self::Files(Work::List | Work::Start) | Self::Scale(_) => 1,
            Self::Subscribers => 1_000,
            Self::Attached(_) => 50_000,
            Self::Tools(ToolWork::Stdio(_) | ToolWork::Http(_)) => 50_000,
            Self::Tools(ToolWork::List) => 200,
            Self::Tools(ToolWork::Import) => 15,
        };
        if quick { (full / 5).max(1) } else { full }
    }

    /// How long a measurement sends requests, where `time` is the usual.
    pub(crate) fn time(self, time: Duration) -> Duration {
        match self {
            // Each update waits for the one before.
            Self::Updates => time.saturating_mul(2),
            Self::Files(Work::Change) | Self::Docs | Self::Database(Part::Change) | Self::Scale(_) => {
                time.saturating_mul(8)
            }
            _ => time,
        }
    }

    /// Requests before counting, for a server that needs `warm` of the small ones.
    pub(crate) fn warm(self, warm: u64, quick: bool) -> u64 {
        let warm = if quick { warm / 4 } else { warm };
        match self {
            Self::Read(Read::Text | Read::Blob) => 20,
            Self::List(_) | Self::Tools(ToolWork::List) => 1,
            Self::Start => 0,
            Self::Git(Query::Log | Query::Status | Query::Complete) => 20,
            _ => warm,
        }
    }

    /// What a server's fixture must be told.
    pub(crate) fn environment(self) -> Vec<(&'static str, String)> {
        match self {
            Self::List(count) => vec![("STATIC", count.to_string())],
            Self::Template(count) => vec![("TEMPLATES", count.to_string())],
            Self::Tools(work) => vec![("STATIC", "0".into()), ("TOOLS", work.tools().to_string())],
            Self::Attached(_) => vec![("STATIC", "0".into()), ("TOOLS", "0".into())],
            // A peer that makes a server for each request would register them each time.
            _ if self.is_http() => vec![("STATIC", "0".into())],
            _ => Vec::new(),
        }
    }

    /// What the floor is to answer.
    pub(crate) fn floor_answer(self) -> &'static str {
        match self {
            Self::Read(Read::Text) => "text1m",
            Self::Read(Read::Blob) => "blob1m",
            _ => "static",
        }
    }

    /// What is read of this server.
    pub(crate) fn read_by(self, contestant: &Contestant) -> Read {
        let read = match self {
            Self::Read(read) => read,
            Self::Template(count) => Read::Template(count - 1),
            Self::Files(_) => Read::Page,
            Self::Git(query) => Read::Git(query),
            Self::Settings => Read::Key,
            Self::Tools(_) | Self::Attached(AttachedPart::Tool) => Read::Echo,
            _ => Read::Item,
        };
        match (read, contestant.handler) {
            (Read::Text | Read::Blob | Read::Page | Read::Git(_) | Read::Key | Read::Echo, _) => read,
            _ if contestant.is_floor() => Read::Anything,
            (Read::Static, Handler::Inline) => Read::Inline,
            (_, Handler::Constant) => Read::Constant,
            (_, Handler::Inline) => Read::InlineItem,
            (_, Handler::Async) => Read::AsyncItem,
            (_, Handler::Provider) => Read::ProviderItem,
            (_, Handler::Worker) => Read::WorkerItem,
            (
                _,
                Handler::Usual | Handler::Guarded | Handler::Attached | Handler::InFront | Handler::Beside,
            ) => read,
        }
    }
}

impl Read {
    /// The method of its requests.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Echo => "tools/call",
            _ if self.completes().is_some() => "completion/complete",
            _ => "resources/read",
        }
    }

    /// The URI that request number `id` reads, or the name of the tool that it calls.
    pub(crate) fn uri(self, id: u64) -> String {
        match self {
            Self::Echo => "echo".into(),
            Self::Static => "bench://static".into(),
            Self::Inline => "bench://inline".into(),
            Self::Constant => "bench://const".into(),
            Self::Item | Self::Anything => format!("bench://item/{id}"),
            Self::AsyncItem => format!("bench://aitem/{id}"),
            Self::InlineItem => format!("bench://iitem/{id}"),
            Self::ProviderItem => format!("bench://pitem/{id}"),
            Self::WorkerItem => format!("bench://witem/{id}"),
            Self::Template(number) => format!("bench://t{number}/{id}/z"),
            Self::Page => files::PAGE_URI.into(),
            Self::Git(query) => query.uri(),
            Self::Key => settings::KEY_URI.into(),
            Self::Text => "bench://text1m".into(),
            Self::Blob => "bench://blob1m".into(),
        }
    }

    /// Appends request number `id`.
    pub(crate) fn write(self, out: &mut Vec<u8>, id: u64, modern: bool) -> std::io::Result<()> {
        match self.completes() {
            Some(of) => client::complete(out, id, &of, modern),
            None if self == Self::Echo => client::call(out, id, &self.uri(id), &echoed(id), modern),
            None => client::read(out, id, &self.uri(id), modern),
        }
    }

    /// Whether an answer is the right one to request number `id`; an error of the server's is an error.
    pub(crate) fn accepts_answer(self, id: u64, answer: &Answer<'_>) -> Result<bool, Box<dyn Error>> {
        match self {
            Self::Echo => Ok(answer.called()? == echoed(id)),
            _ if self.completes().is_some() => Ok(self.accepts_completed(answer.completed()?)),
            _ => Ok(self.accepts(id, answer.contents()?)),
        }
    }

    /// Whether `contents` is what request number `id` must be answered with.
    pub(crate) fn accepts(self, id: u64, contents: &Contents<'_>) -> bool {
        match self {
            Self::Static | Self::Inline | Self::Constant | Self::Anything => {
                contents.text() == Some(STATIC_TEXT)
            }
            Self::Item | Self::AsyncItem | Self::InlineItem | Self::ProviderItem | Self::WorkerItem => {
                let number = contents.text().and_then(|text| text.strip_prefix("item "));
                number.and_then(|digits| digits.parse().ok()) == Some(id)
            }
            Self::Template(_) => {
                let number = contents.text().and_then(|text| text.strip_suffix(" z"));
                number.and_then(|digits| digits.parse().ok()) == Some(id)
            }
            Self::Page => contents.text() == Some(&**PAGE_TEXT),
            Self::Git(query) => contents.text().is_some_and(|text| query.accepts(text)),
            Self::Key => contents.text() == Some(settings::KEY_TEXT),
            // It has no contents.
            Self::Echo => false,
            Self::Text => contents.text().is_some_and(|text| Sha256::digest(text) == *TEXT_DIGEST),
            Self::Blob => {
                let bytes = contents.blob().and_then(|blob| STANDARD.decode(blob).ok());
                bytes.is_some_and(|bytes| Sha256::digest(bytes) == *BLOB_DIGEST)
            }
        }
    }

    /// What is completed instead of read.
    fn completes(self) -> Option<Completed> {
        if let Self::Git(query) = self { query.completes() } else { None }
    }

    /// Whether `values` are the completion.
    fn accepts_completed(self, values: &[Cow<'_, str>]) -> bool {
        matches!(self, Self::Git(query) if query.accepts_completed(values))
    }

    /// The bytes that an answer holds, if they are many.
    pub(crate) fn large(self) -> Option<usize> {
        matches!(self, Self::Text | Self::Blob).then_some(LARGE)
    }
}

/// The text that call number `id` passes, and gets.
fn echoed(id: u64) -> String {
    format!("the text of call {id}")
}

type Output = sha2::digest::Output<Sha256>;

static PAGE_TEXT: LazyLock<String> = LazyLock::new(files::page_text);

static TEXT_DIGEST: LazyLock<Output> = LazyLock::new(|| Sha256::digest(large_text()));

static BLOB_DIGEST: LazyLock<Output> = LazyLock::new(|| {
    let bytes: Vec<u8> = (0..LARGE).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect();
    Sha256::digest(bytes)
});

/// One character in twenty is a line end, which JSON escapes.
fn large_text() -> String {
    let mut text = "resource contents 1\n".repeat(LARGE / 20 + 1);
    text.truncate(LARGE);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_text_is_96_bytes() {
        assert_eq!(STATIC_TEXT.len(), 96);
    }

    #[test]
    fn names_find_their_workloads() {
        for workload in Workload::all() {
            assert_eq!(Workload::parse(&workload.name()), Ok(workload));
        }
    }

    #[test]
    fn only_the_right_item_is_accepted() {
        let contents = Contents::of_text("item 7");
        assert!(Read::Item.accepts(7, &contents));
        assert!(!Read::Item.accepts(8, &contents));
        assert!(!Read::Static.accepts(7, &contents));
        assert!(!Read::Template(3).accepts(7, &contents));
    }
}
