//! `resources/list` and `resources/templates/list` (R-058 … … R-105).
//!
//! A page holds the items of the catalogue first, then what the `.list` callbacks of the templates give, in the order of
//! the templates' texts, until it is full.

use super::answer::{Answer, ListPage};
use super::contents;
use super::event::{Caller, Event, ListRequest, RequestToken};
use super::reply::{Context, Task, Written};
use super::request::{Pending, Request};
use super::words::Wording;
use super::{Connection, Outcome, Status};
use crate::catalog::{
    Catalog, Cursor, HandlerId, ListKind, Page, Position, ResourceEntry, Route, TemplateEntry,
};
use crate::catalog::{check_resource, encode_item};
use crate::engine::{Engine, Given};
use crate::error::{ReadError, Shown};
use crate::guard::RateClass;
use crate::now::Now;
use crate::principal::Principal;
use crate::resource::{CacheHint, CacheScope, Resource};
use crate::version::{FieldSet, INVALID_PARAMS};
use std::collections::HashSet;
use std::sync::Arc;

impl Connection {
    pub(super) fn list<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        kind: ListKind,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let Ok(cursor) = request.optional_text("cursor") else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: cursor must be a string", out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::List, None, out) {
            return refused;
        }
        let rest = match cursor {
            None => {
                let shared = self.engine.shares_lists();
                Cursor { list: kind, position: Position::Catalog, after: String::new(), shared }
            }
            Some(text) => match self.engine.open_cursor(kind, &text, request.principal) {
                Some(cursor) => cursor,
                None => {
                    return self.refuse(request, INVALID_PARAMS, "Invalid params: unknown cursor", out);
                }
            },
        };
        let fields = request.terms.revision.field_set();
        let room = match self.room(request, None, out) {
            Ok(room) => room,
            Err(refused) => return *refused,
        };
        let mut walk = ListWalk::new(rest, fields, request.principal.clone());
        match walk.advance(&self.engine, request.now) {
            Step::Done { next } => {
                walk.write_page(&self.wording(request), &self.engine, next.as_deref(), out);
                Outcome::answered()
            }
            Step::Ask(question) => {
                let timeout = self.engine.limits().read_timeout;
                let pending = Pending { task: Task::List(Box::new(walk)), timeout, uri: None, flight: None };
                let token = self.insert(request, room, pending);
                let list = question.event(token, Some(request.caller()));
                Outcome::with_one(Status::Pending, list)
            }
        }
    }
}

/// The walk over one page.
#[derive(Debug)]
pub(super) struct ListWalk {
    fields: FieldSet,
    principal: Arc<Principal>,
    /// Whose eyes decide what is listed: where anybody may keep the pages, those of one without scopes.
    viewer: Arc<Principal>,
    /// [`Engine::lists_generation`] before a callback was asked.
    asked: u64,
    /// Where the rest begins.
    rest: Cursor,
    /// The items so far, encoded, with commas between them.
    items: Vec<u8>,
    count: usize,
}

/// What to ask a callback.
#[derive(Debug)]
pub(super) struct ListQuestion {
    handler: HandlerId,
    cursor: Option<String>,
    /// The most items that it may give.
    limit: usize,
}

/// What to do next.
#[derive(Debug)]
enum Step {
    /// A callback must be asked.
    Ask(ListQuestion),
    /// The page is complete; `next` is the sealed cursor of the next one.
    Done { next: Option<String> },
}

/// What a callback without paging gave, in the order of canonical URIs.
pub(crate) type Listed = Vec<(Arc<str>, Resource)>;

impl ListWalk {
    fn new(rest: Cursor, fields: FieldSet, principal: Arc<Principal>) -> Self {
        let viewer = if rest.shared { Principal::local() } else { principal.clone() };
        Self { fields, principal, viewer, asked: 0, rest, items: Vec::new(), count: 0 }
    }

    /// Goes on until the page is complete or a callback must be asked.
    fn advance(&mut self, engine: &Engine, now: Now) -> Step {
        let catalog = engine.catalog();
        if self.rest.position == Position::Catalog {
            if self.take_catalog(&catalog, engine) {
                return self.done(engine, true);
            }
            if self.rest.list == ListKind::Templates || !self.enter(self.next_source(&catalog, engine, None))
            {
                return self.done(engine, false);
            }
        }
        loop {
            let Some((entry, cursor)) = self.source(&catalog, engine) else {
                return self.done(engine, false);
            };
            let room = engine.limits().page.saturating_sub(self.count);
            if room == 0 {
                return self.done(engine, true);
            }
            let pages = entry.template.list.is_some_and(|list| list.pages);
            let kept = if pages { None } else { engine.kept_list(entry.handler, &self.principal, now) };
            let Some(listed) = kept else {
                self.asked = engine.lists_generation();
                return Step::Ask(ListQuestion { handler: entry.handler, cursor, limit: room });
            };
            if self.take_kept(&catalog, &listed, room) {
                return self.done(engine, true);
            }
            let text = entry.parsed.as_str();
            if !self.enter(self.next_source(&catalog, engine, Some(text))) {
                return self.done(engine, false);
            }
        }
    }

    /// Takes what a callback gave and goes on. Also returns what the author did wrong.
    fn take(
        &mut self,
        page: ListPage,
        engine: &Engine,
        now: Now,
    ) -> Result<(Step, Option<String>), ReadError> {
        let limit = engine.limits().list_source;
        if page.items.len() > limit {
            return Err(ReadError::SizeExceeded { limit: limit as u64, size: Some(page.items.len() as u64) });
        }
        let catalog = engine.catalog();
        let Some((entry, _)) = self.source(&catalog, engine) else {
            return Ok((self.done(engine, false), None));
        };
        let (listed, misuse) = served_by(&catalog, entry, page.items, engine, &self.viewer);
        let text = entry.parsed.as_str();
        if !entry.template.list.is_some_and(|list| list.pages) {
            let given = Given { listed: Arc::new(sorted(listed)), generation: self.asked };
            engine.keep_list(entry.handler, &self.principal, &given, now);
            // Use the answer itself: it may not have been stored (`list_ttl` 0, or too large).
            if self.take_kept(&catalog, &given.listed, engine.limits().page.saturating_sub(self.count)) {
                return Ok((self.done(engine, true), misuse));
            }
        } else {
            let mut seen = HashSet::with_capacity(listed.len());
            for (_, resource) in listed.iter().filter(|(uri, _)| seen.insert(uri)) {
                self.push(resource);
            }
            if let Some(next) = page.next {
                let length = next.len();
                self.rest.position = Position::Source { template: text.to_owned(), cursor: Some(next) };
                let step = self.done(engine, true);
                let cut = matches!(step, Step::Done { next: None });
                return Ok((step, misuse.or_else(|| cut.then(|| too_long(text, length, engine)))));
            }
        }
        let more = self.enter(self.next_source(&catalog, engine, Some(text)));
        Ok((if more { self.advance(engine, now) } else { self.done(engine, false) }, misuse))
    }

    /// Takes what a callback gave, and completes the page unless another callback must be asked.
    pub(super) fn write(
        &mut self,
        context: &Context,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (Written, Option<ListQuestion>) {
        let page = match answer {
            Answer::Listed(page) => page,
            Answer::Failed(error) => return (context.fail(error, out), None),
            _ => return (context.wrong_sort(out), None),
        };
        let (step, misuse) = match self.take(page, &context.engine, now) {
            Ok(taken) => taken,
            Err(error) => return (context.fail(error, out), None),
        };
        let written = Written { misuse, ..Written::default() };
        match step {
            Step::Ask(question) => (written, Some(question)),
            Step::Done { next } => {
                self.write_page(&context.wording(), &context.engine, next.as_deref(), out);
                (written, None)
            }
        }
    }

    /// The result.
    fn write_page(&self, wording: &Wording<'_>, engine: &Engine, next: Option<&str>, out: &mut Vec<u8>) {
        let name = match self.rest.list {
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
        };
        wording.complete(out, |result| {
            let array = result.value(name);
            array.push(b'[');
            array.extend_from_slice(&self.items);
            array.push(b']');
            if let Some(next) = next {
                result.str("nextCursor", next);
            }
            let hint = engine.options().list_cache;
            let scope = if self.rest.shared { hint.scope } else { CacheScope::Private };
            contents::hint(result, wording, CacheHint { scope, ..hint });
        });
    }

    /// Takes from the catalogue; `true` if more of it is left.
    fn take_catalog(&mut self, catalog: &Catalog, engine: &Engine) -> bool {
        let page = Page::new(engine.limits(), self.fields);
        let after = Some(self.rest.after.as_str()).filter(|after| !after.is_empty());
        let (viewer, all) = (&self.viewer, !engine.restricts());
        let listed = match self.rest.list {
            ListKind::Resources => {
                let mut visible = |entry: &ResourceEntry| all || engine.sees(viewer, &entry.canonical);
                catalog.list_resources(after, page, &mut visible, &mut self.items)
            }
            ListKind::Templates => {
                let mut visible = |entry: &TemplateEntry| all || engine.sees_template(viewer, entry);
                catalog.list_templates(after, page, &mut visible, &mut self.items)
            }
        };
        self.count += listed.count;
        if let Some(last) = listed.last.filter(|_| listed.more) {
            self.rest.after = last.to_string();
        }
        listed.more
    }

    /// The callback where the rest begins, or the next one if it is gone; with its own cursor.
    fn source<'c>(
        &mut self,
        catalog: &'c Catalog,
        engine: &Engine,
    ) -> Option<(&'c Arc<TemplateEntry>, Option<String>)> {
        let Position::Source { template, cursor } = &self.rest.position else { return None };
        let lists = |entry: &&Arc<TemplateEntry>| {
            entry.template.list.is_some() && engine.sees_template(&self.viewer, entry)
        };
        if let Some(entry) = catalog.template_by_text(template).filter(lists) {
            return Some((entry, cursor.clone()));
        }
        let next = self.next_source(catalog, engine, Some(template))?;
        self.enter(Some(next));
        Some((next, None))
    }

    /// The callback after the template with this text; those of templates that the principal may not know of are never
    /// asked.
    fn next_source<'c>(
        &self,
        catalog: &'c Catalog,
        engine: &Engine,
        after: Option<&str>,
    ) -> Option<&'c Arc<TemplateEntry>> {
        catalog.list_sources_after(after).find(|entry| engine.sees_template(&self.viewer, entry))
    }

    /// The rest begins with this callback; `false` if there is none.
    fn enter(&mut self, source: Option<&Arc<TemplateEntry>>) -> bool {
        let Some(entry) = source else { return false };
        self.rest.position = Position::Source { template: entry.parsed.as_str().to_owned(), cursor: None };
        self.rest.after.clear();
        true
    }

    /// Takes from what a callback gave; `true` if more of it is left. What has been registered since is in the catalogue's
    /// part of the list.
    fn take_kept(&mut self, catalog: &Catalog, listed: &Listed, room: usize) -> bool {
        let from = listed.partition_point(|(uri, _)| **uri <= *self.rest.after);
        let rest = listed.get(from..).unwrap_or_default();
        let mut last: Option<&Arc<str>> = None;
        for (at, (uri, resource)) in
            rest.iter().filter(|(uri, _)| catalog.resource(uri).is_none()).enumerate()
        {
            if at == room {
                self.rest.after = last.map_or_else(String::new, |last| last.to_string());
                return true;
            }
            self.push(resource);
            last = Some(uri);
        }
        false
    }

    fn push(&mut self, resource: &Resource) {
        if self.count > 0 {
            self.items.push(b',');
        }
        encode_item(resource, self.fields, &mut self.items);
        self.count += 1;
    }

    fn done(&self, engine: &Engine, more: bool) -> Step {
        Step::Done { next: more.then(|| engine.seal_cursor(&self.rest, &self.principal)).flatten() }
    }
}

impl ListQuestion {
    pub(super) fn event<'m>(self, token: RequestToken, caller: Option<Caller<'m>>) -> Event<'m> {
        let Self { handler, cursor, limit } = self;
        Event::List(ListRequest { token, handler, cursor, limit, caller })
    }
}

/// The error that is logged for a cursor that cannot be sent.
fn too_long(template: &str, length: usize, engine: &Engine) -> String {
    let most = engine.limits().state;
    format!(
        "the list of {} ends early: its cursor of {length} bytes, sealed, is longer than the limit `state` of {most} bytes; \
         return a shorter cursor or raise the limit",
        Shown(template)
    )
}

/// How many of the items that are left out are named in the log.
const NAMED: usize = 3;

/// Keeps the items that a read would take to this very template, and that `viewer` may see. An item that is not
/// well-formed, or that no read would find, is left out and named in the log: one bad row must not hide all others.
fn served_by(
    catalog: &Catalog,
    entry: &TemplateEntry,
    items: Vec<Resource>,
    engine: &Engine,
    viewer: &Principal,
) -> (Listed, Option<String>) {
    let total = items.len();
    let mut listed = Vec::with_capacity(total);
    let mut bad = BadItems::default();
    for (index, mut resource) in items.into_iter().enumerate() {
        match check_resource(&mut resource, engine.limits()) {
            Ok(canonical) => {
                let route = catalog.route(&canonical);
                if matches!(route, Route::None { .. }) {
                    bad.add(index, || {
                        format!("{}: no resource or template has this URI", Shown(&resource.uri))
                    });
                }
                let is_own = matches!(route, Route::Template(served, _) if served.handler == entry.handler);
                if is_own && engine.guard().permits(viewer, &canonical) {
                    listed.push((canonical.clone(), resource));
                }
            }
            Err(error) => bad.add(index, || error.to_string()),
        }
    }
    (listed, bad.message(entry.parsed.as_str(), total))
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

    fn message(self, template: &str, total: usize) -> Option<String> {
        let more = if self.count > self.named.len() { "; …" } else { "" };
        let named = self.named.join("; ");
        let count = self.count;
        let text =
            || format!("the list of {} leaves out {count} of {total} items: {named}{more}", Shown(template));
        (count > 0).then(text)
    }
}

fn sorted(mut listed: Listed) -> Listed {
    listed.sort_by(|(one, _), (other, _)| one.cmp(other));
    listed.dedup_by(|(one, _), (other, _)| one == other);
    listed
}
