//! Resources and templates as they are registered, described once for all revisions.
//!
//! Law: plain data with builders. Nothing here validates a value: `catalog` does so at registration, so an invalid
//! value is an error and never reaches a peer.

mod details;
mod error;
mod options;
mod parameter;
mod spelling;
mod syntax;
mod tool;
mod ui;

pub use details::{Annotations, Audience, CacheHint, CacheScope, Details, Icon, Theme};
pub use error::RegistrationError;
pub use parameter::{Parameter, ParameterCheck, ParameterKind};
pub use syntax::{is_date, is_date_time, is_icon_size, is_media_type, is_scope, is_uuid};
pub use tool::{Prompt, PromptArgument, ReadTool, Tool, ToolAnnotations};
pub use ui::{ToolVisibility, UI_MEDIA_TYPE, UiCsp, UiPage, UiPermission};
pub(crate) use ui::{UI, has_ui_scheme, member};

use details::details_setters;
use mcp_resources_template::TemplateOptions;

/// One resource, at one URI.
///
/// ```
/// use mcp_resources_engine::resource::{Audience, Resource};
/// let config = Resource::new("config://app")
///     .name("app")
///     .mime_type("application/json")
///     .audience([Audience::Assistant])
///     .priority(0.8);
/// assert_eq!(config.uri, "config://app");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use = "a resource does nothing until it is registered"]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its size in bytes, before any base64. Default: known for constants, unknown otherwise.
    pub size: Option<u64>,
    /// Whether its subscribers are also notified of changes under it, as for a directory. Default `false`.
    pub children: bool,
    /// The properties that it shares with templates. Boxed, because a registration moves a resource many times.
    pub details: Box<Details>,
}

impl Resource {
    /// A resource at `uri`; its name is the URI until [`Resource::name`] is called.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), size: None, children: false, details: Box::default() }
    }

    /// Sets its size in bytes, before any base64. Default: known for constants, unknown otherwise.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    details_setters!();
}

/// A family of resources, at the URIs that match a template.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use = "a template does nothing until it is registered"]
pub struct Template {
    /// Its URI template (RFC 6570).
    pub uri_template: String,
    /// The options for matching its URIs.
    pub options: TemplateOptions,
    /// The declared parameters: checked when a resource is read, published in `_meta`.
    pub parameters: Vec<Parameter>,
    /// The variables that the handler completes.
    pub completes: Vec<String>,
    /// Whether the handler lists the template's resources. Default: not listed.
    pub list: Option<ListSource>,
    /// The name of a tool that reads its resources, with its variables as arguments. The empty text stands for the name of
    /// the template. Default: none.
    pub tool: Option<String>,
    /// Whether subscribers of one of its resources are also notified of changes under it. Default `false`.
    pub children: bool,
    /// The properties that it shares with resources. Its media type is that of every resource of the template.
    /// Boxed, as those of [`Resource`].
    pub details: Box<Details>,
}

impl Template {
    /// The resources that match `uri_template`; its name is that text until [`Template::name`] is called.
    pub fn new(uri_template: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            options: TemplateOptions::default(),
            parameters: Vec::new(),
            completes: Vec::new(),
            list: None,
            tool: None,
            children: false,
            details: Box::default(),
        }
    }

    /// Sets how its URIs are matched. Default: [`TemplateOptions::default`].
    pub fn options(mut self, options: TemplateOptions) -> Self {
        self.options = options;
        self
    }

    /// Declares one variable. Default: any text is a valid value.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Declares that the handler completes a variable.
    pub fn completes(mut self, variable: impl Into<String>) -> Self {
        self.completes.push(variable.into());
        self
    }

    /// Offers a tool of this name, which reads a resource of the template; its arguments are the variables. Default: none.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Declares that the handler lists the template's resources, in pages or all at once.
    pub fn list(mut self, source: ListSource) -> Self {
        self.list = Some(source);
        self
    }

    details_setters!();
}

/// A resource at this URI, with defaults for everything else.
impl<T: Into<String>> From<T> for Resource {
    fn from(uri: T) -> Self {
        Self::new(uri)
    }
}

/// The resources that match this template, with defaults for everything else.
impl<T: Into<String>> From<T> for Template {
    fn from(uri_template: T) -> Self {
        Self::new(uri_template)
    }
}

/// Properties of the function that lists the resources of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSource {
    /// Whether it takes a cursor and returns a page. Default `false`: it returns everything.
    pub pages: bool,
}
