//! The options of resources, templates and their parts, by name.

use super::{
    Audience, CacheHint, CacheScope, Icon, ListSource, Parameter, ParameterKind, Prompt, PromptArgument,
    Resource, Template, Theme, Tool, ToolAnnotations, ToolVisibility, UiCsp, UiPage, UiPermission,
};
use crate::option::{FromOption, OptionError, OptionValue, by_name, parse_by_name};
use mcp_resources_template::{Chars, ExtraQuery, Kind, UnknownName, ValuePolicy, VariableOptions};

/// The option table of a type with details: its own options, then those that resources and templates share.
macro_rules! with_details {
    ($type:ty, $expected:literal { $($own:tt)* }) => {
        by_name!($type, $expected {
            "name" => details.name,
            "title" => details.title,
            "description" => details.description,
            "mime_type" => details.mime_type,
            "icons" => details.icons,
            "audience" => details.annotations.audience,
            "priority" => details.annotations.priority,
            "last_modified" => details.annotations.last_modified,
            "meta" => details.meta,
            "ttl_ms" => details.cache.ttl_ms,
            "cache_scope" => details.cache.scope,
            "scopes" => details.scopes,
            "children" => children,
            $($own)*
        });
    };
}

with_details!(Resource, "a resource" { "size" => size, "uri" => uri });
with_details!(Template, "a template" {
    "parameters" => parameters,
    "completes" => completes,
    "pages" => list with pages,
    "tool" => tool with tool_name,
});
by_name!(Icon, "an icon" { "src" => src, "mime_type" => mime_type, "sizes" => sizes, "theme" => theme });
by_name!(CacheHint, "a caching hint" { "ttl_ms" => ttl_ms, "cache_scope" => scope });
by_name!(Parameter, "a parameter" {
    "name" => name,
    "type" => kind,
    "values" => values,
    "pattern" => pattern,
    "description" => description,
    "required" => required,
    "safe" => safe,
});
by_name!(VariableOptions, "options of a variable" {
    "kind" => kind,
    "policy" => policy,
    "empty" => empty,
    "chars" => chars,
});

by_name!(Tool, "a tool" {
    "name" => name,
    "title" => title,
    "description" => description,
    "input_schema" => input_schema,
    "output_schema" => output_schema,
    "annotations" => annotations,
    "icons" => icons,
    "meta" => meta,
    "scopes" => scopes,
    "ui" => ui,
    "ui_visibility" => ui_visibility,
});
by_name!(UiPage, "a page" {
    "uri" => uri,
    "html" => html,
    "name" => details.name,
    "title" => details.title,
    "description" => details.description,
    "icons" => details.icons,
    "meta" => details.meta,
    "scopes" => details.scopes,
    "ttl_ms" => details.cache.ttl_ms,
    "cache_scope" => details.cache.scope,
    "csp" => csp,
    "permissions" => permissions,
    "domain" => domain,
    "prefers_border" => prefers_border,
});
by_name!(UiCsp, "an object of origins" {
    "connect_domains" => connect_domains,
    "resource_domains" => resource_domains,
    "frame_domains" => frame_domains,
    "base_uri_domains" => base_uri_domains,
});
by_name!(ToolAnnotations, "hints about a tool" {
    "title" => title,
    "read_only_hint" => read_only,
    "destructive_hint" => destructive,
    "idempotent_hint" => idempotent,
    "open_world_hint" => open_world,
});
by_name!(Prompt, "a prompt" {
    "name" => name,
    "title" => title,
    "description" => description,
    "arguments" => arguments,
    "completes" => completes,
    "icons" => icons,
    "meta" => meta,
    "scopes" => scopes,
});
by_name!(PromptArgument, "an argument of a prompt" {
    "name" => name,
    "title" => title,
    "description" => description,
    "required" => required,
    "values" => values,
});

parse_by_name! {
    Audience, "user or assistant";
    CacheScope, "public or private";
    Theme, "light or dark";
    ToolVisibility, "model or app";
    UiPermission, "camera, microphone, geolocation or clipboard_write";
}

impl FromOption for ParameterKind {
    const EXPECTED: &'static str = "a text";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let word = String::from_option(value)?;
        let refused = || OptionError::sentence(format!("type is {word:?}, which is not a type of variables"));
        Self::parse(&word).ok_or_else(refused)
    }
}

macro_rules! parse_template_options {
    ($($type:ty),+) => {
        $(impl FromOption for $type {
            const EXPECTED: &'static str = "a text";

            fn from_option(value: OptionValue) -> Result<Self, OptionError> {
                let refused = |error: UnknownName| {
                    OptionError::not_allowed(&value, format!("one of: {}", error.expected.join(", ")))
                };
                match &value {
                    OptionValue::Text(word) => word.parse().map_err(refused),
                    _ => Err(OptionError::wrong_type(&value, Self::EXPECTED)),
                }
            }
        })+
    };
}
parse_template_options!(Kind, ValuePolicy, Chars, ExtraQuery);

/// Its members by name, for a list of icons.
impl From<Icon> for OptionValue {
    fn from(icon: Icon) -> Self {
        let mut members = vec![
            ("src".into(), Self::Text(icon.src)),
            ("sizes".into(), Self::List(icon.sizes.into_iter().map(Self::Text).collect())),
        ];
        members.extend(icon.mime_type.map(|mime_type| ("mime_type".into(), Self::Text(mime_type))));
        members.extend(icon.theme.map(|theme| ("theme".into(), theme.as_str().into())));
        Self::Members(members)
    }
}

/// Parses the name of a template's tool; `true` stands for the name of the template.
fn tool_name(value: OptionValue) -> Result<Option<String>, OptionError> {
    match value {
        OptionValue::Bool(is_tool) => Ok(is_tool.then(String::new)),
        value => Option::from_option(value),
    }
}

/// Parses whether a handler lists the resources, and whether in pages.
fn pages(value: OptionValue) -> Result<Option<ListSource>, OptionError> {
    Ok(Option::from_option(value)?.map(|pages| ListSource { pages }))
}
