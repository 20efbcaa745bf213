//! URLs with places for variables: `https://host/items/{id}`, or any other template of RFC 6570.
//!
//! ```text
//!   https://host/items/{id}/reviews{?page}  ──▶  api:///shop/reviews/{id}{?page}   what clients name
//!                                           ◀──  id=7, page=2                      the URL that is requested
//! ```
//!
//! Law: a value stays in its place, whatever it contains: one segment, one value of the query, or for `{+name}` whole
//! segments without steps (`..`). It never changes the scheme, the host or the path before it.

use mcp_resources_template::uri;
use ureq::http::Uri;

/// The most variables of a URL.
const MOST_VARIABLES: usize = 32;

/// A URL with places for variables.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    parts: Vec<UrlPart>,
    variables: Vec<UrlVariable>,
    takes_id: bool,
}

/// A variable of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlVariable {
    /// The name in the template of the resources.
    pub name: String,
    /// The name in the query of the URL.
    pub key: String,
    /// The place of its value.
    pub place: VariablePlace,
}

/// The place of the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariablePlace {
    /// One segment of the path, or a part of one.
    Segment,
    /// The segments at the end of the resource's path.
    Rest,
    /// A value of the query, which may be absent.
    Query,
}

#[derive(Clone, PartialEq, Eq)]
enum UrlPart {
    Text(String),
    Expression(UrlOperator, Vec<VariableUse>),
}

/// The text between the braces, without its variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlOperator {
    /// `{a}`, and `{+a}`.
    Plain,
    /// `{.a}`
    Dot,
    /// `{/a}`
    Segment,
    /// `{;a}`
    Parameter,
    /// `{?a}`, and `{&a}`.
    Query,
}

/// A variable in an expression, by its number.
#[derive(Clone, PartialEq, Eq)]
struct VariableUse {
    variable: usize,
    /// The number of characters that are used.
    prefix: Option<usize>,
}

/// The form of a value that cannot stand in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisplacedValue {
    /// The name of the variable.
    pub name: String,
}

impl UrlTemplate {
    /// Reads a URL.
    ///
    /// # Errors
    /// The reason why it is invalid: a phrase that follows the URL in a message, without repeating it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut template = Self { parts: Vec::new(), variables: Vec::new(), takes_id: false };
        let mut rest = text;
        let mut is_query = false;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, behind) = rest.split_at(at);
            is_query |= before.contains('?');
            template.push_text(before);
            let inside = behind.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let (inside, behind) = inside.ok_or("has a brace without its other one")?;
            template.push_expression(inside, &mut is_query)?;
            rest = behind;
        }
        template.push_text(rest);
        template.takes_id = template.variables.iter().all(|variable| variable.name == "id")
            && text.matches("{id}").count() > 0
            && text.matches('{').count() == text.matches("{id}").count();
        template.check(text)?;
        Ok(template)
    }

    /// A URL of a base, a path whose variables stand in braces, and names in the query. A name that no template may have is
    /// spelled with `_`.
    ///
    /// # Errors
    /// As [`UrlTemplate::parse`].
    pub fn assemble(base: &str, path: &str, query: &[&str]) -> Result<Self, &'static str> {
        let mut template = Self { parts: Vec::new(), variables: Vec::new(), takes_id: false };
        template.push_text(base.trim_end_matches('/'));
        let mut rest = path;
        while let Some((before, behind)) = rest.split_once('{') {
            template.push_text(before);
            let (name, behind) = behind.split_once('}').ok_or("has a brace without its other one")?;
            let variable = template.variable(name, VariablePlace::Segment)?;
            template
                .parts
                .push(UrlPart::Expression(UrlOperator::Plain, vec![VariableUse { variable, prefix: None }]));
            rest = behind;
        }
        template.push_text(rest);
        for key in query {
            let variable = template.variable(key, VariablePlace::Query)?;
            template
                .parts
                .push(UrlPart::Expression(UrlOperator::Query, vec![VariableUse { variable, prefix: None }]));
        }
        template.check(base)?;
        Ok(template)
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(UrlPart::Text(text.to_owned()));
        }
    }

    fn push_expression(&mut self, inside: &str, is_query: &mut bool) -> Result<(), &'static str> {
        let mut place = if *is_query { VariablePlace::Query } else { VariablePlace::Segment };
        let (operator, names) = match inside.split_at_checked(1) {
            Some(("+", names)) => {
                place = if *is_query { place } else { VariablePlace::Rest };
                (UrlOperator::Plain, names)
            }
            Some(("?" | "&", names)) => {
                *is_query = true;
                place = VariablePlace::Query;
                (UrlOperator::Query, names)
            }
            Some(("#", _)) => return Err("has a fragment, which no server sees; leave it out"),
            Some(("." | "/" | ";", _)) if *is_query => return Err("has a part of a path behind its query"),
            Some((".", names)) => (UrlOperator::Dot, names),
            Some(("/", names)) => (UrlOperator::Segment, names),
            Some((";", names)) => (UrlOperator::Parameter, names),
            _ => (UrlOperator::Plain, inside),
        };
        let mut used = Vec::new();
        for name in names.split(',') {
            let (name, prefix) = match name.split_once(':') {
                Some((name, digits)) => {
                    let prefix = digits.parse().ok().filter(|prefix| (1..10_000).contains(prefix));
                    (name, Some(prefix.ok_or("has a length that is no number from 1 to 9999")?))
                }
                None => (name, None),
            };
            let (name, is_exploded) = match name.strip_suffix('*') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let is_many = is_exploded && operator == UrlOperator::Segment;
            let variable = self.variable(name, if is_many { VariablePlace::Rest } else { place })?;
            used.push(VariableUse { variable, prefix });
        }
        self.parts.push(UrlPart::Expression(operator, used));
        Ok(())
    }

    /// The number of the variable with this key.
    fn variable(&mut self, key: &str, place: VariablePlace) -> Result<usize, &'static str> {
        if let Some(known) = self.variables.iter().position(|variable| variable.key == key) {
            return Ok(known);
        }
        let name: String = key
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' })
            .collect();
        let is_taken = self.variables.iter().any(|variable| variable.name == name);
        if name.is_empty() || is_taken {
            return Err("has a variable without a name of its own; give it one of letters, digits and `_`");
        }
        if self.variables.len() >= MOST_VARIABLES {
            return Err("has more than 32 variables");
        }
        self.variables.push(UrlVariable { name, key: key.to_owned(), place });
        Ok(self.variables.len() - 1)
    }

    fn check(&self, text: &str) -> Result<(), &'static str> {
        let Some((scheme, rest)) = text.split_once("://") else { return Err("does not begin with https://") };
        if !matches!(scheme, "http" | "https") {
            return Err("begins neither with https:// nor with http://");
        }
        let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('{') {
            return Err(
                "has a variable in its host; one can stand in the path or the query alone, behind a `/`",
            );
        }
        if authority.contains('@') {
            return Err("has a user or a password; send them as a header from the environment");
        }
        if text.contains('#') {
            return Err("has a fragment, which no server sees; leave it out");
        }
        let is_text = |part: &UrlPart| match part {
            UrlPart::Text(text) => {
                text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'{' | b'}'))
            }
            UrlPart::Expression(..) => true,
        };
        if !self.parts.iter().all(is_text) {
            return Err("is no URL; percent-encode what is not ASCII");
        }
        let mut places = self.variables.iter().filter(|variable| variable.place != VariablePlace::Query);
        let rests = places.clone().filter(|variable| variable.place == VariablePlace::Rest).count();
        let ends = places.next_back().is_none_or(|last| last.place == VariablePlace::Rest);
        if rests > 1 || rests == 1 && !ends {
            return Err("has `{+…}` before another variable of its path; it can be the last one alone");
        }
        let sample =
            self.expand_with(&|_| Some("x")).map_err(|_| "is no URL; percent-encode what is not ASCII")?;
        let sample: Uri = sample.parse().map_err(|_| "is no URL; percent-encode what is not ASCII")?;
        let is_named = sample.host().is_some_and(|host| !host.is_empty());
        if is_named { Ok(()) } else { Err("has no host") }
    }

    /// Whether its one variable is `{id}`, which stands for the end of the resource's URI.
    pub fn takes_id(&self) -> bool {
        self.takes_id
    }

    /// Whether its resources have a template of their own.
    pub fn is_template(&self) -> bool {
        !self.takes_id && !self.variables.is_empty()
    }

    /// The variables, in the order of the URL.
    pub fn variables(&self) -> &[UrlVariable] {
        &self.variables
    }

    /// Whether a resource needs values in its path.
    pub fn has_segments(&self) -> bool {
        self.variables.iter().any(|variable| variable.place != VariablePlace::Query)
    }

    /// The template of the resources, which begin with `uri`.
    pub fn resources(&self, uri: &str) -> String {
        let mut template = uri.to_owned();
        for variable in &self.variables {
            match variable.place {
                VariablePlace::Segment => template.extend(["/{", &variable.name, "}"]),
                VariablePlace::Rest => template.extend(["/{+", &variable.name, "}"]),
                VariablePlace::Query => {}
            }
        }
        let query = self.variables.iter().filter(|variable| variable.place == VariablePlace::Query);
        let query: Vec<&str> = query.map(|variable| variable.name.as_str()).collect();
        if !query.is_empty() {
            template.extend(["{?", &query.join(","), "}"]);
        }
        template
    }

    /// The URL with `id` in each place, in which the variable is `{id}`.
    pub fn expand(&self, id: &str) -> String {
        let mut url = String::new();
        for part in &self.parts {
            match part {
                UrlPart::Text(text) => url.push_str(text),
                UrlPart::Expression(..) => push_segment(&mut url, id),
            }
        }
        url
    }

    /// The URL with these values.
    ///
    /// # Errors
    /// A value of the path is absent, empty, or a step such as `..`.
    pub fn expand_with<'v>(&self, value: &dyn Fn(&str) -> Option<&'v str>) -> Result<String, MisplacedValue> {
        let mut url = String::new();
        for part in &self.parts {
            let (operator, used) = match part {
                UrlPart::Text(text) => {
                    url.push_str(text);
                    continue;
                }
                UrlPart::Expression(operator, used) => (*operator, used),
            };
            let mut is_first = true;
            for one in used {
                let Some(variable) = self.variables.get(one.variable) else { continue };
                let given = value(&variable.name);
                let misplaced = || MisplacedValue { name: variable.name.clone() };
                let given = match (given, variable.place) {
                    (None, VariablePlace::Query) => continue,
                    (None | Some(""), VariablePlace::Segment | VariablePlace::Rest) => {
                        return Err(misplaced());
                    }
                    (Some(given), _) => cut(given, one.prefix),
                };
                operator.begin(&mut url, is_first, &variable.key, given);
                is_first = false;
                match variable.place {
                    VariablePlace::Rest => push_segments(&mut url, given).ok_or_else(misplaced)?,
                    VariablePlace::Segment => push_segment(&mut url, given),
                    VariablePlace::Query => uri::encode(&mut url, given.as_bytes(), is_unreserved),
                }
            }
        }
        Ok(url)
    }
}

impl UrlOperator {
    /// Writes what stands before a value.
    fn begin(self, url: &mut String, is_first: bool, key: &str, value: &str) {
        match self {
            Self::Plain if is_first => {}
            Self::Plain => url.push(','),
            Self::Dot => url.push('.'),
            Self::Segment => url.push('/'),
            Self::Parameter => {
                url.push(';');
                uri::encode(url, key.as_bytes(), is_unreserved);
                if !value.is_empty() {
                    url.push('=');
                }
            }
            Self::Query => {
                url.push(if url.contains('?') { '&' } else { '?' });
                uri::encode(url, key.as_bytes(), is_unreserved);
                url.push('=');
            }
        }
    }
}

fn cut(value: &str, prefix: Option<usize>) -> &str {
    let end = prefix.and_then(|prefix| value.char_indices().nth(prefix));
    end.map_or(value, |(end, _)| value.get(..end).unwrap_or(value))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'.')
}

/// Appends a value as one segment.
fn push_segment(url: &mut String, value: &str) {
    // Dots alone would be a step in the path.
    let is_dots = value.bytes().all(|byte| byte == b'.');
    uri::encode(url, value.as_bytes(), |byte| is_unreserved(byte) && !(is_dots && byte == b'.'));
}

/// Appends a value as segments; `None` if one is empty or a step.
fn push_segments(url: &mut String, value: &str) -> Option<()> {
    for (at, segment) in value.split('/').enumerate() {
        if matches!(segment, "" | "." | "..") {
            return None;
        }
        if at > 0 {
            url.push('/');
        }
        push_segment(url, segment);
    }
    Some(())
}

/// A URL may have a key in its query.
impl std::fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTemplate").field("variables", &self.variables).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: whatever an id contains, it is one encoded segment.
    #[test]
    fn an_id_is_one_segment() {
        let url = UrlTemplate::parse("https://host/items/{id}/x?q={id}").unwrap();
        for (id, encoded) in [
            ("7", "7"),
            ("a.b-c_d~e", "a.b-c_d~e"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("../..", "..%2F.."),
            ("//host", "%2F%2Fhost"),
            ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
            ("a?b#c&d=e%2F", "a%3Fb%23c%26d%3De%252F"),
            ("@evil:80", "%40evil%3A80"),
            ("検", "%E6%A4%9C"),
        ] {
            assert_eq!(url.expand(id), format!("https://host/items/{encoded}/x?q={encoded}"));
        }
    }

    // S-20: what is no URL, and where an id could lead elsewhere, is refused at the start.
    #[test]
    fn wrong_urls_are_refused() {
        for (url, fault) in [
            ("", "does not begin with https://"),
            ("host/items", "does not begin with https://"),
            ("ftp://host/", "begins neither"),
            ("{id}://host/", "begins neither"),
            ("https://{id}/", "in its host"),
            ("https://api.{id}.example/x", "in its host"),
            ("https://host:{id}/", "in its host"),
            ("https://user:secret@host/", "has a user or a password"),
            ("https://host/{a-b}{a_b}", "a variable without a name of its own"),
            ("https://host/{}", "a variable without a name of its own"),
            ("https://host/{id", "a brace without its other one"),
            ("https://host/id}", "a brace without its other one"),
            ("https://host/{#id}", "has a fragment"),
            ("https://host/x?a={/id}", "a part of a path behind its query"),
            ("https://host/{+a}/{b}", "before another variable"),
            ("https://host/{a:x}", "has a length that is no number"),
            ("https://host/x#y", "has a fragment"),
            ("https:///x", "is no URL"),
            ("https://host/a b", "is no URL"),
            ("https://host/\r\nx", "is no URL"),
        ] {
            let found = UrlTemplate::parse(url).unwrap_err();
            assert!(found.contains(fault), "{url}: {found}");
        }
        assert!(UrlTemplate::parse("http://127.0.0.1:80?q={id}").is_ok());
    }

    // S-20: templates of every form name resources, and their values stay in their places.
    #[test]
    fn templates_have_resources() {
        for (url, resources, expanded) in [
            (
                "https://h/items/{id}/reviews{?page,lang}",
                "api:///s/e/{id}{?page,lang}",
                "https://h/items/a%2F..%3F/reviews?page=1%262&lang=%C3%A9%20",
            ),
            ("https://h/{shop}/{item}", "api:///s/e/{shop}/{item}", "https://h/..%2Fb/%2E%2E"),
            ("https://h/x{/rest*}?k=1{&page}", "api:///s/e/{+rest}{?page}", "https://h/x/c/d?k=1&page=1%262"),
            ("https://h/f/{+rest}{.ext}", "", ""),
            ("https://h/f/{+rest}", "api:///s/e/{+rest}", "https://h/f/c/d"),
            ("https://h/f{.ext}{;v}", "api:///s/e/{ext}/{v}", "https://h/f.gz;v=9"),
            ("https://h/f?q={page}&n={none}", "api:///s/e{?page,none}", "https://h/f?q=1%262&n="),
            ("https://h/{id:2}/{id}", "api:///s/e/{id}", "https://h/a%2F/a%2F..%3F"),
        ] {
            let Ok(template) = UrlTemplate::parse(url) else {
                assert!(resources.is_empty(), "{url}");
                continue;
            };
            assert!(template.is_template(), "{url}");
            assert_eq!(template.resources("api:///s/e"), resources, "{url}");
            let value = |name: &str| match name {
                "id" => Some("a/..?"),
                "shop" => Some("../b"),
                "item" => Some(".."),
                "page" => Some("1&2"),
                "lang" => Some("é "),
                "rest" => Some("c/d"),
                "ext" => Some("gz"),
                "v" => Some("9"),
                _ => None,
            };
            assert_eq!(template.expand_with(&value).as_deref(), Ok(expanded), "{url}");
        }
        let template = UrlTemplate::parse("https://h/f/{+rest}{?page}").unwrap();
        for rest in ["", "/", "a//b", "../b", "a/.", "a/.."] {
            let misplaced = MisplacedValue { name: "rest".into() };
            assert_eq!(template.expand_with(&|_| Some(rest)), Err(misplaced), "{rest}");
        }
        assert!(template.expand_with(&|_| None).is_err());
    }

    // S-20: names of a document that no template may have.
    #[test]
    fn names_of_documents_are_spelled_otherwise() {
        let template =
            UrlTemplate::assemble("https://h/v1/", "/items/{item-id}", &["filter[name]", "q"]).unwrap();
        assert_eq!(template.resources("api:///s/e"), "api:///s/e/{item_id}{?filter_name_,q}");
        let url = template.expand_with(&|name| if name == "q" { None } else { Some("a b") });
        assert_eq!(url.as_deref(), Ok("https://h/v1/items/a%20b?filter%5Bname%5D=a%20b"));
        assert!(UrlTemplate::assemble("https://h", "/{a-b}/{a_b}", &[]).is_err());
        assert!(UrlTemplate::assemble("https://h{x}", "/", &[]).is_err());
        assert!(UrlTemplate::assemble("https://h", "/a#b", &[]).is_err());
    }
}
