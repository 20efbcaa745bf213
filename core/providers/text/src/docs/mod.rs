//! The docs provider: `docs:///{site}/{+page}`, with a section as `#section`, and `docs:///{site}/search/{+query}` in
//! Japanese and English.
//!
//! ```text
//!   Options ──▶ Docs ──▶ Site, one for each directory: names of pages, by the rules of files
//!                 ├─ read: a page or a section, from the file as it is now
//!                 └─ Library: all pages and the search index, kept up to date by a thread while it is used or watched
//! ```
//!
//! Law: a page that is absent, ignored, hidden, excluded or denied by the guard is not found; all cases look the same.
//! The guard permits a hit before the answer says anything about it.

mod library;
mod list;
mod options;
pub(crate) mod page;
mod search;
pub(crate) mod site;

pub use options::DocsOptions;

use crate::indexes::IndexFile;
use library::{SiteLibrary, SiteSnapshot};
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, ReadTool, RegistrationError, Resource, Template};
use mcp_resources_provider_files::folder::{Folder, UnreadFile};
use mcp_resources_provider_kit::answers::completion;
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::digest::digest;
use mcp_resources_provider_kit::named;
use mcp_resources_provider_kit::offered::{choice, number, text as described};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::tracker::{LISTS, ProcessTracker, ReadStart, Tracker};
use mcp_resources_provider_kit::wanted::while_awaited;
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Directory, DirectoryPage, Feed, InterestChange, List, Mount, Provider, Read, Responder,
};
use mcp_resources_template::{Chars, TemplateOptions, ValuePolicy, VariableOptions, uri};
use page::{DocsPage, INDEXED, NO_TEXT, page_digest, text_of};
use search::SearchRequest;
use site::{DocsSite, SCHEME, SiteGroup};
use std::path::Path;
use std::sync::Arc;

const SITE: &str = "docs:///{site}";
const PAGE: &str = "docs:///{site}/{+page}";
const SECTION: &str = "docs:///{site}/{+page}{#section}";
const SEARCH: &str = "docs:///{site}/search/{+query}";
const SEARCH_QUERY: &str = "docs:///{site}/search{?q,k,lang}";

routes! {
    /// The resources and templates of the provider.
    enum DocsRoute {
        Index,
        /// A site by the template.
        AnySite,
        Page,
        Section,
        Search,
        SearchQuery,
        /// A site by its own resource.
        Site(at: usize),
    }
}

/// The name of the tool.
const SEARCH_TOOL: &str = "docs_search";
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// Directories of Markdown that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Docs {
    sites: Vec<Arc<DocsSite>>,
    own: OwnWatch,
    tracker: ProcessTracker<SiteLibrary>,
}

impl Docs {
    /// Makes a provider of the sites of `options`. No file is opened and nothing is indexed before the first request.
    ///
    /// # Errors
    /// There is no site, one is not a directory, two have the same name, or the file of the index is something else.
    pub fn new(options: DocsOptions) -> Result<Self, OptionError> {
        if options.sites.is_empty() {
            let reason = "docs: there is no site; name a directory: `sites: {NAME: DIR}`, or docs:DIR";
            return Err(OptionError::sentence(reason));
        }
        options.tools.check("docs", &[SEARCH_TOOL])?;
        let folder = options.folder();
        let DocsOptions { sites, list_max, max_bytes, index, patience, tools, .. } = options;
        let index = IndexFile::new("docs", index)?;
        let group = Arc::new(SiteGroup { list_max, max_bytes, watch: folder.watch, patience, index, tools });
        let folders = Folder::all("docs", "site", &sites, &folder)?;
        let mut docs =
            Self { sites: Vec::new(), own: OwnWatch::default(), tracker: ProcessTracker::default() };
        docs.add(folders.into_iter().map(|folder| Arc::new(DocsSite::new(folder, &group))).collect())?;
        Ok(docs)
    }

    /// The sites of both, each with its own options.
    ///
    /// # Errors
    /// Two sites have the same name, or two declarations the same index.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, sites: Vec<Arc<DocsSite>>) -> Result<(), OptionError> {
        for site in sites {
            if let Some(first) = self.sites.iter().find(|first| first.name() == site.name()) {
                let first = first.folder.dir();
                let second = site.folder.dir();
                return Err(named::same_name("docs", "sites", site.name(), first, second));
            }
            let mut others = self.sites.iter().map(|other| &other.group.index);
            others.try_for_each(|other| site.group.index.is_beside("docs", other))?;
            self.sites.push(site);
        }
        Ok(())
    }
}

impl Declare for Docs {
    const KIND: OptionKind = OptionKind {
        name: "docs",
        about: "The Markdown pages of directories, with full-text search, as docs:///NAME/PAGE.",
        options: DocsOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: DocsOptions = declared::read("docs", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.sites.iter().map(|own| declared::place(&own.uri)).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.sites.len();
        self.add(other.sites).inspect_err(|_| self.sites.truncate(before))
    }

    /// `DIR` or `NAME=DIR`. A directory whose own name has a `=` is `./a=b`.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        named::parse_shorthand("docs", "directory", rest)
    }
}

impl Provider for Docs {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("docs", feed.clone())?;
        self.tracker.clear();
        let index = Resource::new(SCHEME)
            .name("docs")
            .title("The sites of documentation")
            .mime_type(JSON)
            .priority(1.0);
        let mut mount = Mount::new("docs").resource(DocsRoute::Index, index);
        for (at, site) in self.sites.iter().enumerate() {
            let contents = Resource::new(&*site.uri)
                .name(format!("{}/", site.name()))
                .title(format!("The pages of {}", site.name()))
                .mime_type(MARKDOWN)
                .priority(1.0);
            mount = mount.resource(DocsRoute::Site(at), contents);
        }
        let page = |uri: &str| Template::new(uri).mime_type(MARKDOWN).completes("site").completes("page");
        let search = |uri: &str, query: &str| {
            let template = Template::new(uri).mime_type(JSON).options(any_text(query)).completes("site");
            template.title("Pages that have all of some words, best first").completes(query)
        };
        let mount = mount
            .directories()
            .template(DocsRoute::Page, page(PAGE).title("A page").list(ListSource { pages: true }))
            .template(DocsRoute::Section, page(SECTION).title("A section of a page").completes("section"))
            .template(DocsRoute::Search, search(SEARCH, "query"))
            .template(DocsRoute::SearchQuery, search(SEARCH_QUERY, "q").completes("k").completes("lang"))
            .template(
                DocsRoute::AnySite,
                Template::new(SITE).title("The pages of a site").mime_type(MARKDOWN).completes("site"),
            );
        Ok(self.search_tool(&feed).into_iter().fold(mount, Mount::tool))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = while_awaited(&reply, || self.answer(&request, &reply));
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let start = self.tracker().start_read();
        let Some(snapshots) = self.snapshots(&|| reply.is_cancelled()) else {
            return reply.send(Err(ReadError::Failed));
        };
        self.tracker().saw(LISTS, SiteLibrary::lists(&snapshots), start);
        let permits = |uri: &str| request.permits(uri);
        let page = list::page(&self.sites, &snapshots, request.cursor(), request.limit(), &permits);
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let snapshots = match request.variable() {
            "site" | "k" => None,
            _ => self.snapshots(&|| reply.is_cancelled()),
        };
        let asked = list::Typed {
            sites: &self.sites,
            snapshots: snapshots.as_deref().map_or(&[], Vec::as_slice),
            site: request.argument("site"),
            page: request.argument("page"),
            text: request.value(),
            permits: &|uri| request.permits(uri),
        };
        reply.send(Ok(completion(list::complete(&asked, request.variable()))));
    }

    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        let answer = self.children(&request, &reply);
        reply.send(answer.map(|children| request.page(children)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        // Sites that are not watched are none of this.
        if self.sites.iter().all(|site| !site.group.watch) {
            return;
        }
        self.tracker().interest(change, self.own.feed());
    }
}

impl Docs {
    /// The tracker of this process.
    fn tracker(&self) -> Arc<Tracker<SiteLibrary>> {
        self.tracker.get(|| SiteLibrary::new(&self.sites))
    }

    fn snapshots(&self, is_cancelled: &dyn Fn() -> bool) -> Option<Arc<Vec<Arc<SiteSnapshot>>>> {
        let tracker = self.tracker();
        if tracker.source.is_outdated() {
            tracker.wake(true);
        }
        let patience = self.sites.iter().map(|site| site.group.patience).min().unwrap_or_default();
        tracker.snapshot(self.own.feed(), patience, is_cancelled)
    }

    /// The tool that searches, for the sites whose declaration offers it.
    fn search_tool(&self, feed: &Feed) -> Option<ReadTool> {
        let offers = |site: &&Arc<DocsSite>| site.group.tools.offers(SEARCH_TOOL, feed);
        let names: Vec<_> = self.sites.iter().filter(offers).map(|site| site.name().to_owned()).collect();
        let tool = ReadTool::new(SEARCH_TOOL, SEARCH_QUERY)
            .title("Search the documentation")
            .description(
                "Finds the pages and sections of the documentation that have all of some words, best first, each with its \
                 URI for read_resource.",
            )
            .parameter(described("q", "The words to find.").required(true))
            .parameter(number("k", "How many results."))
            .parameter(described("lang", "Only pages in this language, such as en."));
        (!names.is_empty()).then(|| tool.parameter(choice("site", "The documentation to search.", names)))
    }

    /// The children of a directory of a site: its pages, and the directories that have pages.
    fn children(
        &self,
        request: &Directory,
        reply: &Responder<DirectoryPage>,
    ) -> Result<Vec<Resource>, ReadError> {
        let (site, path) = match DocsRoute::parse(request.route()) {
            Some(DocsRoute::Site(at)) => (self.sites.get(at), ""),
            Some(DocsRoute::AnySite | DocsRoute::Page) => {
                let name = request.param("site").unwrap_or_default();
                let site = self.sites.iter().find(|site| site.name() == name);
                (site, request.param("page").unwrap_or_default())
            }
            _ => (None, ""),
        };
        let site = site.ok_or_else(|| request.absent())?;
        let snapshot = self.snapshot(site, &|| reply.is_cancelled(), &|what| reply.log(what))?;
        let permits = |uri: &str| request.permits(uri);
        list::children(site, &snapshot, path, &permits).ok_or_else(|| request.absent())
    }

    fn answer(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let permits = |uri: &str| request.permits(uri);
        let route = DocsRoute::parse(request.route());
        if route == Some(DocsRoute::Index) {
            return Ok(Contents::text(list::index(&self.sites, &permits)).with_mime_type(JSON).into());
        }
        let site = match route {
            Some(DocsRoute::Site(at)) => self.sites.get(at),
            _ => self.sites.iter().find(|site| Some(site.name()) == request.param("site")),
        };
        let site = site.ok_or(ReadError::NotFound)?;
        match route {
            Some(DocsRoute::Page | DocsRoute::Section) => {
                let page = request.param("page").unwrap_or_default();
                let section = request.param("section");
                self.page(site, page, section, request, reply)
            }
            Some(DocsRoute::Search) => self.search_or_page(site, request, reply),
            Some(DocsRoute::SearchQuery) => {
                let param = |name: &str| request.param(name);
                let request_of = SearchRequest::parse("q", param("q"), param("k"), param("lang"))?;
                self.search(site, &request_of, request, reply)
            }
            _ => self.contents(site, request, reply),
        }
    }

    /// A page, or a section of it.
    fn page(
        &self,
        site: &DocsSite,
        key: &str,
        section: Option<&str>,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let path = site.locate(key).ok_or(ReadError::NotFound)?;
        let check = |size: u64| {
            if reply.is_cancelled() {
                return Err(ReadError::Failed);
            }
            if let Some(limit) = site.group.max_bytes.filter(|limit| size > *limit) {
                return Err(ReadError::SizeExceeded { limit, size: Some(size) });
            }
            if section.is_some() { Ok(()) } else { reply.facts(size) }
        };
        let permits = |path: &[u8]| request.permits(&site.page_uri(&site::key(path)));
        let max = if section.is_some() { INDEXED } else { u64::MAX };
        let start = self.tracker().start_read();
        let (bytes, facts) =
            site.folder.read(&path, max, &permits, &check).map_err(|unread| match unread {
                UnreadFile::NotFound => ReadError::NotFound,
                UnreadFile::Refused(error) => error,
                UnreadFile::Failed(reason) => {
                    reply.log(&format!("{}/{key} could not be read: {reason}", site.name()));
                    ReadError::Failed
                }
            })?;
        let fault = |fault: &str| {
            let fault = format!("{}/{key}: {fault}", site.name());
            if self.tracker().source.is_new_fault(&fault) {
                reply.log(&fault);
            }
        };
        let Some(slug) = section else {
            self.saw(request, page_digest(&bytes, &facts), start);
            return Ok(whole(bytes, &fault).into());
        };
        let text = text_of(&bytes, facts.size > max).ok_or(ReadError::NotFound)?;
        let page = DocsPage::parse(text);
        page.fault.iter().for_each(|what| fault(what));
        let found = page.section(slug).ok_or(ReadError::NotFound)?;
        // The rules of the guard are for the fragment as it is listed.
        if found.slug != slug && !request.permits(&DocsSite::section_uri(&site.page_uri(key), &found.slug)) {
            return Err(ReadError::NotFound);
        }
        let own = text.get(found.bytes.clone()).unwrap_or_default();
        reply.facts(own.len() as u64)?;
        self.saw(request, digest(own.as_bytes()), start);
        Ok(markdown(own.to_owned(), &page).into())
    }

    /// A page of that name, if it exists; else a search.
    fn search_or_page(
        &self,
        site: &DocsSite,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let query = request.param("query").unwrap_or_default();
        // As it is normal: an encoded `#` belongs to a name.
        let normal = uri::normalize(request.uri(), uri::MAX_URI).map_err(|_| ReadError::InvalidUri)?;
        let rest = normal.strip_prefix(&*site.uri).unwrap_or_default();
        let (page, section) = rest.split_once('#').map_or((rest, None), |(page, slug)| (page, Some(slug)));
        let page = mcp_resources_provider_kit::path::decoded(page.split('?').next().unwrap_or_default())
            .unwrap_or_default();
        if site.locate(&page).is_some() {
            let section = section.and_then(mcp_resources_provider_kit::path::decoded);
            return match self.page(site, &page, section.as_deref(), request, reply) {
                Err(ReadError::NotFound) if section.is_none() => {
                    self.search_text(site, query, request, reply)
                }
                answer => answer,
            };
        }
        self.search_text(site, query, request, reply)
    }

    fn search_text(
        &self,
        site: &DocsSite,
        query: &str,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        self.search(site, &SearchRequest::parse("query", Some(query), None, None)?, request, reply)
    }

    fn search(
        &self,
        site: &DocsSite,
        wanted: &SearchRequest,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let tracker = self.tracker();
        let start = tracker.start_read();
        let snapshot = self.snapshot(site, &|| reply.is_cancelled(), &|what| reply.log(what))?;
        let text = search::search(&tracker.source, site, wanted, &snapshot, &|uri| request.permits(uri))
            .map_err(|reason| {
                reply.log(&reason);
                ReadError::Failed
            })?;
        self.saw(request, snapshot.generation(), start);
        Ok(unless_whole(&snapshot, Contents::text(text).with_mime_type(JSON)).into())
    }

    /// The list of a site's pages.
    fn contents(
        &self,
        site: &DocsSite,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let start = self.tracker().start_read();
        let snapshot = self.snapshot(site, &|| reply.is_cancelled(), &|what| reply.log(what))?;
        let text = list::contents(site, &snapshot, &|uri| request.permits(uri));
        self.saw(request, snapshot.lists(), start);
        Ok(unless_whole(&snapshot, Contents::text(text).with_mime_type(MARKDOWN)).into())
    }

    /// The current snapshot of a site whose folder exists.
    fn snapshot(
        &self,
        site: &DocsSite,
        is_cancelled: &dyn Fn() -> bool,
        log: &dyn Fn(&str),
    ) -> Result<Arc<SiteSnapshot>, ReadError> {
        let snapshots = self.snapshots(is_cancelled).ok_or(ReadError::Failed)?;
        let at = self.sites.iter().position(|other| std::ptr::eq(&**other, site));
        let snapshot = at.and_then(|at| snapshots.get(at)).ok_or(ReadError::Failed)?;
        if !snapshot.is_there && snapshot.is_whole {
            log(&format!("the site {:?} cannot be opened: {}", site.name(), site.folder.dir().display()));
            return Err(ReadError::Failed);
        }
        Ok(snapshot.clone())
    }

    /// The client has read this: what differs from it later is a change.
    fn saw(&self, request: &Read, digest: u64, start: ReadStart) {
        self.tracker().saw_any_spelling(request.uri(), digest, start);
    }
}

/// A whole page.
fn whole(bytes: Vec<u8>, fault: &dyn Fn(&str)) -> Contents<'static> {
    match String::from_utf8(bytes) {
        Ok(text) => {
            let page = DocsPage::parse(&text);
            page.fault.iter().for_each(|what| fault(what));
            markdown(text, &page)
        }
        Err(error) => {
            fault(NO_TEXT);
            Contents::blob(error.into_bytes()).with_mime_type("application/octet-stream")
        }
    }
}

/// A page or a part of it.
fn markdown(text: String, page: &DocsPage) -> Contents<'static> {
    let contents = Contents::text(text).with_mime_type(MARKDOWN);
    match list::meta(&page.description) {
        Some(meta) => contents.with_meta(meta),
        None => contents,
    }
}

/// Says that pages are missing, if they are not all indexed yet.
fn unless_whole<'a>(snapshot: &SiteSnapshot, contents: Contents<'a>) -> Contents<'a> {
    if snapshot.is_whole { contents } else { contents.with_meta(r#"{"incomplete":true}"#) }
}

/// A query may be any text.
fn any_text(query: &str) -> TemplateOptions {
    let chars = if query == "query" { Chars::Any } else { Chars::Operator };
    let any = VariableOptions { policy: Some(ValuePolicy::Any), chars, ..VariableOptions::default() };
    TemplateOptions::default().variable(query, any)
}
