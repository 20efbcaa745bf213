//! Changes of the registered resources and templates, collected to take effect together.

use super::answer::{AccessDecision, Complete, IntoAnswer, List, PromptOutput, Read, ToolOutput};
use super::handlers::{Functions, HandlerSet, NamedHandlers, erase};
use super::request::{CompletionRequest, ListRequest, NamedCall, ReadRequest};
use crate::registry;
use mcp_resources_engine::catalog::ItemSource;
use mcp_resources_engine::engine::AccessQuestion;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{
    ListSource, Prompt, RegistrationError, Resource, Template, Tool, UiPage,
};
use std::sync::Arc;

/// Changes of a server's resources and templates, for [`ResourceServer::apply`](super::ResourceServer::apply).
///
/// ```
/// # use mcp_resources::{ServerChanges, Resource, ResourceServer};
/// # let server = ResourceServer::builder("notes", "1.0.0").build()?;
/// server.apply(
///     ServerChanges::new()
///         .resource(Resource::new("note://today"), |_| async { "water the plants" })
///         .remove_resource("note://yesterday"),
/// )?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "changes do nothing until they are applied"]
pub struct ServerChanges {
    changes: Vec<ServerChange>,
    misplaced: Option<RegistrationError>,
}

enum ServerChange {
    Resource(Resource, HandlerSet),
    Constant(Resource, ItemSource),
    // Boxed, as all that is large, because most changes are resources.
    Template(Box<Template>, HandlerSet),
    RemoveResource(String),
    RemoveTemplate(String),
    Tool(Box<Tool>, NamedHandlers),
    Prompt(Box<Prompt>, NamedHandlers),
    RemoveTool(String),
    RemovePrompt(String),
}

impl ServerChanges {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource read by `handler`: an async function from [`ReadRequest`] to a result listed at [`Read`].
    pub fn resource<F, Fut>(mut self, resource: impl Into<Resource>, handler: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        self.changes.push(ServerChange::Resource(resource.into(), HandlerSet::new(handler)));
        self
    }

    /// Adds a resource whose content is always `text`. No handler is called.
    pub fn text(mut self, resource: impl Into<Resource>, text: impl Into<Arc<str>>) -> Self {
        self.changes.push(ServerChange::Constant(resource.into(), ItemSource::Text(text.into())));
        self
    }

    /// Adds a resource whose content is always `bytes`. No handler is called.
    pub fn bytes(mut self, resource: impl Into<Resource>, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.changes.push(ServerChange::Constant(resource.into(), ItemSource::Bytes(bytes.into())));
        self
    }

    /// Adds a page that a host shows beside the results of tools: see [`Tool::ui`].
    pub fn ui(mut self, page: UiPage) -> Self {
        match page.into_resource() {
            Ok((resource, html)) => {
                self.changes.push(ServerChange::Constant(resource, ItemSource::Text(html.into())));
            }
            Err(invalid) => drop(self.misplaced.get_or_insert(invalid)),
        }
        self
    }

    /// Adds a template with resources read by `handler`.
    pub fn template<F, Fut>(mut self, template: impl Into<Template>, handler: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        self.changes.push(ServerChange::Template(Box::new(template.into()), HandlerSet::new(handler)));
        self
    }

    /// Completes a variable of the last added template, or an argument of the last added prompt.
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, handler: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Complete>> + Send + 'static,
    {
        let variable = variable.into();
        match self.changes.last_mut() {
            Some(ServerChange::Template(template, entry)) => {
                template.completes.push(variable.clone());
                entry.completes(variable, handler);
            }
            Some(ServerChange::Prompt(prompt, named)) => {
                prompt.completes.push(variable.clone());
                named.complete.push((variable, erase(handler)));
            }
            _ => self.misplaced("complete", variable),
        }
        self
    }

    /// Lists all resources of the last added template for `resources/list`. It is called for each page of a walk,
    /// unless [`Limits::list_ttl`](mcp_resources_engine::limits::Limits::list_ttl) caches its result.
    pub fn list<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.lists(ListSource { pages: false }, handler);
        self
    }

    /// Lists the resources of the last added template in pages: the handler continues at [`ListRequest::cursor`] and
    /// returns a [`ListPage`](mcp_resources_engine::connection::ListPage).
    pub fn list_pages<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.lists(ListSource { pages: true }, handler);
        self
    }

    /// Decides who may use the last added resource, or those of the last added template: a function from the principal
    /// and one URI with its variables to an async `bool`. It is asked about each URI before it is listed, completed, read
    /// or watched, and before an update is sent; an answer is used again for
    /// [`Limits::access_ttl`](mcp_resources_engine::limits::Limits::access_ttl), or until
    /// [`ResourceServer::regrant`](super::ResourceServer::regrant). A URI that is refused looks like one that does not
    /// exist. A failure means no, and is logged.
    pub fn access<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(Arc<Principal>, AccessQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        if let Some(entry) = self.decided() {
            entry.decides(decide);
        }
        self
    }

    /// Like [`ServerChanges::access`], about many URIs at once: the function returns one `bool` for each question, in their
    /// order. It gets at most [`Limits::access_batch`](mcp_resources_engine::limits::Limits::access_batch) of them.
    pub fn access_all<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(Arc<Principal>, Arc<[AccessQuestion]>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        if let Some(entry) = self.decided() {
            entry.decides_all(decide);
        }
        self
    }

    /// The handlers of the last resource or template, whose own handler decides from now on. A constant becomes a
    /// function.
    fn decided(&mut self) -> Option<&mut HandlerSet> {
        if let Some(ServerChange::Constant(..)) = self.changes.last()
            && let Some(ServerChange::Constant(resource, source)) = self.changes.pop()
        {
            let mut resource = resource;
            resource.size = resource.size.or_else(|| source.size());
            self.changes.push(ServerChange::Resource(resource, HandlerSet::constant(source)));
        }
        if !matches!(self.changes.last(), Some(ServerChange::Resource(..) | ServerChange::Template(..))) {
            self.misplaced("access", String::new());
        }
        match self.changes.last_mut() {
            Some(ServerChange::Resource(resource, entry)) => {
                resource.details.access = true;
                Some(entry)
            }
            Some(ServerChange::Template(template, entry)) => {
                template.details.access = true;
                Some(entry)
            }
            _ => None,
        }
    }

    /// Adds a tool whose input schema is written by hand: see [`Tool::input_schema`].
    pub fn tool_with<F, Fut>(mut self, tool: impl Into<Tool>, handler: F) -> Self
    where
        F: Fn(NamedCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ToolOutput>> + Send + 'static,
    {
        let named = NamedHandlers::new::<ToolOutput, _, _>(handler);
        self.changes.push(ServerChange::Tool(Box::new(tool.into()), named));
        self
    }

    /// Adds a prompt.
    pub fn prompt_with<F, Fut>(mut self, prompt: impl Into<Prompt>, handler: F) -> Self
    where
        F: Fn(NamedCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<PromptOutput>> + Send + 'static,
    {
        let named = NamedHandlers::new::<PromptOutput, _, _>(handler);
        self.changes.push(ServerChange::Prompt(Box::new(prompt.into()), named));
        self
    }

    /// Removes the tool of this name. Does nothing if there is none.
    pub fn remove_tool(mut self, name: impl Into<String>) -> Self {
        self.changes.push(ServerChange::RemoveTool(name.into()));
        self
    }

    /// Removes the prompt of this name. Does nothing if there is none.
    pub fn remove_prompt(mut self, name: impl Into<String>) -> Self {
        self.changes.push(ServerChange::RemovePrompt(name.into()));
        self
    }

    /// Removes the resource at `uri`, in any spelling, and notifies its watchers. Does nothing if there is none.
    pub fn remove_resource(mut self, uri: impl Into<String>) -> Self {
        self.changes.push(ServerChange::RemoveResource(uri.into()));
        self
    }

    /// Removes the template with exactly this text. Does nothing if there is none.
    pub fn remove_template(mut self, uri_template: impl Into<String>) -> Self {
        self.changes.push(ServerChange::RemoveTemplate(uri_template.into()));
        self
    }

    fn lists<F, Fut>(&mut self, source: ListSource, handler: F)
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        match self.changes.last_mut() {
            Some(ServerChange::Template(template, entry)) => {
                template.list = Some(source);
                entry.lists(handler);
            }
            _ => self.misplaced("list", String::new()),
        }
    }

    /// Stores the error for the first function that was added without a template.
    fn misplaced(&mut self, field: &str, value: String) {
        let of = match self.changes.last() {
            Some(ServerChange::Resource(resource, _) | ServerChange::Constant(resource, _)) => {
                resource.uri.clone()
            }
            _ => String::new(),
        };
        self.misplaced.get_or_insert(RegistrationError::InvalidField {
            of,
            field: field.to_owned(),
            value,
            expected: match field {
                "access" => "a resource or template added just before",
                _ => "a template or prompt added just before",
            }
            .to_owned(),
        });
    }

    /// The changes for the registry. Constants become functions if contents are `transformed` before they are sent.
    pub(super) fn prepare(
        self,
        transformed: bool,
    ) -> Result<impl Iterator<Item = registry::RegistryChange<Functions>>, RegistrationError> {
        if let Some(error) = self.misplaced {
            return Err(error);
        }
        let functions = |entry| Arc::new(Functions::HandlerSet(entry));
        let own =
            move |resource, entry| registry::RegistryChange::AddResource(resource, functions(entry), None);
        let change = move |change| match change {
            ServerChange::Resource(resource, entry) => own(resource, entry),
            ServerChange::Constant(resource, source) if transformed => {
                own(resource, HandlerSet::constant(source))
            }
            ServerChange::Constant(resource, source) => {
                registry::RegistryChange::AddConstant(resource, source)
            }
            ServerChange::Template(template, entry) => {
                registry::RegistryChange::AddTemplate(template, functions(entry))
            }
            ServerChange::RemoveResource(uri) => registry::RegistryChange::RemoveResource(uri),
            ServerChange::RemoveTemplate(uri_template) => {
                registry::RegistryChange::RemoveTemplate(uri_template)
            }
            ServerChange::Tool(tool, named) => {
                registry::RegistryChange::AddTool(tool, Arc::new(Functions::Named(named)))
            }
            ServerChange::Prompt(prompt, named) => {
                registry::RegistryChange::AddPrompt(prompt, Arc::new(Functions::Named(named)))
            }
            ServerChange::RemoveTool(name) => registry::RegistryChange::RemoveTool(name),
            ServerChange::RemovePrompt(name) => registry::RegistryChange::RemovePrompt(name),
        };
        Ok(self.changes.into_iter().map(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completer_needs_a_template_just_before() {
        let changes = ServerChanges::new()
            .template(Template::new("a://{x}"), |_| async { "" })
            .text(Resource::new("a://y"), "y")
            .complete("x", |_| async { Vec::<String>::new() });
        let error = changes.prepare(false).err().unwrap();
        assert!(error.to_string().contains("a://y"), "{error}");
    }
}
