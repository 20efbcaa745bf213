//! A provider of one's own: the CSV files of a folder as csv:///{file}, and their rows as JSON, as csv:///{file}?row=2.
//! `csv_folder DIR` serves another folder.

use mcp_resources::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, Responder, Route,
};
use mcp_resources::providers::kit::answers::completion;
use mcp_resources::providers::kit::watching::{OwnWatch, ProviderWatching, WatchedValue};
use mcp_resources::template::{Lookup, Values};
use mcp_resources::{
    Completion, Contents, ListPage, ListSource, Parameter, ParameterKind, ReadError, ReadResult,
    RegistrationError, Resource, ResourceServer, Template, UriTemplate,
};
use mcp_resources_examples::data;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const TABLES: &str = "csv:///{file}{?row}";

struct CsvOptions {
    folder: PathBuf,
    separator: u8,
    max_bytes: u64,
    /// The time between two looks at the folder, while somebody watches.
    poll: Duration,
}

/// The size and the time of each file: where they differ, the file has changed.
type Files = BTreeMap<String, (u64, Option<SystemTime>)>;

/// The folder, which the requests and the thread of the watchers share.
struct CsvFolder {
    options: CsvOptions,
    template: UriTemplate,
    /// The files as clients know them.
    known: Mutex<Option<Files>>,
}

impl CsvFolder {
    /// The regular files. No link is followed, because it may lead out of the folder.
    fn files(&self) -> Files {
        let entries = std::fs::read_dir(&self.options.folder).into_iter().flatten().flatten();
        let named =
            entries.filter_map(|entry| entry.file_name().into_string().ok().zip(entry.metadata().ok()));
        let tables = named.filter(|(name, facts)| name.ends_with(".csv") && facts.is_file());
        let files: Files = tables.map(|(name, facts)| (name, (facts.len(), facts.modified().ok()))).collect();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| files.clone());
        files
    }

    fn text(&self, file: &str) -> Result<String, ReadError> {
        let limit = self.options.max_bytes;
        match self.files().get(file) {
            None => Err(ReadError::NotFound),
            Some((size, _)) if *size > limit => Err(ReadError::SizeExceeded { limit, size: Some(*size) }),
            Some(_) => std::fs::read_to_string(self.options.folder.join(file)).map_err(|_| ReadError::Failed),
        }
    }

    /// The rows, each by the names of the first line.
    fn rows(&self, text: &str) -> Result<Vec<BTreeMap<String, String>>, ReadError> {
        let reader = csv::ReaderBuilder::new().delimiter(self.options.separator).from_reader(text.as_bytes());
        reader.into_deserialize().collect::<Result<_, _>>().map_err(|_| ReadError::Failed)
    }

    fn contents(&self, request: &Read) -> Result<ReadResult<'static>, ReadError> {
        let text = self.text(request.param("file").ok_or(ReadError::NotFound)?)?;
        let Some(row) = request.param("row") else {
            return Ok(Contents::text(text).with_mime_type("text/csv").into());
        };
        let rows = self.rows(&text)?;
        let row = row.parse::<usize>().ok().and_then(|number| rows.get(number.checked_sub(1)?));
        Ok(Contents::json(row.ok_or(ReadError::NotFound)?).map_err(|_| ReadError::Failed)?.into())
    }

    /// Reports what differs from what clients know, and returns how long to wait before the next look.
    fn look(&self, feed: &Feed, watched: &WatchedValue) -> Duration {
        let files = self.files();
        let before = self.known.lock().unwrap_or_else(PoisonError::into_inner).replace(files.clone());
        let before = before.unwrap_or_default();
        for uri in &watched.uris {
            let Ok(Lookup::Match { params, .. }) = self.template.match_uri(uri) else { continue };
            let file = params.text("file").unwrap_or_default();
            if before.get(file) != files.get(file) {
                let _ = feed.updated(uri);
            }
        }
        if watched.lists && !before.keys().eq(files.keys()) {
            feed.list_changed();
        }
        self.options.poll
    }
}

/// The folder in a server. It is in one server at a time.
struct CsvProvider {
    folder: Arc<CsvFolder>,
    own: OwnWatch,
    watching: Arc<ProviderWatching>,
}

impl Provider for CsvProvider {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("csv", feed)?;
        let row = Parameter::new("row").kind(ParameterKind::Integer);
        let tables = Template::new(TABLES).parameter(row).completes("file").completes("row");
        Ok(Mount::new("csv").template(Route(0), tables.list(ListSource::default())))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(self.folder.contents(&request));
    }

    fn list(&self, _request: List, reply: Responder<ListPage>) {
        let resource = |(file, (size, _)): (String, _)| {
            let uri = self.folder.template.expand(&Values::new().with("file", &*file)).unwrap_or_default();
            Resource::new(uri).name(file).mime_type("text/csv").size(size)
        };
        reply.send(Ok(ListPage::new(self.folder.files().into_iter().map(resource))));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let values: Vec<String> = match request.argument("file") {
            Some(file) => {
                let rows = self.folder.text(file).and_then(|text| self.folder.rows(&text));
                (1..=rows.unwrap_or_default().len()).map(|row| row.to_string()).collect()
            }
            None => self.folder.files().into_keys().collect(),
        };
        reply.send(Ok(completion(values.into_iter().filter(|value| value.starts_with(request.value())))));
    }

    fn interest(&self, change: InterestChange<'_>) {
        let folder = self.folder.clone();
        let look = move || move |feed: &Feed, watched: &WatchedValue| folder.look(feed, watched);
        self.watching.interest(change, self.own.feed(), "csv", look);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map_or_else(|| data("tables"), PathBuf::from);
    let poll = Duration::from_millis(200);
    let options = CsvOptions { folder, separator: b',', max_bytes: 16 << 20, poll };
    let folder = CsvFolder { options, template: UriTemplate::parse(TABLES)?, known: Mutex::default() };
    let provider = CsvProvider { folder: folder.into(), own: OwnWatch::default(), watching: Arc::default() };
    Ok(ResourceServer::builder("tables", "1.0.0").mount(provider).build()?.run_stdio().await?)
}
