//! The world of one agent: which servers it has, which of their resources and tools, and under which names.
//!
//! ```text
//!   list      the servers in the order of their names; the first pages of all begin at once, and share one deadline
//!   read      the server that is known to have the URI, or whose prefix it has, or whose template matches; then the others
//!   call      the server whose tool has this name here
//! ```
//!
//! Law: every URI is checked against what the agent may see *of that server*, before it is asked and in what it answers.
//! What an agent may not have gets the answer of what does not exist.

use crate::names::{NamedRoutes, NamingServer, ServerPrefixes};
use crate::owners::{UriOwners, canonical};
use crate::recent::RecentTable;
use crate::server::{PageResult, UpstreamError, UpstreamServer, lock};
use crate::table::NamedTable;
use crate::walk::WalkCursor;
use crate::wire::{self, ForeignItem, PassedTerms, ReadInput};
use mcp_resources_client::{ClientError, Failure};
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::client::Access;
use mcp_resources_engine::connection::{InputRequired, Item, ListPage, RawResult, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::guard::Glob;
use mcp_resources_engine::resource::{CacheHint, CacheScope};
use mcp_resources_engine::version::{Answered, INTERNAL_ERROR, INVALID_PARAMS, Meaning};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use xxhash_rust::xxh3::xxh3_64;

/// The time for a page of a list; a server that needs longer is named as missing.
pub(crate) const LIST: Duration = Duration::from_millis(2_000);
/// The time for which a server that did not list is not asked for its list on behalf of another one's names.
const UNSEEN: Duration = Duration::from_secs(30);
/// Most states of unfinished calls that are known.
const MOST_STATES: usize = 10_000;
/// Most pages of an earlier server that are read to see which URIs it has.
const MOST_EARLIER: usize = 1_000;

/// A server as an agent has it.
#[derive(Debug)]
pub(crate) struct ViewServer {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) access: Access,
    /// Whether it may see any resource.
    pub(crate) has_resources: bool,
    /// The names of its tools and prompts; `None` for all.
    pub(crate) tools: Option<Vec<Glob>>,
    /// The prefix in the configuration.
    pub(crate) prefix: Option<String>,
}

/// The servers of one agent.
#[derive(Debug)]
pub(crate) struct UpstreamView {
    pub(crate) servers: Vec<ViewServer>,
    prefixes: ServerPrefixes,
    pub(crate) owners: Mutex<UriOwners>,
    /// The servers of which the whole list was seen.
    pub(crate) walked: Mutex<HashSet<usize>>,
    /// The servers of which it was not, and when.
    unseen: Mutex<HashMap<usize, Instant>>,
    /// The tools and the prompts, as they were last known.
    named: [Mutex<Arc<NamedRoutes>>; 2],
    /// Digests of the states that servers gave this agent for unfinished calls.
    pub(crate) states: Mutex<RecentTable<u64, ()>>,
}

/// A URI, and the server that may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTarget {
    pub(crate) server: usize,
    /// The URI there.
    pub(crate) uri: String,
}

/// The answer of a server to a read.
#[derive(Debug)]
pub(crate) enum ForeignRead {
    Contents(ReadResult<'static>),
    Input(InputRequired<'static>),
}

/// The client of a read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadTerms<'r> {
    /// Whether it speaks 2026-07-28.
    pub(crate) is_modern: bool,
    /// The `_meta` of its request.
    pub(crate) meta: Option<&'r str>,
    /// The server that has asked for input, and the client's answers.
    pub(crate) asker: Option<&'r str>,
    pub(crate) input: Option<&'r ReadInput>,
}

impl UpstreamView {
    pub(crate) fn new(servers: Vec<ViewServer>) -> Self {
        let names = servers.iter().map(|own| own.prefix.as_deref().unwrap_or(own.server.name()));
        let prefixes = ServerPrefixes::new(names);
        Self {
            servers,
            prefixes,
            owners: Mutex::new(UriOwners::new()),
            walked: Mutex::default(),
            unseen: Mutex::default(),
            named: [Mutex::default(), Mutex::default()],
            states: Mutex::new(RecentTable::new(MOST_STATES)),
        }
    }

    /// The number of a server of this agent.
    pub(crate) fn number_of(&self, server: &Arc<UpstreamServer>) -> Option<usize> {
        self.servers.iter().position(|own| Arc::ptr_eq(&own.server, server))
    }

    /// The URI here of a URI of a server. Notes that the server has it.
    pub(crate) fn shown(&self, server: usize, uri: &str) -> String {
        let has_prefix = self.servers.get(server).is_some_and(|own| own.prefix.is_some());
        match has_prefix || lock(&self.owners).claim(server, uri) {
            true => self.prefixes.with(server, uri),
            false => uri.to_owned(),
        }
    }

    /// The text here of a template of a server.
    pub(crate) fn shown_template(&self, server: usize, text: &str) -> String {
        let has = |earlier: &ViewServer| {
            earlier.prefix.is_none()
                && earlier.has_resources
                && earlier.access.reaches(text)
                && earlier.server.known_table(ListKind::Templates).is_some_and(|table| table.has(text))
        };
        let has_prefix = self.servers.get(server).is_some_and(|own| own.prefix.is_some());
        match has_prefix || self.servers.iter().take(server).any(has) {
            true => self.prefixes.with(server, text),
            false => text.to_owned(),
        }
    }

    /// The servers that may have a URI of a client, the likeliest first.
    pub(crate) fn targets(&self, uri: &str) -> Vec<UriTarget> {
        let mut targets: Vec<UriTarget> = Vec::new();
        if let Some(owner) = lock(&self.owners).owner(uri) {
            self.add_target(&mut targets, owner.server, &owner.spelling);
        }
        if let Some((server, uri)) = self.prefixes.split(uri) {
            let known = lock(&self.owners).owner(&uri).filter(|owner| owner.server == server);
            self.add_target(&mut targets, server, known.as_ref().map_or(&uri, |owner| &owner.spelling));
        }
        let plain = self.servers.iter().enumerate().filter(|(_, own)| own.prefix.is_none());
        let mut plain: Vec<usize> = plain.map(|(server, _)| server).collect();
        if targets.is_empty() && plain.len() > 1 {
            let is_other = |server: &usize| {
                let own = self.servers.get(*server);
                let table = own.and_then(|own| own.server.known_table(ListKind::Templates));
                table.is_none_or(|table| !table.matches(uri))
            };
            plain.sort_by_key(is_other);
        }
        plain.into_iter().for_each(|server| self.add_target(&mut targets, server, uri));
        targets
    }

    /// Adds a server that may be asked for a URI, if the agent may see that.
    fn add_target(&self, targets: &mut Vec<UriTarget>, server: usize, uri: &str) {
        let target = UriTarget { server, uri: uri.to_owned() };
        let own = self.servers.get(server).filter(|own| own.has_resources && own.access.allows(uri));
        if own.is_some() && !targets.contains(&target) {
            targets.push(target);
        }
    }

    /// Forgets which URIs a server has.
    pub(crate) fn forget(&self, server: usize) {
        lock(&self.owners).forget(server);
        lock(&self.walked).remove(&server);
    }
}

/// Resources.
impl UpstreamView {
    /// A page of the resources of all servers.
    pub(crate) async fn list(&self, cursor: Option<&str>, limit: usize) -> Result<ListPage, ReadError> {
        let deadline = Instant::now() + LIST;
        let mut page = ListPage::default();
        let (mut at, mut walk) = match cursor.map(WalkCursor::decode) {
            None => (0, None),
            Some(Some(walk)) => self.place_of(walk),
            Some(None) => return Err(ReadError::Failed),
        };
        let mut firsts = if cursor.is_none() { self.begin_all(deadline) } else { HashMap::new() };
        while let Some(own) = self.servers.get(at) {
            let name = own.server.name();
            if !own.has_resources {
                at += 1;
                continue;
            }
            // The page itself has the rest of the time.
            self.look_at_earlier(at, deadline - LIST / 2).await;
            let now = walk.take().unwrap_or_else(|| WalkCursor::begin(name));
            let found = match firsts.remove(&at) {
                Some(first) => first.await.ok().flatten(),
                None => own.page(&now, deadline).await,
            };
            if found.is_none()
                && let Some(again) = now.again()
            {
                // It has answered before. What it still has would be missing.
                return Ok(page.with_next(again.encode()));
            }
            let Some(Ok(found)) = found else {
                lock(&self.unseen).insert(at, Instant::now());
                page = page.without(&**name);
                at += 1;
                continue;
            };
            page.items.extend(found.items.iter().filter_map(|item| self.resource(at, item)));
            match found.next.as_deref().map(|next| now.after(next)) {
                Some(Some(next)) => return Ok(page.with_next(next.encode())),
                // Its pages turn in a circle.
                Some(None) => page = page.without(&**name),
                None => drop(lock(&self.walked).insert(at)),
            }
            at += 1;
            if page.items.len() >= limit
                && let Some(next) = self.servers.get(at)
            {
                return Ok(page.with_next(WalkCursor::begin(next.server.name()).encode()));
            }
        }
        Ok(page)
    }

    /// The number of the server at which a page begins; if it is gone, of the next one.
    fn place_of(&self, walk: WalkCursor) -> (usize, Option<WalkCursor>) {
        let at = self.servers.partition_point(|own| **own.server.name() < *walk.server);
        let is_there = self.servers.get(at).is_some_and(|own| **own.server.name() == *walk.server);
        (at, is_there.then_some(walk))
    }

    /// Requests the first page of every server.
    fn begin_all(&self, deadline: Instant) -> HashMap<usize, JoinHandle<Option<PageResult>>> {
        let asked = self.servers.iter().enumerate().filter(|(_, own)| own.has_resources);
        let begin = |(at, own): (usize, &ViewServer)| {
            let server = own.server.clone();
            (at, own.server.spawn(async move { server.first_page(deadline).await }))
        };
        asked.map(begin).collect()
    }

    /// Looks at the whole lists of the servers before this one, unless that was done: what they have too needs a prefix.
    async fn look_at_earlier(&self, at: usize, deadline: Instant) {
        for (earlier, own) in self.servers.iter().enumerate().take(at) {
            let is_seen = lock(&self.walked).contains(&earlier);
            let is_silent = lock(&self.unseen).get(&earlier).is_some_and(|at| at.elapsed() < UNSEEN);
            if !own.has_resources || own.prefix.is_some() || is_seen || is_silent {
                continue;
            }
            let mut walk = WalkCursor::begin(own.server.name());
            for _ in 0..MOST_EARLIER {
                let Some(Ok(found)) = own.page(&walk, deadline).await else {
                    lock(&self.unseen).insert(earlier, Instant::now());
                    break;
                };
                for item in found.items.iter().filter(|item| own.access.allows(&item.id)) {
                    lock(&self.owners).claim(earlier, &item.id);
                }
                let Some(next) = found.next.as_deref() else {
                    lock(&self.walked).insert(earlier);
                    break;
                };
                let Some(next) = walk.after(next) else { break };
                walk = next;
            }
        }
    }

    /// A resource as the agent sees it; `None` if it does not.
    fn resource(&self, server: usize, item: &ForeignItem) -> Option<Item> {
        let own = self.servers.get(server)?;
        if !own.access.allows(&item.id) {
            return None;
        }
        let uri = self.shown(server, &item.id);
        let json = if uri == item.id { item.json.clone() } else { wire::with_text(&item.json, "uri", &uri) };
        Some(Item::Foreign { uri, json })
    }

    /// The contents at a URI, or the input that its server needs first.
    pub(crate) async fn read(&self, uri: &str, terms: ReadTerms<'_>) -> Result<ForeignRead, ReadError> {
        let mut worst = None;
        let mut targets = self.targets(uri);
        // A retry goes to the server that has asked.
        if let Some(asker) = terms.asker {
            targets.retain(|target| {
                self.servers.get(target.server).is_some_and(|own| **own.server.name() == *asker)
            });
        }
        for target in targets {
            match self.read_with(&target, terms).await {
                Ok((result, _)) => {
                    // A URI with a prefix says nothing about the one without.
                    if canonical(&target.uri) == canonical(uri) {
                        lock(&self.owners).claim(target.server, &target.uri);
                    }
                    return Ok(result);
                }
                Err(ReadError::NotFound) => {}
                Err(error) => drop(worst.get_or_insert(error)),
            }
        }
        Err(worst.unwrap_or(ReadError::NotFound))
    }

    /// A digest of the contents that one server has.
    pub(crate) async fn digest_at(&self, target: &UriTarget) -> Result<u64, ReadError> {
        match self.read_with(target, ReadTerms::default()).await? {
            (ForeignRead::Contents(_), digest) => Ok(digest),
            (ForeignRead::Input(_), _) => Err(ReadError::InputRequired),
        }
    }

    /// The answer of one server, and a digest of it.
    async fn read_with(
        &self,
        target: &UriTarget,
        terms: ReadTerms<'_>,
    ) -> Result<(ForeignRead, u64), ReadError> {
        let own = self.servers.get(target.server).ok_or(ReadError::NotFound)?;
        let passed = PassedTerms {
            is_modern: own.server.is_modern(),
            is_client_modern: terms.is_modern,
            ..PassedTerms::default()
        };
        let meta = wire::passed_meta(terms.meta, &passed);
        let answered = own.server.read(&target.uri, meta.as_deref(), terms.input).await;
        let (text, left) = answered.map_err(|error| failed(own.server.name(), error, Some(&target.uri)))?;
        let members = wire::members(&text).ok_or(ReadError::Failed)?;
        if !RawResult::from_foreign(&members).is_complete() {
            let input = wire::input_required(&members, own.server.name()).filter(|_| terms.is_modern);
            return input.map(|input| (ForeignRead::Input(input), 0)).ok_or(ReadError::InputRequired);
        }
        let mut result = ReadResult::from_foreign(&members).ok_or(ReadError::Failed)?;
        if result.contents.is_empty() {
            return Err(ReadError::NotFound);
        }
        // What it sends beside the resource must be allowed too.
        result.contents.retain(|one| one.uri.as_deref().is_none_or(|uri| own.access.allows(uri)));
        if result.contents.is_empty() {
            return Err(ReadError::NotFound);
        }
        for one in &mut result.contents {
            one.uri = match one.uri.take() {
                Some(uri) if canonical(&uri) != canonical(&target.uri) => {
                    Some(self.shown(target.server, &uri).into())
                }
                _ => None,
            };
        }
        if let Some(left) = left {
            result.cache = Some(CacheHint { ttl_ms: left, scope: CacheScope::Public });
        }
        let digest = xxh3_64(text.as_bytes());
        lock(&self.owners).was_read(target.server, &target.uri, digest);
        Ok((ForeignRead::Contents(result), digest))
    }

    /// The server that has a URI: the one that is known to, or else the first that can read it.
    pub(crate) async fn locate(&self, uri: &str) -> Option<UriTarget> {
        let targets = self.targets(uri);
        if let [only] = &targets[..] {
            return Some(only.clone());
        }
        let is_known = lock(&self.owners).owner(uri).is_some() || self.prefixes.split(uri).is_some();
        if is_known {
            return targets.into_iter().next();
        }
        for target in &targets {
            if self.digest_at(target).await.is_ok() {
                return Some(target.clone());
            }
        }
        targets.into_iter().next()
    }
}

/// Templates, tools and prompts.
impl UpstreamView {
    /// A page of the templates, tools or prompts of all servers.
    pub(crate) async fn list_known(
        &self,
        list: ListKind,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage, ReadError> {
        let (first, last) = match cursor.map(WalkCursor::decode) {
            None => (0, None),
            Some(Some(walk)) => {
                let (at, walk) = self.place_of(walk);
                (at, walk.map(|walk| walk.inner))
            }
            Some(None) => return Err(ReadError::Failed),
        };
        let tables = self.tables(list, Instant::now() + LIST).await;
        let mut page = ListPage::default();
        for (at, table) in tables.iter().enumerate().skip(first) {
            let is_asked = self.servers.get(at).is_some_and(|own| own.is_asked_for(list));
            if let (None, true, Some(own)) = (table, is_asked, self.servers.get(at)) {
                page = page.without(&**own.server.name());
            }
        }
        let mut before: Option<(usize, String)> = None;
        for (at, items) in self.items(list, &tables).into_iter().enumerate().skip(first) {
            let last = last.as_deref().filter(|_| at == first);
            for (name, json) in items {
                if last.is_some_and(|last| name.as_str() <= last) {
                    continue;
                }
                if let Some((server, last)) = before.as_ref().filter(|_| page.items.len() >= limit) {
                    let server = self.servers.get(*server).map_or("", |own| &**own.server.name());
                    return Ok(page.with_next(WalkCursor::kept(server, last).encode()));
                }
                before = Some((at, name.clone()));
                page.items.push(Item::Foreign { uri: name, json });
            }
        }
        Ok(page)
    }

    /// The entries of the servers, as far as they are known at `deadline`.
    pub(crate) async fn tables(&self, list: ListKind, deadline: Instant) -> Vec<Option<Arc<NamedTable>>> {
        let asked = self.servers.iter().map(|own| {
            let server = own.server.clone();
            let is_asked = own.is_asked_for(list);
            own.server.spawn(async move {
                if !is_asked {
                    return None;
                }
                server.table(list, deadline).await.and_then(Result::ok)
            })
        });
        let asked: Vec<_> = asked.collect();
        let mut tables = Vec::with_capacity(asked.len());
        for table in asked {
            tables.push(table.await.ok().flatten());
        }
        if let Some(named) = self.named_of(list) {
            *lock(named) = Arc::new(self.routes_of(&tables));
        }
        tables
    }

    fn named_of(&self, list: ListKind) -> Option<&Mutex<Arc<NamedRoutes>>> {
        let [tools, prompts] = &self.named;
        match list {
            ListKind::Tools => Some(tools),
            ListKind::Prompts => Some(prompts),
            ListKind::Resources | ListKind::Templates => None,
        }
    }

    pub(crate) fn routes(&self, list: ListKind) -> Arc<NamedRoutes> {
        self.named_of(list).map(|named| lock(named).clone()).unwrap_or_default()
    }

    fn routes_of(&self, tables: &[Option<Arc<NamedTable>>]) -> NamedRoutes {
        let permits: Vec<_> = self.servers.iter().map(|own| move |name: &str| own.permits(name)).collect();
        let servers =
            self.servers.iter().zip(tables).zip(&permits).map(|((own, table), permits)| NamingServer {
                name: own.server.name(),
                prefix: own.prefix.as_deref(),
                table: table.as_ref(),
                permits,
            });
        NamedRoutes::new(&servers.collect::<Vec<_>>())
    }

    /// The entries of a kind as the agent sees them: by server, in the order of their names here.
    fn items(&self, list: ListKind, tables: &[Option<Arc<NamedTable>>]) -> Vec<Vec<(String, String)>> {
        if let ListKind::Templates | ListKind::Resources = list {
            return tables
                .iter()
                .enumerate()
                .map(|(at, table)| self.templates(at, table.as_deref()))
                .collect();
        }
        // All pages are claimed first, so that a name does not depend on the page of the list.
        for (at, table) in tables.iter().enumerate() {
            for item in table.iter().flat_map(|table| &table.items) {
                for page in wire::pages_of(&item.json) {
                    lock(&self.owners).claim(at, &page);
                }
            }
        }
        let routes = self.routes(list);
        let servers = routes.listed.iter().zip(tables).enumerate();
        servers
            .map(|(at, (listed, table))| {
                let Some(table) = table else { return Vec::new() };
                let item = |(name, index): &(String, usize)| {
                    let item = table.items.get(*index)?;
                    let json = match *name == item.id {
                        true => item.json.clone(),
                        false => wire::with_text(&item.json, "name", name),
                    };
                    Some((name.clone(), wire::with_page(&json, &|uri| self.shown(at, uri))))
                };
                listed.iter().filter_map(item).collect()
            })
            .collect()
    }

    fn templates(&self, server: usize, table: Option<&NamedTable>) -> Vec<(String, String)> {
        let (Some(own), Some(table)) = (self.servers.get(server), table) else { return Vec::new() };
        let items = table.items.iter().filter(|item| own.access.reaches(&item.id));
        let shown = |item: &ForeignItem| {
            let text = self.shown_template(server, &item.id);
            let json = match text == item.id {
                true => item.json.clone(),
                false => wire::with_text(&item.json, "uriTemplate", &text),
            };
            (text, json)
        };
        let mut items: Vec<_> = items.map(shown).collect();
        items.sort();
        items
    }
}

impl ViewServer {
    /// The page at a position of its resources; `None` if it is not there at `deadline`.
    async fn page(&self, walk: &WalkCursor, deadline: Instant) -> Option<PageResult> {
        if walk.inner.is_empty() {
            return self.server.first_page(deadline).await;
        }
        let rest = timeout_at(deadline, self.server.resources(Some(&walk.inner))).await;
        rest.ok().map(|rest| rest.map(Arc::new))
    }

    pub(crate) fn is_asked_for(&self, list: ListKind) -> bool {
        match list {
            ListKind::Resources | ListKind::Templates => self.has_resources,
            ListKind::Tools | ListKind::Prompts => self.tools.as_ref().is_none_or(|globs| !globs.is_empty()),
        }
    }

    /// Whether the agent has a tool or prompt of this server.
    pub(crate) fn permits(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)))
    }
}

pub(crate) fn refused(message: String) -> ReadError {
    ReadError::Foreign { code: INVALID_PARAMS, message, data: None }
}

/// The error of a server, for the client. `uri` is that of a read: errors that mean that it does not exist are taken as that.
pub(crate) fn failed(server: &str, error: UpstreamError, uri: Option<&str>) -> ReadError {
    let silent = |why: &str| ReadError::Foreign {
        code: INTERNAL_ERROR,
        message: format!("The server {server:?} {why}"),
        data: None,
    };
    let failure = match error {
        UpstreamError::Resting => return silent("does not answer; it is tried again within 30 s"),
        UpstreamError::Full { .. } => {
            return silent("has as many clients with connections of their own as it may; try again later");
        }
        UpstreamError::Client(ClientError::Failed(failure)) => failure,
        UpstreamError::Client(_) => return ReadError::NotFound,
    };
    match failure {
        Failure::Server { code, message, data } => {
            let members = data.as_deref().and_then(wire::members);
            let kind = members.as_ref().and_then(|members| members.get("kind")?.as_str());
            let has_uri = members.as_ref().is_some_and(|members| members.get("uri").is_some());
            // The official Rust SDK has the URI as its message.
            let names_uri = has_uri || uri.is_some_and(|uri| message == uri);
            let answered = Answered { code, message: &message, kind: kind.as_deref(), names_uri };
            match answered.meaning() {
                Meaning::NotFound | Meaning::AccessDenied | Meaning::InvalidUri if uri.is_some() => {
                    ReadError::NotFound
                }
                _ => {
                    ReadError::Foreign { code: i32::try_from(code).unwrap_or(INTERNAL_ERROR), message, data }
                }
            }
        }
        Failure::Timeout { after, .. } => ReadError::Timeout { after },
        Failure::TooLarge { limit } => ReadError::SizeExceeded { limit, size: None },
        Failure::InputRequired { .. } => ReadError::InputRequired,
        Failure::Unauthorized { .. } => silent("does not accept the credentials of the gateway"),
        Failure::BadAnswer { .. } => silent("has sent an answer that is not valid"),
        Failure::LimitReached { .. } => silent("has too many requests to answer"),
        _ => silent("cannot be reached"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64, message: &str, data: Option<&str>, uri: Option<&str>) -> ReadError {
        let failure = Failure::Server { code, message: message.into(), data: data.map(str::to_owned) };
        failed("a", UpstreamError::Client(failure.into()), uri)
    }

    // S-12: a missing resource is missing, in whichever way the server's SDK says so.
    #[test]
    fn every_sdks_not_found_is_one() {
        let uri = Some("note://x");
        for (code, message, data) in [
            (-32002, "Resource not found", None),
            (-32602, "gone", Some(r#"{"uri":"note://x"}"#)),
            (-32602, "note://x", None),
            (0, "Unknown resource: note://x", None),
        ] {
            assert_eq!(error(code, message, data, uri), ReadError::NotFound, "{code} {message}");
        }
        let other = error(-32602, "bad cursor", None, uri);
        assert!(matches!(other, ReadError::Foreign { code: -32602, .. }));
        assert!(matches!(error(-32002, "x", None, None), ReadError::Foreign { .. }), "no read");
    }
}
