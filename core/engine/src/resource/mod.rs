//! What an author registers: a resource or a template of resources, described once for all revisions (DEC-11).
//!
//! Law: plain data with builders. Nothing here judges a value: `catalog` does, when it is registered, so that a
//! wrong one is an error and never reaches a peer.

mod details;
mod error;
mod options;
mod parameter;
mod syntax;

pub use details::{Annotations, Audience, CacheHint, CacheScope, Details, Icon, Theme};
pub use error::RegistrationError;
pub use parameter::{Parameter, ParameterCheck, ParameterKind};
pub use syntax::{is_date, is_date_time, is_icon_size, is_media_type, is_scope, is_uuid};

use details::details_setters;
use mcp_resources_template::TemplateOptions;

/// One resource, at one URI (R-058, R-070).
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
    /// Its size in bytes, before any base64. Default: that of a constant; of others it is unknown (R-080).
    pub size: Option<u64>,
    /// Whether a subscription to it also hears of the resources beneath it: a directory. Default `false`.
    pub children: bool,
    /// What it shares with templates.
    pub details: Details,
}

impl Resource {
    /// A resource at `uri`; its name is the URI until [`Resource::name`] is called.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), size: None, children: false, details: Details::default() }
    }

    /// Its size in bytes, before any base64. Default: that of a constant; of others it is unknown (R-080).
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    details_setters!();
}

/// A family of resources, at the URIs that match a template (R-060).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use = "a template does nothing until it is registered"]
pub struct Template {
    /// Its URI template (RFC 6570).
    pub uri_template: String,
    /// How its URIs are matched.
    pub options: TemplateOptions,
    /// What is known of its variables: checked when a resource is read, published in `_meta` (S-16).
    pub parameters: Vec<Parameter>,
    /// The variables that the author completes with a function of their own.
    pub completes: Vec<String>,
    /// Whether a function of the author's lists its concrete resources. Default: none does.
    pub list: Option<ListSource>,
    /// Whether a subscription to one of its resources also hears of those beneath it. Default `false`.
    pub children: bool,
    /// What it shares with resources. Its media type is that of every resource of the template (R-080).
    pub details: Details,
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
            children: false,
            details: Details::default(),
        }
    }

    /// How its URIs are matched. Default: [`TemplateOptions::default`].
    pub fn options(mut self, options: TemplateOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds what is known of one variable (S-16). Default: nothing, any text is a value.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Names a variable that the author completes with a function of their own (R-107).
    pub fn completes(mut self, variable: impl Into<String>) -> Self {
        self.completes.push(variable.into());
        self
    }

    /// Says that a function of the author's lists its concrete resources, in pages of its own or all at once.
    pub fn list(mut self, source: ListSource) -> Self {
        self.list = Some(source);
        self
    }

    details_setters!();
}

/// A resource at this URI, with nothing else said.
impl<T: Into<String>> From<T> for Resource {
    fn from(uri: T) -> Self {
        Self::new(uri)
    }
}

/// The resources that match this template, with nothing else said.
impl<T: Into<String>> From<T> for Template {
    fn from(uri_template: T) -> Self {
        Self::new(uri_template)
    }
}

/// How an author's function lists the resources of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSource {
    /// Whether it takes a cursor and returns a page. Default `false`: it returns everything.
    pub pages: bool,
}
