//! Validation at registration: every field is checked here, once, before a resource or template can be listed or read.
//!
//! Law: a value that passes is valid in every revision that has its field. Input is never corrected silently, with two
//! exceptions: white space in JSON is removed, and characters that RFC 3986 forbids in a URI are percent-encoded.

use crate::catalog::cursor::Cursor;
use crate::catalog::items::ItemSource;
use crate::limits::Limits;
use crate::meta::{self, InvalidMeta};
use crate::resource::{
    Details, Icon, Parameter, ParameterCheck, RegistrationError, Resource, Template, has_ui_scheme,
    is_date_time, is_icon_size, is_media_type, is_scope,
};
use crate::suggest;
use mcp_resources_template::UriTemplate;
use mcp_resources_template::uri;
use std::sync::Arc;

/// The largest integer that every JSON parser represents exactly (2⁵³ − 1).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Checks a resource, normalizes it for listing, and returns its canonical URI. Also for runtimes that list resources
/// without registering them.
///
/// The URI is listed as given, or in canonical form if it has characters that RFC 3986 forbids.
///
/// # Errors
/// [`RegistrationError`] for the first field that is invalid.
pub fn check_resource(resource: &mut Resource, limits: &Limits) -> Result<Arc<str>, RegistrationError> {
    let canonical = check_uri(&resource.uri, limits)?;
    let is_listed_as_given = is_rfc_3986(&resource.uri);
    let of = if is_listed_as_given { &resource.uri } else { &*canonical };
    let field = CheckedField { of };
    if resource.size.is_some_and(|size| size > MAX_INTEGER) {
        return Err(field.invalid("size", resource.size.unwrap_or_default(), "at most 2^53 - 1 bytes"));
    }
    if resource.children && canonical.contains(['?', '#']) {
        return Err(field.invalid("children", "true", "a URI without query and fragment"));
    }
    field.details(&mut resource.details, limits)?;
    if !is_listed_as_given {
        resource.uri = canonical.to_string();
    }
    Ok(canonical)
}

/// Checks a URI listed by another server and returns its canonical form.
///
/// # Errors
/// [`RegistrationError`] if it is not a URI or is too long.
pub(crate) fn check_uri(uri: &str, limits: &Limits) -> Result<Arc<str>, RegistrationError> {
    let canonical = uri::normalize(uri, limits.uri).map_err(|error| invalid_uri(uri, &error))?;
    if canonical.len() > Cursor::MAX_KEY {
        return Err(RegistrationError::LimitReached { what: "uri", limit: Cursor::MAX_KEY });
    }
    Ok(canonical.into())
}

/// A template that passed all checks, with the values derived from it.
pub(super) struct CheckedTemplate {
    pub(super) template: Template,
    pub(super) parsed: UriTemplate,
    pub(super) checks: Vec<ParameterCheck>,
}

/// Checks a template and compiles it.
///
/// # Errors
/// [`RegistrationError`] for the first field that is invalid.
pub(super) fn check_template(
    mut template: Template,
    limits: &Limits,
) -> Result<CheckedTemplate, RegistrationError> {
    let parsed = UriTemplate::with_options(&template.uri_template, &template.options).map_err(|error| {
        RegistrationError::InvalidTemplate {
            template: error.template,
            offset: error.offset,
            reason: error.reason,
        }
    })?;
    let field = CheckedField { of: &template.uri_template };
    field.details(&mut template.details, limits)?;
    field.option_names(&template, &parsed)?;
    for (at, variable) in template.completes.iter().enumerate() {
        field.variable(&format!("completes[{at}]"), variable, &parsed)?;
    }
    let checks = field.parameters(&template.parameters, &parsed)?;
    Ok(CheckedTemplate { template, parsed, checks })
}

/// The error for a text that was registered as a URI and is none, with the likely correction.
pub(crate) fn invalid_uri(uri: &str, error: &uri::InvalidUri) -> RegistrationError {
    let remedy = match suggest::template(uri) {
        Some(template) => format!("; did you mean {template:?}?"),
        None if uri.contains('{') => "; a text with variables is registered as a template".to_owned(),
        None => String::new(),
    };
    let reason = format!("{} at byte {}{remedy}", error.reason, error.offset);
    RegistrationError::InvalidUri { uri: uri.to_owned(), reason }
}

/// Whether `uri` has only characters that RFC 3986 allows where they stand. Brackets around a host count as forbidden:
/// the canonical form keeps them.
pub(super) fn is_rfc_3986(uri: &str) -> bool {
    uri.bytes().all(|byte| byte.is_ascii() && !matches!(byte, b'[' | b']' | b'|' | b'^'))
}

/// The registration that a field belongs to; its methods return errors that name both.
pub(super) struct CheckedField<'a> {
    pub(super) of: &'a str,
}

impl CheckedField<'_> {
    pub(super) fn invalid(
        &self,
        field: impl Into<String>,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> RegistrationError {
        let of = self.of.to_owned();
        RegistrationError::InvalidField {
            of,
            field: field.into(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    pub(super) fn ensure(
        &self,
        is_valid: bool,
        field: &str,
        value: &str,
        expected: &str,
    ) -> Result<(), RegistrationError> {
        if is_valid { Ok(()) } else { Err(self.invalid(field, value, expected)) }
    }

    fn details(&self, details: &mut Details, limits: &Limits) -> Result<(), RegistrationError> {
        if let Some(name) = &details.name {
            self.ensure(!name.trim().is_empty(), "name", name, "a name that is not empty")?;
        }
        if let Some(mime_type) = &details.mime_type {
            self.media_type("mimeType", mime_type)?;
        }
        let annotations = &details.annotations;
        if let Some(priority) = annotations.priority.filter(|priority| !(0.0..=1.0).contains(priority)) {
            return Err(self.invalid("priority", priority, "a number from 0 to 1"));
        }
        if let Some(time) = &annotations.last_modified {
            let expected = "an ISO 8601 time with its zone, as 2025-01-12T15:00:58Z";
            self.ensure(is_date_time(time), "lastModified", time, expected)?;
        }
        let ttl = details.cache.ttl_ms;
        if ttl > MAX_INTEGER {
            return Err(self.invalid("ttlMs", ttl, "at most 2^53 - 1 ms"));
        }
        if let Some(scope) = details.scopes.iter().find(|scope| !is_scope(scope)) {
            let expected = "printable ASCII without spaces, quotes and backslashes";
            return Err(self.invalid("scopes", scope, expected));
        }
        for (at, icon) in details.icons.iter().enumerate() {
            self.icon(icon, at, limits)?;
        }
        self.objects(details, limits)
    }

    fn objects(&self, details: &mut Details, limits: &Limits) -> Result<(), RegistrationError> {
        self.meta(&mut details.meta, limits)?;
        if let Some(object) = &mut details.annotations.extra {
            let Some(checked) = meta::object_text(object, limits.nesting) else {
                return Err(self.invalid("annotations", &object, "the text of a JSON object"));
            };
            *object = checked;
        }
        Ok(())
    }

    /// Checks the members of `_meta`, and removes their white space.
    pub(super) fn meta(&self, object: &mut Option<String>, limits: &Limits) -> Result<(), RegistrationError> {
        if let Some(object) = object {
            *object = meta::check_object(object, limits.nesting).map_err(|error| match error {
                InvalidMeta::NotAnObject => self.invalid("_meta", &object, "the text of a JSON object"),
                InvalidMeta::Key(key) => {
                    self.invalid("_meta", key, "keys once each, as name or com.example/name")
                }
                InvalidMeta::Reserved(key) => {
                    RegistrationError::ReservedMetaKey { of: self.of.to_owned(), key }
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn icon(&self, icon: &Icon, at: usize, limits: &Limits) -> Result<(), RegistrationError> {
        let path = |member: &str| format!("icons[{at}].{member}");
        let expected = "an http:, https: or data: URI";
        self.ensure(is_icon_src(&icon.src, limits), &path("src"), &icon.src, expected)?;
        if let Some(mime_type) = &icon.mime_type {
            self.media_type(&path("mimeType"), mime_type)?;
        }
        let wrong = icon.sizes.iter().find(|size| !is_icon_size(size));
        wrong.map_or(Ok(()), |size| Err(self.invalid(path("sizes"), size, "WxH in pixels, as 48x48, or any")))
    }

    fn media_type(&self, field: &str, text: &str) -> Result<(), RegistrationError> {
        self.ensure(is_media_type(text), field, text, "a media type, as text/plain")
    }

    /// Options for a variable that the template does not have are a typing mistake: refuse them.
    fn option_names(&self, template: &Template, parsed: &UriTemplate) -> Result<(), RegistrationError> {
        let mut names = template.options.variables.keys();
        names.try_for_each(|name| self.variable("vars", name, parsed))
    }

    fn variable(&self, field: &str, name: &str, parsed: &UriTemplate) -> Result<(), RegistrationError> {
        let variables = parsed.variables();
        if variables.iter().any(|variable| &*variable.name == name) {
            return Ok(());
        }
        let names: Vec<_> = variables.iter().map(|variable| &*variable.name).collect();
        Err(self.invalid(field, name, format!("a variable of the template: {}", names.join(", "))))
    }

    pub(super) fn parameters(
        &self,
        parameters: &[Parameter],
        parsed: &UriTemplate,
    ) -> Result<Vec<ParameterCheck>, RegistrationError> {
        let mut checks: Vec<ParameterCheck> = Vec::with_capacity(parameters.len());
        for (at, parameter) in parameters.iter().enumerate() {
            let path = |member: &str| format!("parameters[{at}].{member}");
            self.variable(&path("name"), &parameter.name, parsed)?;
            if checks.iter().any(|other| other.parameter().name == parameter.name) {
                return Err(self.invalid(path("name"), &parameter.name, "each variable once"));
            }
            let pattern = parameter.pattern.as_deref().unwrap_or_default();
            let check = ParameterCheck::new(parameter.clone()).map_err(|reason| {
                self.invalid(path("pattern"), pattern, format!("a regular expression: {reason}"))
            })?;
            if let Some(value) = parameter.values.iter().find(|value| !check.accepts(value)) {
                return Err(self.invalid(
                    path("enum"),
                    value,
                    "values of the parameter's own type and pattern",
                ));
            }
            checks.push(check);
        }
        Ok(checks)
    }
}

/// Clients must refuse any scheme other than these ("Icons").
fn is_icon_src(src: &str, limits: &Limits) -> bool {
    let Some((scheme, rest)) = src.split_once(':') else { return false };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {
            let host = rest.strip_prefix("//").unwrap_or_default();
            !host.is_empty()
                && !host.starts_with(['/', '?', '#', ':'])
                && uri::normalize(src, limits.uri).is_ok()
        }
        "data" => rest.contains(',') && rest.bytes().all(|byte| byte.is_ascii_graphic()),
        _ => false,
    }
}

/// Checks that a resource whose handler decides who may use it has a handler, and is no page of a tool: a tool names its
/// page to everyone who may call it.
pub(super) fn check_access(resource: &Resource, source: &ItemSource) -> Result<(), RegistrationError> {
    let expected = match source {
        _ if !resource.details.access => return Ok(()),
        _ if has_ui_scheme(&resource.uri) => "none for a page of a tool",
        ItemSource::Handler(_) => return Ok(()),
        ItemSource::Text(_) | ItemSource::Bytes(_) => "none for a constant; serve it with a handler",
    };
    Err(CheckedField { of: &resource.uri }.invalid("access", "true", expected))
}
