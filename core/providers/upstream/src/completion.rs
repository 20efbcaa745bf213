//! Completions, of templates and of prompts.

use crate::server::RequestOptions;
use crate::view::{LIST, UpstreamView, UriTarget, failed, refused};
use crate::wire;
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::connection::Completion;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::jsonrpc::object;
use tokio::time::Instant;

/// A completion, of a template or of a prompt.
pub(crate) struct CompletionCall<'a> {
    pub(crate) is_prompt: bool,
    /// The text of the template, or the name of the prompt.
    pub(crate) reference: &'a str,
    pub(crate) variable: &'a str,
    pub(crate) value: &'a str,
    pub(crate) arguments: &'a [(String, String)],
}

impl UpstreamView {
    /// Completes a variable of a template, or an argument of a prompt.
    pub(crate) async fn complete(&self, call: CompletionCall<'_>) -> Result<Completion<'static>, ReadError> {
        let targets = match call.is_prompt {
            true => self
                .target(ListKind::Prompts, call.reference)
                .await
                .into_iter()
                .map(|target| UriTarget { server: target.server, uri: target.name })
                .collect(),
            false => self.template_targets(call.reference).await,
        };
        let mut worst = None;
        for target in targets {
            match self.complete_at(&target, &call).await {
                Ok(completion) => return Ok(completion),
                Err(error) => drop(worst.get_or_insert(error)),
            }
        }
        let why = if call.is_prompt { "prompt" } else { "ref" };
        Err(worst.unwrap_or_else(|| refused(format!("Invalid params: unknown {why}"))))
    }

    /// The servers that may complete a reference: those that have the template or, for a URI, that may have the URI.
    async fn template_targets(&self, text: &str) -> Vec<UriTarget> {
        let mut targets = Vec::new();
        let tables = self.tables(ListKind::Templates, Instant::now() + LIST).await;
        for (at, (own, table)) in self.servers.iter().zip(&tables).enumerate() {
            let Some(table) = table else { continue };
            for item in table.items.iter().filter(|item| own.access.reaches(&item.id)) {
                let is_short = item.id == text && own.prefix.is_none();
                if is_short || self.shown_template(at, &item.id) == text {
                    targets.push(UriTarget { server: at, uri: item.id.clone() });
                }
            }
        }
        // The owner of a text that several have is the one that shows it unchanged.
        targets.truncate(1);
        if targets.is_empty() && !text.contains('{') {
            targets = self.targets(text);
        }
        targets
    }

    async fn complete_at(
        &self,
        target: &UriTarget,
        call: &CompletionCall<'_>,
    ) -> Result<Completion<'static>, ReadError> {
        let own = self.servers.get(target.server).ok_or(ReadError::Failed)?;
        let context = own.server.about().is_some_and(|about| about.revision.has_completion_context());
        let mut params = Vec::new();
        object(&mut params, |params| {
            params.object("ref", |reference| {
                reference.str("type", if call.is_prompt { "ref/prompt" } else { "ref/resource" });
                reference.str(if call.is_prompt { "name" } else { "uri" }, &target.uri);
            });
            params.object("argument", |argument| {
                argument.str("name", call.variable);
                argument.str("value", call.value);
            });
            if context && !call.arguments.is_empty() {
                params.object("context", |context| {
                    context.object("arguments", |arguments| {
                        for (name, value) in call.arguments {
                            arguments.named(name).extend_from_slice(wire::quoted(value).as_bytes());
                        }
                    });
                });
            }
        });
        let params = String::from_utf8(params).map_err(|_| ReadError::Failed)?;
        let answered = own.server.request("completion/complete", &params, RequestOptions::reading()).await;
        let text = answered.map_err(|error| failed(own.server.name(), error, None))?;
        let members = wire::members(&text).ok_or(ReadError::Failed)?;
        let mut completion = Completion::from_foreign(&members).ok_or(ReadError::Failed)?;
        if !call.is_prompt && !own.access.is_open() {
            let table = own.server.known_table(ListKind::Templates);
            let template = table.as_ref().and_then(|table| table.template(&target.uri));
            completion.values.retain(|value| {
                let mut values: Vec<(&str, &str)> = vec![(call.variable, value)];
                values.extend(call.arguments.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                template.is_some_and(|template| own.access.leads(template, &values))
            });
            // They count what the agent may not see.
            completion.total = None;
            completion.has_more = None;
        }
        Ok(completion)
    }
}
