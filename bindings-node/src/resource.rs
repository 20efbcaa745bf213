//! Descriptions of resources and templates. What is wrong with a value is the core's to say.

use crate::error::unusable;
use crate::options::unsigned;
use crate::template::UriTemplate;
use mcp_resources_engine::resource::{self as core, Audience, CacheScope, ListSource, ParameterKind, Theme};
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// One resource, at one URI, or the fields of a template.
#[napi(object, object_to_js = false)]
pub struct Resource {
    /// Its URI; a template has its own.
    pub uri: Option<String>,
    /// A name for programs.
    pub name: Option<String>,
    /// A label for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Pictures of it.
    pub icons: Option<Vec<Icon>>,
    /// For whom it is.
    pub audience: Option<Vec<String>>,
    /// How important it is, from 0 to 1.
    pub priority: Option<f64>,
    /// When it was changed: an ISO 8601 text.
    pub last_modified: Option<String>,
    /// Members of `_meta` as JSON text.
    pub meta: Option<String>,
    /// For how many milliseconds its contents may be kept.
    pub ttl_ms: Option<i64>,
    /// By whom.
    pub cache_scope: Option<String>,
    /// The scopes that a token must have to see it.
    pub scopes: Option<Vec<String>>,
    /// Whether a subscription to it also hears of the resources beneath it.
    pub children: Option<bool>,
    /// Its size in bytes.
    pub size: Option<i64>,
}

/// A picture of a resource or a server.
#[napi(object, object_to_js = false)]
pub struct Icon {
    /// An `http:`, `https:` or `data:` URI.
    pub src: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The sizes it is made for: `48x48`, or `any`.
    pub sizes: Option<Vec<String>>,
    /// The theme it is made for. Default: either.
    #[napi(ts_type = "'light' | 'dark'")]
    pub theme: Option<String>,
}

/// How long a result may be kept, and by whom.
#[napi(object, object_to_js = false)]
pub struct CacheHint {
    /// Milliseconds. Default 0.
    pub ttl_ms: Option<i64>,
    /// `public` only if it is the same for everyone. Default `private`.
    #[napi(ts_type = "'public' | 'private'")]
    pub cache_scope: Option<String>,
}

/// What is known of a template's variable.
#[napi(object, object_to_js = false)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The type of its value.
    #[napi(js_name = "type")]
    pub kind: Option<String>,
    /// The values that are allowed.
    pub values: Option<Vec<String>>,
    /// A regular expression that the whole value must match.
    pub pattern: Option<String>,
    /// What it is.
    pub description: Option<String>,
}

/// What a template has besides the fields of a resource.
#[napi(object, object_to_js = false)]
pub struct TemplateFields {
    /// What is known of its variables.
    pub parameters: Vec<Parameter>,
    /// Whether its lister takes a cursor; left out if there is none.
    pub pages: Option<bool>,
}

impl Resource {
    /// The core's resource.
    pub(crate) fn read(self) -> Result<core::Resource> {
        let mut made = core::Resource::new(self.uri.clone().unwrap_or_default());
        made.size = self.size.map(|size| unsigned("size", size)).transpose()?;
        made.children = self.children.unwrap_or_default();
        self.details(&mut made.details)?;
        Ok(made)
    }

    /// The core's template.
    pub(crate) fn template(
        self,
        template: &UriTemplate,
        fields: TemplateFields,
        completes: Vec<String>,
    ) -> Result<core::Template> {
        let mut made = core::Template::new(template.template.as_str()).options(template.options.clone());
        made.parameters = fields.parameters.into_iter().map(Parameter::read).collect::<Result<_>>()?;
        made.completes = completes;
        made.list = fields.pages.map(|pages| ListSource { pages });
        made.children = self.children.unwrap_or_default();
        self.details(&mut made.details)?;
        Ok(made)
    }

    fn details(self, details: &mut core::Details) -> Result<()> {
        details.name = self.name;
        details.title = self.title;
        details.description = self.description;
        details.mime_type = self.mime_type;
        details.icons = self.icons.into_iter().flatten().map(Icon::read).collect::<Result<_>>()?;
        let audience = self.audience.into_iter().flatten();
        details.annotations.audience = audience
            .map(|name| word("audience", &name, Audience::parse(&name), "user or assistant"))
            .collect::<Result<_>>()?;
        details.annotations.priority = self.priority;
        details.annotations.last_modified = self.last_modified;
        details.meta = self.meta;
        details.scopes = self.scopes.unwrap_or_default();
        details.cache = CacheHint { ttl_ms: self.ttl_ms, cache_scope: self.cache_scope }.read()?;
        Ok(())
    }
}

impl Icon {
    /// The core's icon.
    pub(crate) fn read(self) -> Result<core::Icon> {
        let mut icon = core::Icon::new(self.src);
        icon.mime_type = self.mime_type;
        icon.sizes = self.sizes.unwrap_or_default();
        let theme = |theme: String| word("theme", &theme, Theme::parse(&theme), "light or dark");
        icon.theme = self.theme.map(theme).transpose()?;
        Ok(icon)
    }
}

impl CacheHint {
    /// The core's hint.
    pub(crate) fn read(self) -> Result<core::CacheHint> {
        let scope =
            |scope: String| word("cacheScope", &scope, CacheScope::parse(&scope), "public or private");
        Ok(core::CacheHint {
            ttl_ms: self.ttl_ms.map_or(Ok(0), |ttl| unsigned("ttlMs", ttl))?,
            scope: self.cache_scope.map_or(Ok(CacheScope::Private), scope)?,
        })
    }
}

impl Parameter {
    fn read(self) -> Result<core::Parameter> {
        let kind = self.kind.as_deref().map(|word| {
            let refused = || unusable(format!("type is {word:?}, which is no type of a variable"));
            ParameterKind::parse(word).ok_or_else(refused)
        });
        let kind = kind.transpose()?.unwrap_or_default();
        let mut parameter =
            core::Parameter::new(self.name).kind(kind).values(self.values.unwrap_or_default());
        parameter.pattern = self.pattern;
        parameter.description = self.description;
        Ok(parameter)
    }
}

fn word<T>(field: &str, given: &str, found: Option<T>, expected: &str) -> Result<T> {
    found.ok_or_else(|| unusable(format!("{field} is {given:?}, expected {expected}")))
}
