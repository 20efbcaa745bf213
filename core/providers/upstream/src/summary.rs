//! A summary of an agent's servers, for people.

use crate::view::UpstreamView;
use crate::wire::{ForeignItem, ForeignPage};
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::version::Revision;
use std::time::Duration;
use tokio::time::Instant;

/// A summary of one server of an agent, for people.
#[derive(Clone, Debug)]
pub struct UpstreamSummary {
    /// The name of the server.
    pub name: String,
    /// `ready`, or the reason why it is not.
    pub state: String,
    /// The agreed revision, once it has answered.
    pub revision: Option<Revision>,
    /// The number of its tools that the agent has; `None` if it is not known.
    pub tools: Option<usize>,
    /// The number of resources on the first page that the agent may see.
    pub resources: Option<usize>,
    /// Whether there are more pages.
    pub has_more_resources: bool,
    /// The number of templates that lead to something that the agent may see.
    pub templates: Option<usize>,
}

impl UpstreamView {
    /// Looks at every server, for at most `time`.
    pub(crate) async fn summaries(&self, time: Duration) -> Vec<UpstreamSummary> {
        let deadline = Instant::now() + time;
        let looks: Vec<_> = self
            .servers
            .iter()
            .map(|own| {
                let server = own.server.clone();
                own.server.spawn(async move {
                    let tools = server.table(ListKind::Tools, deadline).await;
                    let templates = server.table(ListKind::Templates, deadline).await;
                    (tools, templates, server.first_page(deadline).await)
                })
            })
            .collect();
        let mut summaries = Vec::with_capacity(looks.len());
        for (own, look) in self.servers.iter().zip(looks) {
            let Ok((tools, templates, page)) = look.await else { continue };
            let state = match &tools {
                Some(Ok(_)) => "ready".to_owned(),
                Some(Err(error)) => error.to_string(),
                None => "no answer".to_owned(),
            };
            let seen = |page: &ForeignPage| {
                page.items.iter().filter(|item| own.has_resources && own.access.allows(&item.id)).count()
            };
            let page = page.and_then(Result::ok);
            let tools = tools.and_then(Result::ok);
            let templates = templates.and_then(Result::ok);
            summaries.push(UpstreamSummary {
                name: own.server.name().to_string(),
                state,
                revision: own.server.about().map(|about| about.revision),
                tools: tools.map(|table| table.items.iter().filter(|item| own.permits(&item.id)).count()),
                resources: page.as_deref().map(seen),
                has_more_resources: page.is_some_and(|page| page.next.is_some()),
                templates: templates.map(|table| {
                    let reached = |item: &&ForeignItem| own.has_resources && own.access.reaches(&item.id);
                    table.items.iter().filter(reached).count()
                }),
            });
        }
        summaries
    }
}
