//! Pages of MCP Apps (SEP-1865, extension `io.modelcontextprotocol/ui`): HTML that a host shows beside the results of a
//! tool.
//!
//! Law: a page is an ordinary constant resource. Only this module knows its media type and the members of `_meta.ui`.

use super::{Details, RegistrationError, Resource};
use crate::jsonrpc::{Json, ObjectWriter, object};

/// The media type of a page.
pub const UI_MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// The member of `_meta` about pages.
pub(crate) const UI: &str = "ui";
/// The scheme of every page, with its colon.
pub(crate) const UI_SCHEME: &str = "ui:";

/// An HTML page that a host shows in a sandbox beside the results of a tool, at a URI with the scheme `ui`.
///
/// ```
/// use mcp_resources_engine::resource::{UiCsp, UiPage};
/// let csp = UiCsp { connect_domains: vec!["https://api.example.com".into()], ..UiCsp::default() };
/// let page = UiPage::new("ui://shop/order", "<!doctype html><title>Order</title>").csp(csp).prefers_border(true);
/// assert_eq!(page.uri, "ui://shop/order");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[must_use = "a page does nothing until it is registered"]
pub struct UiPage {
    /// Its URI: the scheme must be `ui`.
    pub uri: String,
    /// The HTML5 document.
    pub html: String,
    /// The origins that the page may use besides its own. Default: none.
    pub csp: UiCsp,
    /// The browser features that the page asks for. Default: none.
    pub permissions: Vec<UiPermission>,
    /// An origin of its own for the page, in the form that the host documents. Default: chosen by the host.
    pub domain: Option<String>,
    /// Whether the host draws a border and a background. Default: the host decides.
    pub prefers_border: Option<bool>,
    /// The properties that it shares with resources. The media type is always [`UI_MEDIA_TYPE`].
    pub details: Details,
}

/// The origins that a page may use: `https://api.example.com`, `https://*.example.com`. A host blocks all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UiCsp {
    /// Of network requests.
    pub connect_domains: Vec<String>,
    /// Of scripts, styles, images, fonts and media.
    pub resource_domains: Vec<String>,
    /// Of frames inside the page.
    pub frame_domains: Vec<String>,
    /// Of base URIs of the document.
    pub base_uri_domains: Vec<String>,
}

/// A browser feature that a page may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UiPermission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The position of the device.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

/// A caller of a tool with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolVisibility {
    /// The model.
    Model,
    /// The page.
    App,
}

impl UiPermission {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }

    /// Parses a name, as on the wire or as `clipboard_write`.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Camera, Self::Microphone, Self::Geolocation, Self::ClipboardWrite];
        let is_other = |own: &Self| *own == Self::ClipboardWrite && word == "clipboard_write";
        all.into_iter().find(|own| own.as_str() == word || is_other(own))
    }
}

impl ToolVisibility {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::App => "app",
        }
    }

    /// Parses a name on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Model, Self::App].into_iter().find(|own| own.as_str() == word)
    }
}

impl UiPage {
    /// The page at `uri` with the document `html`.
    pub fn new(uri: impl Into<String>, html: impl Into<String>) -> Self {
        Self { uri: uri.into(), html: html.into(), ..Self::default() }
    }

    /// Sets the origins that the page may use. Default: none.
    pub fn csp(mut self, csp: UiCsp) -> Self {
        self.csp = csp;
        self
    }

    /// Asks for browser features. Default: none.
    pub fn permissions(mut self, permissions: impl IntoIterator<Item = UiPermission>) -> Self {
        self.permissions = permissions.into_iter().collect();
        self
    }

    /// Sets the origin of the page, in the form that the host documents. Default: chosen by the host.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Sets whether the host draws a border and a background. Default: the host decides.
    pub fn prefers_border(mut self, border: bool) -> Self {
        self.prefers_border = Some(border);
        self
    }

    /// Sets the label for people. Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.details.title = Some(title.into());
        self
    }

    /// Sets the description. Default: none.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.details.description = Some(description.into());
        self
    }

    /// The resource, and its constant contents.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first field that is invalid.
    pub fn into_resource(self) -> Result<(Resource, String), RegistrationError> {
        let invalid = |field: &str, value: &str, expected: &str| RegistrationError::InvalidField {
            of: self.uri.clone(),
            field: field.into(),
            value: value.into(),
            expected: expected.into(),
        };
        if !has_ui_scheme(&self.uri) {
            return Err(invalid("uri", &self.uri, "a URI that begins with ui://"));
        }
        let given = self.details.meta.as_deref().unwrap_or("{}");
        if member(given, UI).is_some() {
            let expected =
                "no member `ui`: csp, permissions, domain and prefers_border are options of the page";
            return Err(invalid("_meta", given, expected));
        }
        for (name, origins) in self.csp.parts() {
            if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
                return Err(invalid(
                    &format!("csp.{name}"),
                    wrong,
                    "origins such as https://api.example.com",
                ));
            }
        }
        if let Some(domain) = self.domain.as_deref().filter(|domain| !is_domain(domain)) {
            return Err(invalid("domain", domain, "a host name such as app.example.com"));
        }
        let meta = self.meta(given);
        let Self { uri, html, mut details, .. } = self;
        details.mime_type = Some(UI_MEDIA_TYPE.to_owned());
        details.meta = meta.or(details.meta);
        let mut resource = Resource::new(uri);
        *resource.details = details;
        Ok((resource, html))
    }

    /// The members `given`, and behind them those about the page. `None` if there is nothing to say about it.
    fn meta(&self, given: &str) -> Option<String> {
        let mut about = Vec::new();
        object(&mut about, |ui| self.write(ui));
        if about == b"{}" {
            return None;
        }
        let about = String::from_utf8(about).ok()?;
        let own = given.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let comma = if own.is_empty() { "" } else { "," };
        Some(format!(r#"{{{own}{comma}"{UI}":{about}}}"#))
    }

    fn write(&self, ui: &mut ObjectWriter<'_>) {
        ui.object_unless_empty("csp", |csp| {
            for (name, origins) in self.csp.parts().into_iter().filter(|(_, origins)| !origins.is_empty()) {
                csp.array(name, |array| origins.iter().for_each(|origin| array.str(origin)));
            }
        });
        ui.object_unless_empty("permissions", |all| {
            for (at, permission) in self.permissions.iter().enumerate() {
                if !self.permissions.get(..at).unwrap_or_default().contains(permission) {
                    all.object(permission.as_str(), |_| ());
                }
            }
        });
        if let Some(domain) = &self.domain {
            ui.str("domain", domain);
        }
        if let Some(border) = self.prefers_border {
            ui.bool("prefersBorder", border);
        }
    }
}

impl UiCsp {
    fn parts(&self) -> [(&'static str, &[String]); 4] {
        [
            ("connectDomains", &self.connect_domains),
            ("resourceDomains", &self.resource_domains),
            ("frameDomains", &self.frame_domains),
            ("baseUriDomains", &self.base_uri_domains),
        ]
    }
}

/// Whether `uri` has the scheme of pages, in any case.
pub(crate) fn has_ui_scheme(uri: &str) -> bool {
    uri.get(..UI_SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(UI_SCHEME))
}

/// The text of a member of a JSON object.
pub(crate) fn member(object: &str, name: &str) -> Option<String> {
    let members = Json::parse(object.as_bytes(), usize::MAX)?.object()?;
    members.get(name).map(|value| value.raw().to_owned())
}

/// A scheme and a host, without anything that could end a directive or the header that it goes into.
fn is_origin(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'\'' | b'"' | b'\\');
    let parts = text.split_once("://");
    text.bytes().all(is_plain) && parts.is_some_and(|(scheme, host)| !scheme.is_empty() && !host.is_empty())
}

fn is_domain(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(page: UiPage) -> String {
        page.into_resource().unwrap_err().to_string()
    }

    #[test]
    fn a_page_has_the_members_that_are_set() {
        let (resource, html) = UiPage::new("ui://a", "<p>").into_resource().unwrap();
        assert_eq!(resource.details.mime_type.as_deref(), Some(UI_MEDIA_TYPE));
        assert_eq!((resource.details.meta, &*html), (None, "<p>"));
        let csp = UiCsp { connect_domains: vec!["https://*.a.example".into()], ..UiCsp::default() };
        let page = UiPage::new("UI://a", "")
            .csp(csp)
            .permissions([UiPermission::Camera, UiPermission::ClipboardWrite, UiPermission::Camera])
            .domain("a.example")
            .prefers_border(false);
        let mut own = page.clone();
        own.details.meta = Some(r#" {"com.example/a": 1} "#.into());
        let ui = r#""ui":{"csp":{"connectDomains":["https://*.a.example"]},"permissions":{"camera":{},"clipboardWrite":{}},"domain":"a.example","prefersBorder":false}"#;
        let meta = |page: UiPage| page.into_resource().unwrap().0.details.meta.unwrap();
        assert_eq!(meta(page), format!("{{{ui}}}"));
        assert_eq!(meta(own), format!(r#"{{"com.example/a": 1,{ui}}}"#));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let csp = |origin: &str| UiCsp { frame_domains: vec![origin.into()], ..UiCsp::default() };
        let page = || UiPage::new("ui://a", "");
        assert!(said(UiPage::new("http://a", "")).contains("a URI that begins with ui://"));
        for origin in
            ["", "example.com", "https://", "https://a b", "https://a; script-src *", "https://a\r\n"]
        {
            assert!(said(page().csp(csp(origin))).contains("csp.frameDomains is"), "{origin}");
        }
        assert!(said(page().domain("a/b")).contains("domain is \"a/b\""));
        let mut own = page();
        own.details.meta = Some(r#"{"ui":{}}"#.into());
        assert!(said(own).contains("no member `ui`"));
    }
}
