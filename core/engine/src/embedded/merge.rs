//! Answers that both servers contribute to: greetings, and lists of tools, prompts and templates.
//!
//! Law: members of the other server's answer that are not merged stay as they are, text for text.

use super::EmbeddedServer;
use super::connection::EmbeddedStep;
use crate::error::Shown;
use crate::jsonrpc::{Json, JsonMembers, ObjectWriter, object};
use crate::principal::Principal;
use crate::version::ProtocolMethod;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Our capabilities that join those of the other server, where we have something to offer.
const SHARED: [&str; 2] = ["tools", "prompts"];
/// The capabilities with an entry for each extension.
const EXTENSIONS: [&str; 2] = ["extensions", "experimental"];

/// The step for a result of this engine. `theirs` is the other server's, for a request that both answer.
pub(super) fn result(
    server: &EmbeddedServer,
    viewer: &Principal,
    method: Option<ProtocolMethod>,
    theirs: Option<&str>,
    ours: Json<'_>,
) -> EmbeddedStep {
    let list = method.and_then(MergedList::from_method);
    let Some(own) = ours.object() else { return EmbeddedStep::Result(ours.raw().to_owned()) };
    let Some(theirs) = theirs else {
        let text = match &list {
            Some(list) => list.ours(server, &own),
            None => ours.raw().to_owned(),
        };
        return EmbeddedStep::Result(text);
    };
    let parsed = Json::parse(theirs.as_bytes(), usize::MAX).and_then(Json::object);
    match (parsed, list, method) {
        (Some(theirs), Some(list), _) => EmbeddedStep::Result(list.both(server, viewer, &theirs, &own)),
        (Some(theirs), None, Some(ProtocolMethod::Initialize | ProtocolMethod::Discover)) => {
            EmbeddedStep::Result(greeting(server, viewer, &theirs, &own))
        }
        // A subscription, or something that is no result.
        _ => EmbeddedStep::Theirs,
    }
}

fn greeting(
    server: &EmbeddedServer,
    viewer: &Principal,
    theirs: &JsonMembers<'_>,
    ours: &JsonMembers<'_>,
) -> String {
    let completes = server.engine.completes_own(viewer);
    written(|writer| {
        for (name, value) in theirs.iter() {
            let out = writer.named(&name);
            match (&*name, value.object(), ours.get(&name)) {
                ("capabilities", Some(theirs), Some(ours)) => {
                    let ours = ours.object();
                    object(out, |writer| capabilities(&theirs, ours.as_ref(), completes, writer));
                }
                // Only in these both serve everything that they announce.
                ("supportedVersions", _, Some(ours)) => put(out, ours),
                _ => put(out, value),
            }
        }
    })
}

/// `completes`: whether a completer is our own. The fallback of adopted resources completes nothing by itself.
fn capabilities(
    theirs: &JsonMembers<'_>,
    ours: Option<&JsonMembers<'_>>,
    completes: bool,
    writer: &mut ObjectWriter<'_>,
) {
    let ours =
        |name: &str| ours.and_then(|ours| ours.get(name)).filter(|_| name != "completions" || completes);
    let is_merged = |name: &str| SHARED.contains(&name) || EXTENSIONS.contains(&name);
    for (name, value) in theirs.iter() {
        let out = writer.named(&name);
        match (value.object(), ours(&name)) {
            (Some(theirs), Some(ours)) if is_merged(&name) => union(out, &theirs, ours),
            (_, Some(ours)) if &*name == "resources" => put(out, ours),
            _ => put(out, value),
        }
    }
    for name in ["resources", "completions"].into_iter().chain(SHARED).chain(EXTENSIONS) {
        if let Some(ours) = ours(name).filter(|_| theirs.get(name).is_none()) {
            put(writer.named(name), ours);
        }
    }
}

/// The members of both; of two with one name, those of the other server, unless they are `false`.
fn union(out: &mut Vec<u8>, theirs: &JsonMembers<'_>, ours: Json<'_>) {
    let ours = ours.object();
    let own = |name: &str| ours.as_ref().and_then(|ours| ours.get(name));
    object(out, |writer| {
        for (name, value) in theirs.iter() {
            let value = if value.as_bool() == Some(false) { own(&name).unwrap_or(value) } else { value };
            put(writer.named(&name), value);
        }
        for (name, value) in ours.iter().flat_map(JsonMembers::iter) {
            if theirs.get(&name).is_none() {
                put(writer.named(&name), value);
            }
        }
    });
}

/// A list that both servers contribute to. The other server's pages come first, ours follow its last one.
struct MergedList {
    member: &'static str,
    key: &'static str,
    method: ProtocolMethod,
}

impl MergedList {
    fn from_method(method: ProtocolMethod) -> Option<Self> {
        let (member, key) = match method {
            ProtocolMethod::ListTools => ("tools", "name"),
            ProtocolMethod::ListPrompts => ("prompts", "name"),
            ProtocolMethod::ListTemplates => ("resourceTemplates", "uriTemplate"),
            _ => return None,
        };
        Some(Self { member, key, method })
    }

    /// Our result without the items that the other server has too.
    fn ours(&self, server: &EmbeddedServer, ours: &JsonMembers<'_>) -> String {
        let items = self.kept(server, ours);
        written(|writer| {
            for (name, value) in ours.iter() {
                let out = writer.named(&name);
                if name == self.member { put_all(out, &items) } else { put(out, value) }
            }
        })
    }

    fn both(
        &self,
        server: &EmbeddedServer,
        viewer: &Principal,
        theirs: &JsonMembers<'_>,
        ours: &JsonMembers<'_>,
    ) -> String {
        let listed = theirs.get(self.member).and_then(Json::array);
        let mut items: Vec<Json<'_>> = listed.into_iter().flatten().collect();
        self.meet(server, viewer, &mut items);
        let has_more = theirs.get("nextCursor").is_some_and(|next| next.as_str().is_some());
        let next = ours.get("nextCursor").filter(|_| !has_more);
        if !has_more {
            items.extend(self.kept(server, ours));
        }
        written(|writer| {
            for (name, value) in theirs.iter() {
                match &*name {
                    "nextCursor" if next.is_some() => {}
                    name if name == self.member => put_all(writer.named(name), &items),
                    name => put(writer.named(name), value),
                }
            }
            if let Some(next) = next {
                put(writer.named("nextCursor"), next);
            }
        })
    }

    /// Looks at the other server's items. Our tools and prompts give way to those of the same name, and its templates to
    /// ours; templates that the policy hides are removed.
    fn meet(&self, server: &EmbeddedServer, viewer: &Principal, items: &mut Vec<Json<'_>>) {
        if self.method == ProtocolMethod::ListTemplates {
            items.retain(|item| {
                let Some(text) = self.name(*item) else { return true };
                let is_ours = server.engine.catalog().template_by_text(&text).is_some();
                if is_ours {
                    server
                        .warn(format!("{} is a template of both servers; this one serves it", Shown(&text)));
                }
                !is_ours && server.engine.sees_passing(viewer, &text)
            });
            return;
        }
        let catalog = server.engine.catalog();
        let is_ours = |name: &Cow<'_, str>| match self.method {
            ProtocolMethod::ListTools => catalog.tool(name).is_some(),
            _ => catalog.prompt(name).is_some(),
        };
        let both: Vec<_> =
            items.iter().filter_map(|item| self.name(*item)).filter(is_ours).map(Cow::into_owned).collect();
        for name in both {
            let what = if self.method == ProtocolMethod::ListTools { "tool" } else { "prompt" };
            server.warn(format!("both servers have a {what} {name}; that of the ResourceServer is left out"));
            self.yielded(&mut server.state()).insert(name);
        }
    }

    /// Our items that the other server does not have.
    fn kept<'j>(&self, server: &EmbeddedServer, ours: &JsonMembers<'j>) -> Vec<Json<'j>> {
        let items = ours.get(self.member).and_then(Json::array).into_iter().flatten();
        if self.method == ProtocolMethod::ListTemplates {
            return items.collect();
        }
        let mut state = server.state();
        let yielded = self.yielded(&mut state);
        items.filter(|item| self.name(*item).is_none_or(|name| !yielded.contains(&*name))).collect()
    }

    fn name<'j>(&self, item: Json<'j>) -> Option<Cow<'j, str>> {
        item.object()?.get(self.key)?.as_str()
    }

    fn yielded<'s>(&self, state: &'s mut super::SharedState) -> &'s mut BTreeSet<String> {
        match self.method {
            ProtocolMethod::ListTools => &mut state.yielded_tools,
            _ => &mut state.yielded_prompts,
        }
    }
}

fn written(body: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, body);
    String::from_utf8_lossy(&out).into_owned()
}

fn put(out: &mut Vec<u8>, value: Json<'_>) {
    out.extend_from_slice(value.raw().as_bytes());
}

fn put_all(out: &mut Vec<u8>, items: &[Json<'_>]) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put(out, *item);
    }
    out.push(b']');
}
