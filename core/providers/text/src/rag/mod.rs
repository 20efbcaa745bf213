//! The rag provider, documents through retrieval: `rag:///{collection}/doc/{+id}` and
//! `rag:///{collection}/search/{+query}`, from folders and from Google Drive, whose files are also available as
//! `gdrive:///{fileId}`.
//!
//! ```text
//!   Options ──▶ Rag ──▶ Collection, one for each name: a DocumentSource ── Folder, Drive, or the program's own
//!                └─ Store: documents in chunks, in the search index; a thread asks the sources for changes while they are used
//! ```
//!
//! Law: a search finds documents with the words of a question, ranked by BM25; only with an [`Embedder`] of the program
//! does it compare meanings. Each passage says how it was ranked. A document that the guard hides is neither listed,
//! found nor counted.

mod chunk;
mod collection;
mod document;
mod embed;
mod options;
mod retrieve;
mod source;

pub use embed::Embedder;
pub use mcp_resources_provider_drive::DriveOptions;
#[doc(inline)]
pub use mcp_resources_provider_kit::document_source::{
    DocumentSource, FetchedDocument, ListedDocument, SourceChanges, SourceError,
};
pub use options::RagOptions;

use crate::indexes::IndexFile;
use crate::search::SearchQuery;
use collection::{Collection, DocumentStore, Documents};
use document::RagDocument;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource::{ListSource, ReadTool, RegistrationError, Resource, Template};
use mcp_resources_provider_drive::Drive;
use mcp_resources_provider_files::folder::Folder;
use mcp_resources_provider_kit::answers::{COMPLETED, completion, page};
use mcp_resources_provider_kit::declared::{self, Declare, Reader};
use mcp_resources_provider_kit::digest::digest;
use mcp_resources_provider_kit::offered::{choice, text};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::tracker::{LISTS, ProcessTracker, ReadStart, Tracker};
use mcp_resources_provider_kit::wanted::while_awaited;
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, Responder,
};
use mcp_resources_template::{Chars, TemplateOptions, ValuePolicy, VariableOptions};
use options::Origin;
use serde_json::{Map, Value, json};
use source::FolderSource;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const INDEX: &str = "rag:///";
const DRIVE: &str = "gdrive:///";
const COLLECTION: &str = "rag:///{collection}";
const DOCUMENT: &str = "rag:///{collection}/doc/{+id}";
const SEARCH: &str = "rag:///{collection}/search/{+query}";
/// The name of the tool.
const SEARCH_TOOL: &str = "rag_search";
const FILE: &str = "gdrive:///{fileId}";

routes! {
    /// The resources and templates of the provider.
    enum RagRoute {
        Index,
        /// A collection by the template.
        AnyCollection,
        Document,
        Search,
        /// A file of Google Drive.
        File,
        /// A collection by its own resource.
        Collection(at: usize),
    }
}

/// Interval between looks at folders.
const FOLDERS: Duration = Duration::from_secs(1);

/// Collections of documents that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Rag {
    collections: Vec<Arc<Collection>>,
    own: OwnWatch,
    tracker: ProcessTracker<DocumentStore>,
}

impl Rag {
    /// Makes a provider of the collections of `options`. No source is asked before the first request.
    ///
    /// # Errors
    /// There is no collection, one has no folder or no credentials, or two have the same name.
    pub fn new(options: RagOptions) -> Result<Self, OptionError> {
        if options.collections.is_empty() {
            let reason = "rag: there is no collection; name one: `collections: {NAME: {folder: DIR}}`, or rag:NAME=DIR";
            return Err(OptionError::sentence(reason));
        }
        options.check_ranges().map_err(|error| error.under(PathStep::Name("rag".into())))?;
        let index = IndexFile::new("rag", options.index.clone())?;
        let mut rag =
            Self { collections: Vec::new(), own: OwnWatch::default(), tracker: ProcessTracker::default() };
        for (name, origin) in &options.collections {
            let (source, origin, poll): (Box<dyn DocumentSource>, _, _) = match origin {
                Origin::Folder(dir) => (Box::new(folder_of(name, dir, &options)?), None, FOLDERS),
                Origin::Drive(drive) => (Box::new(Drive::new(drive.clone())?), Some(DRIVE), options.poll),
                Origin::DriveFile(file) => {
                    (Box::new(Drive::new(DriveOptions::from_file(file)?)?), Some(DRIVE), options.poll)
                }
            };
            options.tools.check("rag", &[SEARCH_TOOL])?;
            let collection = collection_of(name, source, &options, &index)?;
            rag.add(Arc::new(Collection { origin, poll, ..collection }))?;
        }
        Ok(rag)
    }

    /// Adds a collection whose documents come from a source of the program. The source is asked for changes once a
    /// second.
    ///
    /// # Errors
    /// A collection of this name exists, or the name is invalid.
    pub fn with_source(mut self, name: &str, source: impl DocumentSource) -> Result<Self, OptionError> {
        let collection =
            collection_of(name, Box::new(source), &RagOptions::new(), &IndexFile::new("rag", None)?)?;
        self.add(Arc::new(collection))?;
        Ok(self)
    }

    /// The same with vectors: searches of all collections that are here now combine BM25 with the nearest vectors.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        for collection in &mut self.collections {
            if let Some(collection) = Arc::get_mut(collection) {
                collection.embedder = Some(embedder.clone());
            }
        }
        self
    }

    /// The collections of both, each with its own options.
    ///
    /// # Errors
    /// Two collections have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, collection: Arc<Collection>) -> Result<(), OptionError> {
        if self.collections.iter().any(|other| other.name == collection.name) {
            let reason =
                format!("rag: two collections have the name {:?}; give one of them another", collection.name);
            return Err(OptionError::sentence(reason));
        }
        let mut others = self.collections.iter().map(|other| &other.index);
        others.try_for_each(|other| collection.index.is_beside("rag", other))?;
        self.collections.push(collection);
        Ok(())
    }
}

/// The documents of a directory.
fn folder_of(name: &str, dir: &Path, options: &RagOptions) -> Result<FolderSource, OptionError> {
    let folder = Folder::all("rag", "folder", &[RagOptions::named(name, dir)], &options.folders())?.pop();
    folder.map(FolderSource::new).ok_or_else(|| OptionError::sentence("rag: there is no folder"))
}

/// A collection, if its name is one that a URI can have.
fn collection_of(
    name: &str,
    source: Box<dyn DocumentSource>,
    options: &RagOptions,
    index: &Arc<IndexFile>,
) -> Result<Collection, OptionError> {
    if name.is_empty() || path::text(name.as_bytes()) != name {
        let reason = format!("rag: {name:?} is no name; use letters, digits, `-`, `_` and `.`");
        return Err(OptionError::sentence(reason));
    }
    let mut uri = String::from(INDEX);
    path::append(&mut uri, name);
    uri.push('/');
    let poll = FOLDERS;
    let list_max = options.list_max;
    let hits = options.hits;
    let name = name.to_owned();
    let index = index.clone();
    let origin = None;
    let embedder = None;
    let patience = options.patience;
    let tools = options.tools.clone();
    Ok(Collection { name, uri, source, origin, poll, patience, list_max, hits, embedder, index, tools })
}

impl Declare for Rag {
    const KIND: OptionKind = OptionKind {
        name: "rag",
        about: "Documents of folders and of Google Drive, found by questions, as rag:///NAME/search/QUESTION.",
        options: RagOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: RagOptions = declared::read("rag", options)?;
        Self::new(options.at(folder))
    }

    /// Documents of Google Drive have URIs without the name of a collection too.
    fn places(&self) -> Vec<String> {
        match self.collections.iter().any(|collection| collection.origin.is_some()) {
            true => Vec::new(),
            false => self.collections.iter().map(|collection| declared::place(&collection.uri)).collect(),
        }
    }

    fn schemes(&self) -> Vec<String> {
        let origins = self.collections.iter().filter_map(|collection| collection.origin);
        let origins =
            origins.filter_map(|origin| origin.split_once(':')).map(|(scheme, _)| scheme.to_owned());
        let mut schemes: Vec<String> = origins.chain(["rag".into()]).collect();
        schemes.sort_unstable();
        schemes.dedup();
        schemes
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.collections.len();
        let added = other.collections.into_iter().try_for_each(|collection| self.add(collection));
        added.inspect_err(|_| self.collections.truncate(before))
    }

    /// `NAME=DIR`.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        match rest.split_once('=') {
            Some((name, dir)) if !name.is_empty() && !dir.is_empty() => {
                let pair = OptionValue::List(vec![name.into(), dir.into()]);
                Ok(OptionValue::List(vec![pair]))
            }
            _ => Err(OptionError::sentence(format!("\"rag:{rest}\" names no folder; write rag:NAME=DIR"))),
        }
    }

    const SHORTHANDS: &'static [(&'static str, Reader)] = &[("gdrive", options::parse_drive_shorthand)];
}

impl Rag {
    /// The tool that searches, for the collections whose declaration offers it.
    fn search_tool(&self, feed: &Feed) -> Option<ReadTool> {
        let offers = |own: &&Arc<Collection>| own.tools.offers(SEARCH_TOOL, feed);
        let names: Vec<_> = self.collections.iter().filter(offers).map(|own| own.name.clone()).collect();
        let tool = ReadTool::new(SEARCH_TOOL, SEARCH)
            .title("Search the documents")
            .description(
                "Finds the passages of documents that answer a question, best first, each with its source.",
            )
            .parameter(text("query", "The question, or words to find."));
        (!names.is_empty()).then(|| tool.parameter(choice("collection", "The collection to search.", names)))
    }
}

impl Provider for Rag {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("rag", feed.clone())?;
        self.tracker.clear();
        let json = "application/json";
        let index = Resource::new(INDEX)
            .name("rag")
            .title("The collections of documents")
            .mime_type(json)
            .priority(1.0);
        let mut mount = Mount::new("rag").resource(RagRoute::Index, index);
        for (at, collection) in self.collections.iter().enumerate() {
            let contents = Resource::new(&*collection.uri)
                .name(format!("{}/", collection.name))
                .title(format!("The documents of {}", collection.name))
                .mime_type("text/markdown")
                .priority(1.0);
            mount = mount.resource(RagRoute::Collection(at), contents);
        }
        let query = VariableOptions {
            policy: Some(ValuePolicy::Any),
            chars: Chars::Any,
            ..VariableOptions::default()
        };
        let any = TemplateOptions::default().variable("query", query);
        let document = Template::new(DOCUMENT).title("A document").completes("collection").completes("id");
        let search = Template::new(SEARCH).title("The passages that answer a question").options(any);
        let search = search.completes("collection").completes("query");
        mount = mount
            .template(RagRoute::Document, document.list(ListSource { pages: true }))
            .template(RagRoute::Search, search)
            .template(
                RagRoute::AnyCollection,
                Template::new(COLLECTION).title("The documents of a collection").completes("collection"),
            );
        if self.collections.iter().any(|collection| collection.origin.is_some()) {
            mount = mount.template(
                RagRoute::File,
                Template::new(FILE).title("A file of Google Drive").completes("fileId"),
            );
        }
        Ok(self.search_tool(&feed).into_iter().fold(mount, Mount::tool))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = while_awaited(&reply, || self.answer(&request, &reply));
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let start = self.tracker().start_read();
        let Some(known) = self.documents(&|| reply.is_cancelled()) else {
            return reply.send(Err(ReadError::Failed));
        };
        self.tracker().saw(LISTS, DocumentStore::lists(&known), start);
        let permits = |uri: &str| request.permits(uri);
        let all = self.collections.iter().zip(known.iter()).flat_map(|(collection, documents)| {
            let seen = documents.all.values().filter(|one| retrieve::permits(collection, &one.id, &permits));
            seen.take(collection.list_max).map(move |document| (collection, document))
        });
        let key = |(collection, document): &(&Arc<Collection>, &Arc<RagDocument>)| {
            format!("{}/{}", collection.name, document.id)
        };
        // In the order of the collections: the cursor is the last one that was given.
        let mut rest = all.peekable();
        if let Some(cursor) = request.cursor() {
            let place = |(collection, document): &(&Arc<Collection>, &Arc<RagDocument>)| {
                self.is_behind(collection, document, cursor)
            };
            while rest.next_if(|item| !place(item)).is_some() {}
        }
        let mut page = page(request.limit(), rest, key, |(collection, document)| item(collection, document));
        let missing = self.collections.iter().zip(known.iter()).filter(|(_, documents)| !documents.is_whole);
        page.missing = missing.map(|(collection, _)| collection.name.clone()).collect();
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let values = match request.variable() {
            "collection" => {
                let seen = self
                    .collections
                    .iter()
                    .filter(|one| request.permits(&one.uri) && one.name.starts_with(typed));
                seen.map(|collection| collection.name.clone()).collect()
            }
            variable => {
                let known = self.documents(&|| reply.is_cancelled()).unwrap_or_default();
                self.completed(&request, variable, typed, &known)
            }
        };
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.tracker().interest(change, self.own.feed());
    }
}

impl Rag {
    /// The tracker of this process.
    fn tracker(&self) -> Arc<Tracker<DocumentStore>> {
        self.tracker.get(|| DocumentStore::new(&self.collections))
    }

    fn documents(&self, is_cancelled: &dyn Fn() -> bool) -> Option<Arc<Vec<Arc<Documents>>>> {
        let patience =
            self.collections.iter().map(|collection| collection.patience).min().unwrap_or_default();
        self.tracker().snapshot(self.own.feed(), patience, is_cancelled)
    }

    /// Whether a document comes after the one that a cursor names.
    fn is_behind(&self, collection: &Collection, document: &RagDocument, cursor: &str) -> bool {
        let Some((name, id)) = cursor.split_once('/') else { return false };
        let place = |name: &str| self.collections.iter().position(|other| other.name == name);
        match (place(&collection.name), place(name)) {
            (Some(own), Some(last)) => (own, &*document.id) > (last, id),
            _ => false,
        }
    }

    /// Values of a document's id, or titles as questions.
    fn completed(
        &self,
        request: &Complete,
        variable: &str,
        typed: &str,
        known: &[Arc<Documents>],
    ) -> Vec<String> {
        let chosen = request.argument("collection");
        let permits = |uri: &str| request.permits(uri);
        let decoded = path::decoded(typed).unwrap_or_default();
        let mut values = Vec::new();
        for (collection, documents) in self.collections.iter().zip(known) {
            let is_chosen = match (variable, chosen) {
                ("fileId", _) => collection.origin.is_some(),
                (_, Some(name)) => collection.name == name,
                (_, None) => self.collections.len() == 1,
            };
            if !is_chosen {
                continue;
            }
            for document in documents.all.values() {
                let text = match variable {
                    "id" | "fileId" => Some(&*document.id),
                    _ => document.title.as_deref(),
                };
                let Some(text) = text.filter(|text| text.starts_with(&decoded)) else { continue };
                if retrieve::permits(collection, &document.id, &permits) {
                    let mut value = String::new();
                    path::append(&mut value, text);
                    values.push(value);
                }
                if values.len() >= COMPLETED {
                    return values;
                }
            }
        }
        values
    }

    fn answer(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let permits = |uri: &str| request.permits(uri);
        let route = RagRoute::parse(request.route());
        if route == Some(RagRoute::Index) {
            return Ok(Contents::text(self.index(&permits)).with_mime_type("application/json").into());
        }
        let known = || self.documents(&|| reply.is_cancelled()).ok_or(ReadError::Failed);
        if route == Some(RagRoute::File) {
            let id = request.param("fileId").unwrap_or_default();
            let known = known()?;
            let mut both = self
                .collections
                .iter()
                .zip(known.iter())
                .filter(|(collection, _)| collection.origin.is_some());
            let found = both.find(|(collection, documents)| {
                documents.all.contains_key(id) && retrieve::permits(collection, id, &permits)
            });
            let (collection, documents) = found.ok_or(ReadError::NotFound)?;
            return self.document(collection, documents, id, request, reply);
        }
        let at = match route {
            Some(RagRoute::Collection(at)) => Some(at),
            _ => self.collections.iter().position(|one| Some(&*one.name) == request.param("collection")),
        };
        let at = at.ok_or(ReadError::NotFound)?;
        let collection = self.collections.get(at).ok_or(ReadError::NotFound)?;
        let query = match route {
            Some(RagRoute::Search) => Some(question(request.param("query").unwrap_or_default())?),
            _ => None,
        };
        let start = self.tracker().start_read();
        let known = known()?;
        let documents = known.get(at).ok_or(ReadError::Failed)?;
        if !documents.is_known {
            reply.log(&format!("the collection {:?} is not there yet", collection.name));
            return Err(ReadError::Failed);
        }
        match (route, query) {
            (Some(RagRoute::Document), _) => {
                self.document(collection, documents, request.param("id").unwrap_or_default(), request, reply)
            }
            (_, Some(query)) => {
                let text = request.param("query").unwrap_or_default();
                let log = |what: &str| reply.log(what);
                let tracker = self.tracker();
                let found =
                    retrieve::search(&tracker.source, collection, documents, text, &query, &permits, &log);
                self.saw(request, documents.generation, start);
                found.map_err(|reason| {
                    reply.log(&reason);
                    ReadError::Failed
                })
            }
            _ => {
                self.saw(request, documents.lists(), start);
                let text = contents(collection, documents, &permits);
                let contents = Contents::text(text).with_mime_type("text/markdown");
                let is_whole = documents.is_whole;
                Ok(if is_whole { contents } else { contents.with_meta(r#"{"incomplete":true}"#) }.into())
            }
        }
    }

    /// A document that is known, as its source has it now.
    fn document(
        &self,
        collection: &Collection,
        documents: &Documents,
        id: &str,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let document = documents.all.get(id).ok_or(ReadError::NotFound)?;
        if !retrieve::permits(collection, id, &|uri| request.permits(uri)) {
            return Err(ReadError::NotFound);
        }
        reply.facts(document.size)?;
        let start = self.tracker().start_read();
        let fetched = collection.source.fetch(id).map_err(|error| match error {
            SourceError::NotFound => ReadError::NotFound,
            SourceError::Failed(_) if reply.is_cancelled() => ReadError::Failed,
            SourceError::Failed(reason) | SourceError::Unreadable(reason) => {
                reply.log(&format!("{}/{id} cannot be read: {reason}", collection.name));
                ReadError::Failed
            }
        })?;
        reply.facts(fetched.text.len() as u64)?;
        self.saw(request, digest(fetched.text.as_bytes()), start);
        let uri = collection.document_uri(id);
        let source = collection.source_uri(id).unwrap_or_else(|| uri.clone());
        let meta = json!({ "title": document.title, "source": source, "chunks": document.chunks });
        Ok(Contents::text(fetched.text).with_mime_type(fetched.mime_type).with_meta(meta.to_string()).into())
    }

    /// The collections, as JSON.
    fn index(&self, permits: &dyn Fn(&str) -> bool) -> String {
        let seen = self.collections.iter().filter(|collection| permits(&collection.uri));
        let all: Map<String, Value> = seen
            .map(|collection| {
                let ranking = if collection.embedder.is_some() { "bm25+vectors" } else { "bm25" };
                let search = format!("{}search/{{+query}}", collection.uri);
                (
                    collection.name.clone(),
                    json!({ "uri": collection.uri, "search": search, "ranking": ranking }),
                )
            })
            .collect();
        Value::Object(all).to_string()
    }

    /// The client has read this: what differs from it later is a change.
    fn saw(&self, request: &Read, seen: u64, start: ReadStart) {
        self.tracker().saw_any_spelling(request.uri(), seen, start);
    }
}

fn question(text: &str) -> Result<SearchQuery, ReadError> {
    let query = SearchQuery::question(text).filter(|_| !text.trim().is_empty());
    query.ok_or_else(|| ReadError::InvalidParameter {
        parameter: "query".into(),
        expected: "a question of at most 1,024 bytes".into(),
    })
}

fn item(collection: &Collection, document: &RagDocument) -> Resource {
    let mut item = Resource::new(collection.document_uri(&document.id))
        .name(&*document.id)
        .title(document.title.clone().unwrap_or_else(|| document.id.clone()))
        .mime_type(&*document.mime_type)
        .size(document.size);
    item.details.annotations.last_modified.clone_from(&document.modified);
    item
}

/// The documents of a collection, as Markdown.
fn contents(collection: &Collection, documents: &Documents, permits: &dyn Fn(&str) -> bool) -> String {
    let mut text = format!("# {}\n\n", collection.name);
    let seen = documents.all.values().filter(|document| retrieve::permits(collection, &document.id, permits));
    for document in seen.take(collection.list_max) {
        let title: String =
            document.title.as_deref().unwrap_or(&document.id).replace(['[', ']', '\n', '\r'], " ");
        text.push_str(&format!("- [{title}]({})\n", collection.document_uri(&document.id)));
    }
    if documents.has_failed() {
        text.push_str("\nThe source does not answer now; this is what was known before.\n");
    }
    text
}
