//! The four lists: `resources/list`, `resources/templates/list`, `tools/list` and `prompts/list`.
//!
//! A page has items of the catalogue first. Among resources, those of templates with a `.list` callback follow in the order
//! of their texts. Those of sources without a template come last, in the order of their keys, until the page is full.

use super::access::NextQuestion;
use super::answer::{Answer, Item, ListPage};
use super::contents;
use super::event::{Event, ListCaller, ListRequest, OwnedCaller, RequestToken};
use super::reply::{ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::response::{self, ResponseWriter};
use super::{Connection, OutcomeStatus, RequestOutcome};
use crate::catalog::{
    Catalog, CatalogPage, CatalogRoute, Cursor, CursorPosition, HandlerId, ListKind, ListedTemplate, Lister,
    PromptEntry, ResourceEntry, SourceKey, ToolEntry, check_foreign, check_resource, check_uri,
};
use crate::engine::{AccessRound, AccessView, Engine, ListedItems};
use crate::error::{ReadError, Shown};
use crate::guard::RateClass;
use crate::jsonrpc::object;
use crate::limits::Limits;
use crate::meta;
use crate::now::Now;
use crate::principal::Principal;
use crate::resource::{CacheHint, CacheScope};
use crate::version::{INVALID_PARAMS, ProtocolMethod, Revision};
use mcp_resources_template::UriTemplate;
use std::collections::HashSet;
use std::sync::Arc;

impl Connection {
    pub(super) fn list<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        kind: ListKind,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let rest = match self.list_begin(request, kind, out) {
            Ok(rest) => rest,
            Err(refused) => return *refused,
        };
        let revision = request.terms.revision;
        let room = match self.room(request, None, out) {
            Ok(room) => room,
            Err(refused) => return *refused,
        };
        let mut walk = ListWalk::new(rest, revision, request.principal.clone());
        let (step, questions) = {
            let viewer = walk.viewer.clone();
            let answers = self.access.answers.as_deref();
            let mut view = self.engine.access_view(&viewer, answers, request.now);
            (walk.advance(&self.engine, &mut view, request.now), view.into_questions())
        };
        if !questions.is_empty() {
            let method = match kind {
                ListKind::Resources => ProtocolMethod::List,
                ListKind::Templates => ProtocolMethod::ListTemplates,
                ListKind::Tools => ProtocolMethod::ListTools,
                ListKind::Prompts => ProtocolMethod::ListPrompts,
            };
            drop(room);
            return self.hold(request, method, questions, out);
        }
        match step {
            ListStep::Done { next } => {
                walk.write_page(&self.response_writer(request), &self.engine, next.as_deref(), out);
                RequestOutcome::answered()
            }
            ListStep::Ask(question) => {
                let timeout = self.engine.limits().read_timeout;
                let caller = Arc::new(request.caller().into());
                let pending = PendingRequest {
                    task: ReplyTask::List(Box::new(ListTask { walk, caller })),
                    timeout,
                    uri: None,
                    flight: None,
                };
                let token = self.insert(request, room, pending);
                let list = question.event(token, ListCaller::Message(request.caller()));
                RequestOutcome::with_one(OutcomeStatus::Pending, list)
            }
        }
    }
}

impl Connection {
    /// The position in the list `kind` that the request asks for, once its rate is counted.
    pub(super) fn list_begin<'m>(
        &self,
        request: &Request<'_, '_>,
        kind: ListKind,
        out: &mut Vec<u8>,
    ) -> Result<Cursor, Box<RequestOutcome<'m>>> {
        let refuse = |why: &str, out: &mut Vec<u8>| Box::new(self.refuse(request, INVALID_PARAMS, why, out));
        let Ok(cursor) = request.optional_text("cursor") else {
            return Err(refuse("Invalid params: cursor must be a string", out));
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::List, None, out) {
            return Err(Box::new(refused));
        }
        match cursor {
            None => {
                let shared = self.engine.shares_lists();
                Ok(Cursor { list: kind, position: CursorPosition::Catalog, after: String::new(), shared })
            }
            Some(text) => self
                .engine
                .open_cursor(kind, &text, request.principal)
                .ok_or_else(|| refuse("Invalid params: unknown cursor", out)),
        }
    }
}

/// A list whose callback was called.
#[derive(Debug)]
pub(super) struct ListTask {
    pub(super) walk: ListWalk,
    /// The sender of the request: the next callback is called after the message is gone.
    pub(super) caller: Arc<OwnedCaller>,
}

/// The state of building one page.
#[derive(Debug)]
pub(super) struct ListWalk {
    revision: Revision,
    principal: Arc<Principal>,
    /// The principal whose rights decide the contents of the list. For pages that clients may share it is a principal
    /// without scopes.
    viewer: Arc<Principal>,
    /// [`Engine::lists_generation`] before the callback was called.
    generation: u64,
    /// The position at which the rest of the list begins.
    rest: Cursor,
    /// The items so far, encoded and separated by commas.
    items: Vec<u8>,
    count: usize,
    /// The names of parts that could not be listed.
    missing: Vec<String>,
    /// The page of a callback with items that handlers decide about.
    withheld: Option<ListPage>,
    round: AccessRound,
}

/// The arguments for a callback.
#[derive(Debug)]
pub(super) struct ListQuestion {
    handler: HandlerId,
    cursor: Option<String>,
    /// Maximum number of items to return.
    limit: usize,
    principal: Arc<Principal>,
}

/// The next step in building a page.
#[derive(Debug)]
enum ListStep {
    /// Call a callback.
    Ask(ListQuestion),
    /// The page is complete; `next` is the sealed cursor of the next one.
    Done { next: Option<String> },
}

/// The items of a callback without pages, in the order of canonical URIs.
pub(crate) type Listed = Vec<(Arc<str>, Item)>;

impl ListWalk {
    fn new(rest: Cursor, revision: Revision, principal: Arc<Principal>) -> Self {
        let viewer = if rest.shared { Principal::local() } else { principal.clone() };
        let items = Vec::new();
        let missing = Vec::new();
        Self {
            revision,
            principal,
            viewer,
            generation: 0,
            rest,
            items,
            count: 0,
            missing,
            withheld: None,
            round: AccessRound::default(),
        }
    }

    /// Continues until the page is complete or a callback must be called.
    fn advance(&mut self, engine: &Engine, view: &mut AccessView<'_>, now: Now) -> ListStep {
        let catalog = engine.catalog();
        if self.rest.position == CursorPosition::Catalog {
            if self.take_catalog(&catalog, engine, view) {
                return self.done(engine, true);
            }
            if !self.enter(self.next_source(&catalog, engine, None)) {
                return self.done(engine, false);
            }
        }
        loop {
            let Some((source, cursor)) = self.source(&catalog, engine) else {
                return self.done(engine, false);
            };
            let room = engine.limits().page.saturating_sub(self.count);
            if room == 0 {
                return self.done(engine, true);
            }
            let key = source.key();
            let kept = if source.pages() { None } else { engine.kept_list(&key, &self.principal, now) };
            let Some(listed) = kept else {
                self.generation = engine.lists_generation();
                return ListStep::Ask(ListQuestion {
                    handler: source.handler(),
                    cursor,
                    limit: room,
                    principal: self.principal.clone(),
                });
            };
            if self.take_kept(&catalog, &listed, room) {
                return self.done(engine, true);
            }
            if !self.enter(self.next_source(&catalog, engine, Some(&key))) {
                return self.done(engine, false);
            }
        }
    }

    /// Adds the items of a callback and continues. Also returns a description of the callback's mistakes.
    fn take(
        &mut self,
        page: ListPage,
        engine: &Engine,
        now: Now,
    ) -> Result<(ListStep, Option<String>), ReadError> {
        let limit = engine.limits().list_source;
        if page.items.len() > limit {
            return Err(ReadError::SizeExceeded { limit: limit as u64, size: Some(page.items.len() as u64) });
        }
        let catalog = engine.catalog();
        let Some((source, _)) = self.source(&catalog, engine) else {
            return Ok((self.done(engine, false), None));
        };
        let viewer = self.viewer.clone();
        let answers = self.round.answers().clone();
        let mut view = engine.access_view(&viewer, Some(&answers), now);
        // Answers about access may change before a kept list is used.
        let is_whole = page.missing.is_empty() && !engine.has_access();
        let (listed, misuse) = match self.rest.list {
            ListKind::Resources => served_by(&catalog, source, page.items, engine, &mut view),
            list => described(list, source, page.items, engine, &viewer),
        };
        self.miss(page.missing);
        let key = source.key();
        if !source.pages() {
            let given = ListedItems { listed: Arc::new(sorted(listed)), generation: self.generation };
            // Parts that are missing now may be available for the next page.
            if is_whole {
                engine.keep_list(&key, &self.principal, &given, now);
            }
            // Use the returned list itself: it may not have been cached (`list_ttl` 0, or too large).
            if self.take_kept(&catalog, &given.listed, engine.limits().page.saturating_sub(self.count)) {
                return Ok((self.done(engine, true), misuse));
            }
        } else {
            let mut seen = HashSet::with_capacity(listed.len());
            for (_, item) in listed.iter().filter(|(uri, _)| seen.insert(uri)) {
                self.push(item);
            }
            if let Some(next) = page.next {
                let length = next.len();
                self.rest.position = CursorPosition::Source { source: key, cursor: Some(next) };
                let step = self.done(engine, true);
                let cut = matches!(step, ListStep::Done { next: None });
                return Ok((step, misuse.or_else(|| cut.then(|| too_long(source.name(), length, engine)))));
            }
        }
        let more = self.enter(self.next_source(&catalog, engine, Some(&key)));
        Ok((if more { self.advance(engine, &mut view, now) } else { self.done(engine, false) }, misuse))
    }

    /// Adds the items of a callback, and writes the page unless another callback must be called.
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (WrittenReply, Option<NextQuestion>) {
        let (page, unfit) = match (self.withheld.take(), answer) {
            (None, Answer::Listed(page)) => {
                self.ask_about(&page, &context.engine, now);
                (page, None)
            }
            (Some(page), answer) => (page, self.round.take(&context.engine, &self.principal, &answer, now)),
            (None, Answer::Failed(error)) => return (context.fail(error, out), None),
            (None, _) => return (context.wrong_sort(out), None),
        };
        if let Some(batch) = self.round.next() {
            self.withheld = Some(page);
            let written = WrittenReply { misuse: unfit, ..WrittenReply::default() };
            return (written, Some(NextQuestion::Access(batch)));
        }
        let (step, misuse) = match self.take(page, &context.engine, now) {
            Ok(taken) => taken,
            Err(error) => return (context.fail(error, out), None),
        };
        let written = WrittenReply { misuse: unfit.or(misuse), ..WrittenReply::default() };
        match step {
            ListStep::Ask(question) => (written, Some(NextQuestion::List(question))),
            ListStep::Done { next } => {
                self.write_page(&context.response_writer(), &context.engine, next.as_deref(), out);
                (written, None)
            }
        }
    }

    /// Collects the questions about the items of a callback.
    fn ask_about(&mut self, page: &ListPage, engine: &Engine, now: Now) {
        let limits = engine.limits();
        let is_asked = engine.has_access() && self.rest.list == ListKind::Resources;
        if !is_asked || page.items.len() > limits.list_source {
            return;
        }
        let answers = self.round.answers().clone();
        let mut view = engine.access_view(&self.viewer, Some(&answers), now);
        for item in &page.items {
            let _ = check_uri(item.uri(), limits).is_ok_and(|canonical| view.sees(&canonical));
        }
        self.round.add(engine, view.into_questions());
    }

    /// Writes the result.
    fn write_page(
        &self,
        response: &ResponseWriter<'_>,
        engine: &Engine,
        next: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let name = match self.rest.list {
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
        };
        let meta = self.missing_member();
        response.result(out, response::COMPLETE, &meta, |result| {
            let array = result.value(name);
            array.push(b'[');
            array.extend_from_slice(&self.items);
            array.push(b']');
            if let Some(next) = next {
                result.str("nextCursor", next);
            }
            // A client should soon retry a list with missing parts.
            let hint = if meta.is_empty() { engine.options().list_cache } else { CacheHint::default() };
            let scope = if self.rest.shared { hint.scope } else { CacheScope::Private };
            contents::hint(result, response, CacheHint { scope, ..hint });
        });
    }

    /// The member of `_meta` that names the missing parts; empty without any.
    fn missing_member(&self) -> String {
        if self.missing.is_empty() {
            return String::new();
        }
        let mut member = Vec::new();
        object(&mut member, |meta| {
            meta.array(meta::MISSING, |names| self.missing.iter().for_each(|name| names.str(name)));
        });
        response::members_of(&String::from_utf8_lossy(&member)).unwrap_or_default()
    }

    /// Adds names of missing parts, each once.
    fn miss(&mut self, names: Vec<String>) {
        for mut name in names {
            let end = (0..=LONGEST_MISSING).rev().find(|at| name.is_char_boundary(*at));
            name.truncate(end.unwrap_or_default());
            if self.missing.len() < MOST_MISSING && !self.missing.contains(&name) {
                self.missing.push(name);
            }
        }
    }

    /// Takes items from the catalogue; returns whether more are left.
    fn take_catalog(&mut self, catalog: &Catalog, engine: &Engine, view: &mut AccessView<'_>) -> bool {
        let page = CatalogPage::new(engine.limits(), self.revision.field_set());
        let after = Some(self.rest.after.as_str()).filter(|after| !after.is_empty());
        let viewer = &self.viewer;
        let all = !engine.restricts();
        let listed = match self.rest.list {
            ListKind::Templates => {
                let mut visible = |listed: ListedTemplate<'_>| all || engine.sees_listed(viewer, listed);
                catalog.list_templates(after, page, &mut visible, &mut self.items)
            }
            ListKind::Resources if all => catalog.list_all_resources(after, page, &mut self.items),
            ListKind::Resources => {
                let mut visible = |entry: &ResourceEntry| view.sees(&entry.canonical);
                catalog.list_resources(after, page, &mut visible, &mut self.items)
            }
            ListKind::Tools => {
                let page = CatalogPage::new(engine.limits(), self.revision.tool_fields());
                let guard = engine.guard();
                let mut visible = |entry: &ToolEntry| engine.sees_tool_in(catalog, &guard, viewer, entry);
                let mut view = |entry: &ToolEntry| engine.tool_view(catalog, !all, viewer, entry);
                catalog.list_tools(after, page, &mut visible, &mut view, &mut self.items)
            }
            ListKind::Prompts => {
                let mut visible = |entry: &PromptEntry| engine.sees_prompt(viewer, entry);
                catalog.list_prompts(after, page, &mut visible, &mut self.items)
            }
        };
        self.count += listed.count;
        if let Some(last) = listed.last.filter(|_| listed.more) {
            self.rest.after = last.to_string();
        }
        listed.more
    }

    /// The source where the rest begins, with its cursor; the next source if it was removed.
    fn source<'c>(&mut self, catalog: &'c Catalog, engine: &Engine) -> Option<(Lister<'c>, Option<String>)> {
        let CursorPosition::Source { source, cursor } = &self.rest.position else { return None };
        let list = self.rest.list;
        let is_seen =
            |lister: &Lister<'_>| lister.list() == list && engine.sees_lister(&self.viewer, *lister);
        let own = catalog.lister(source).filter(is_seen);
        if let Some(lister) = own {
            return Some((lister, cursor.clone()));
        }
        let next = self.next_source(catalog, engine, Some(source))?;
        self.enter(Some(next));
        Some((next, None))
    }

    /// The source after the given one. Skips those of templates that the principal may not know about.
    fn next_source<'c>(
        &self,
        catalog: &'c Catalog,
        engine: &Engine,
        after: Option<&SourceKey>,
    ) -> Option<Lister<'c>> {
        catalog.listers_after(self.rest.list, after).find(|lister| engine.sees_lister(&self.viewer, *lister))
    }

    /// Continues with this source; returns `false` if there is none.
    fn enter(&mut self, source: Option<Lister<'_>>) -> bool {
        let Some(source) = source else { return false };
        self.rest.position = CursorPosition::Source { source: source.key(), cursor: None };
        self.rest.after.clear();
        true
    }

    /// Takes items of a cached list; returns whether more are left. Items registered since then are listed with the
    /// catalogue.
    fn take_kept(&mut self, catalog: &Catalog, listed: &Listed, room: usize) -> bool {
        let from = listed.partition_point(|(uri, _)| **uri <= *self.rest.after);
        let rest = listed.get(from..).unwrap_or_default();
        let mut last: Option<&Arc<str>> = None;
        let is_new = |(uri, _): &&(Arc<str>, Item)| {
            self.rest.list != ListKind::Resources || catalog.resource(uri).is_none()
        };
        let new: Vec<_> = rest.iter().filter(is_new).collect();
        for (at, (uri, item)) in new.into_iter().enumerate() {
            if at == room {
                self.rest.after = last.map_or_else(String::new, |last| last.to_string());
                return true;
            }
            self.push(item);
            last = Some(uri);
        }
        false
    }

    fn push(&mut self, item: &Item) {
        if self.count > 0 {
            self.items.push(b',');
        }
        item.encode(self.revision.field_set(), &mut self.items);
        self.count += 1;
    }

    fn done(&self, engine: &Engine, more: bool) -> ListStep {
        ListStep::Done { next: more.then(|| engine.seal_cursor(&self.rest, &self.principal)).flatten() }
    }
}

impl ListQuestion {
    pub(super) fn from_request(request: ListRequest<'_>) -> Self {
        let ListRequest { handler, cursor, limit, principal, .. } = request;
        Self { handler, cursor, limit, principal }
    }

    pub(super) fn event<'m>(self, token: RequestToken, caller: ListCaller<'m>) -> Event<'m> {
        let Self { handler, cursor, limit, principal } = self;
        Event::List(ListRequest { token, handler, cursor, limit, principal, caller })
    }
}

/// The log message for a cursor that is too long to be sent.
fn too_long(source: &str, length: usize, engine: &Engine) -> String {
    let max = engine.limits().state;
    format!(
        "the list of {} ends early: its cursor of {length} bytes, sealed, is longer than the limit `state` of {max} bytes; \
         return a shorter cursor or raise the limit",
        Shown(source)
    )
}

/// The number of left-out items that the log names.
const NAMED: usize = 3;
/// The number of missing parts that one page names, and the maximum length of a name in bytes.
const MOST_MISSING: usize = 100;
const LONGEST_MISSING: usize = 256;

/// Keeps the items that this source may list and `viewer` may see. Invalid items, and items that no read would find,
/// are left out and logged: one bad item must not hide all others.
fn served_by(
    catalog: &Catalog,
    source: Lister<'_>,
    items: Vec<Item>,
    engine: &Engine,
    view: &mut AccessView<'_>,
) -> (Listed, Option<String>) {
    let total = items.len();
    let mut listed = Vec::with_capacity(total);
    let mut bad = BadItems::default();
    for (index, mut item) in items.into_iter().enumerate() {
        match check_item(&mut item, engine.limits()) {
            Ok(canonical) => {
                let route = catalog.route(&canonical);
                match &route {
                    CatalogRoute::None { .. } => {
                        bad.add(index, || {
                            format!("{}: no resource or template has this URI", Shown(item.uri()))
                        });
                    }
                    CatalogRoute::Rejected { template, variable, .. } => bad.add(index, || {
                        let uri = Shown(item.uri());
                        let text = template.parsed.as_str();
                        format!("{uri}: {} refuses the value of {{{variable}}}", Shown(text))
                    }),
                    CatalogRoute::Template(template, params) => {
                        if let Err(error) = template.check_spelling(params) {
                            bad.add(index, || format!("{}: {error}", Shown(item.uri())));
                            continue;
                        }
                    }
                    _ => {}
                }
                // Another template may serve the item than the one that lists it, and may require other scopes.
                if source.owns(&route) && view.sees_routed(&route, &canonical) {
                    complete(&mut item, source, &route);
                    listed.push((canonical.clone(), item));
                }
            }
            Err(reason) => bad.add(index, || reason),
        }
    }
    (listed, bad.message(source.name(), total))
}

/// As [`served_by`], for items of the other three lists: other servers describe them, and `viewer` must be allowed to know
/// of their names.
fn described(
    list: ListKind,
    source: Lister<'_>,
    items: Vec<Item>,
    engine: &Engine,
    viewer: &Principal,
) -> (Listed, Option<String>) {
    let total = items.len();
    let mut listed = Vec::with_capacity(total);
    let mut bad = BadItems::default();
    let guard = engine.guard();
    for (index, item) in items.into_iter().enumerate() {
        let Item::Foreign { uri, json } = item else {
            bad.add(index, || "it is a resource".to_owned());
            continue;
        };
        let (id, is_seen) = match list {
            ListKind::Tools => ("name", guard.permits_tool(viewer, &uri)),
            ListKind::Prompts => ("name", guard.permits_prompt(viewer, &uri)),
            ListKind::Resources | ListKind::Templates => (
                "uriTemplate",
                guard.is_open_to(viewer)
                    || UriTemplate::parse(&uri).is_ok_and(|template| guard.knows_template(viewer, &template)),
            ),
        };
        match check_foreign(json, id, &uri, engine.limits()) {
            Ok(json) if is_seen => listed.push((Arc::from(uri.as_str()), Item::Foreign { uri, json })),
            Ok(_) => {}
            Err(reason) => bad.add(index, || format!("{}: {reason}", Shown(&uri))),
        }
    }
    (listed, bad.message(source.name(), total))
}

/// Fills fields of an item that the callback left empty with those of its template.
fn complete(item: &mut Item, source: Lister<'_>, route: &CatalogRoute<'_, '_>) {
    if let (Item::Resource(resource), Lister::Template(_), CatalogRoute::Template(served, _)) =
        (item, source, route)
    {
        resource.details.complete_from(&served.template.details);
    }
}

/// Normalizes an item for listing and returns its canonical URI, or the reason for which it is invalid.
fn check_item(item: &mut Item, limits: &Limits) -> Result<Arc<str>, String> {
    match item {
        Item::Resource(resource) => check_resource(resource, limits).map_err(|error| error.to_string()),
        Item::Foreign { uri, json } => {
            let canonical = check_uri(uri, limits).map_err(|error| error.to_string())?;
            *json = check_foreign(std::mem::take(json), "uri", uri, limits)
                .map_err(|reason| format!("{}: {reason}", Shown(uri)))?;
            Ok(canonical)
        }
    }
}

/// The items of a callback that were left out.
#[derive(Default)]
struct BadItems {
    named: Vec<String>,
    count: usize,
}

impl BadItems {
    fn add(&mut self, index: usize, why: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(format!("item {index}: {}", why()));
        }
    }

    fn message(self, source: &str, total: usize) -> Option<String> {
        let more = if self.count > self.named.len() { "; …" } else { "" };
        let named = self.named.join("; ");
        let count = self.count;
        let text =
            || format!("the list of {} leaves out {count} of {total} items: {named}{more}", Shown(source));
        (count > 0).then(text)
    }
}

fn sorted(mut listed: Listed) -> Listed {
    listed.sort_by(|(one, _), (other, _)| one.cmp(other));
    listed.dedup_by(|(one, _), (other, _)| one == other);
    listed
}
