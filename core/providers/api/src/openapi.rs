//! Endpoints of an OpenAPI document: the GET operations that the operator allows.
//!
//! ```text
//!   text ──▶ value, bounded ──▶ paths ──allowed──▶ GET operation ──▶ endpoint: URL, names, texts, types
//!                                  └── "$ref" inside the document, a few steps
//! ```
//!
//! Law: the document is hostile. Nothing but GET is read of it, references lead into the document alone, and every count and
//! text has a limit. It chooses no host for credentials: a document from a URL may name its own origin alone.

use super::template::UrlTemplate;
use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_kit::values::{self, FileValue, ValueLimits, ValueMembers, json};
use mcp_resources_runtime::transport::YamlSchema;
use mcp_resources_template::uri;
use std::collections::HashSet;

/// The largest document, in bytes.
pub(super) const MOST_DOCUMENT: u64 = 16 << 20;
const LIMITS: ValueLimits = ValueLimits { values: 1_000_000, bytes: 32 << 20, depth: 64 };
/// The most endpoints of one document.
const MOST_ENDPOINTS: usize = 500;
/// The most parameters of an operation that are read.
const MOST_PARAMETERS: usize = 100;
/// The most references that follow each other.
const MOST_STEPS: usize = 8;
/// The most values of a parameter that are completed, and the longest in bytes.
const MOST_VALUES: (usize, usize) = (100, 200);
/// The longest title, and the longest description, in characters.
const MOST_TEXT: (usize, usize) = (200, 2_000);
/// The most lines for the log.
const MOST_NOTES: usize = 20;
/// The most operations that a message names.
const MOST_NAMED: usize = 10;

/// An endpoint of a document.
#[derive(Debug)]
pub(super) struct OpenApiEndpoint {
    pub(super) name: String,
    pub(super) url: UrlTemplate,
    pub(super) facts: EndpointFacts,
}

/// The description of an endpoint, apart from its URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointFacts {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) parameters: Vec<ParameterFacts>,
}

/// The description of a parameter.
#[derive(Clone, Debug)]
pub(crate) struct ParameterFacts {
    /// The name of the variable.
    pub(super) name: String,
    pub(super) kind: ParameterForm,
    /// The only values, if there are few.
    pub(super) values: Vec<String>,
}

/// The form of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterForm {
    Text,
    Integer,
    Number,
    Flag,
}

/// The place of a document, and the part of it that is served.
#[derive(Debug)]
pub(super) struct OpenApiChoice<'c> {
    /// The URL of a document that was fetched.
    pub(super) origin: Option<&'c str>,
    /// The operator's own base.
    pub(super) base_url: Option<&'c str>,
    pub(super) allow: &'c [String],
}

/// The endpoints, and lines for the log about what was left out.
#[derive(Debug, Default)]
pub(super) struct OpenApiEndpoints {
    pub(super) endpoints: Vec<OpenApiEndpoint>,
    pub(super) notes: Vec<String>,
}

impl ParameterFacts {
    /// The expected form, if `value` has another one.
    pub(super) fn refuses(&self, value: &str) -> Option<String> {
        if !self.values.is_empty() {
            let is_known = self.values.iter().any(|known| known == value);
            return (!is_known).then(|| {
                let first = self.values.get(..MOST_NAMED);
                let (named, rest) = first.map_or((&*self.values, ""), |first| (first, ", …"));
                format!("one of {}{rest}", named.join(", "))
            });
        }
        let (fits, expected) = match self.kind {
            ParameterForm::Text => (true, ""),
            ParameterForm::Integer => (is_integer(value), "a whole number"),
            ParameterForm::Number => (is_number(value), "a number"),
            ParameterForm::Flag => (matches!(value, "true" | "false"), "true or false"),
        };
        (!fits).then(|| expected.to_owned())
    }
}

fn is_integer(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
        && value.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Reads a document in JSON or YAML. No text of it is in an error but names of operations, which are in its index too.
///
/// # Errors
/// It cannot be read, is of another version, or has nothing that is allowed.
pub(super) fn read(
    api: &str,
    text: &str,
    choice: &OpenApiChoice<'_>,
) -> Result<OpenApiEndpoints, OptionError> {
    let refused = |what: String| OptionError::sentence(format!("api: {api}: the OpenAPI document {what}"));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = match text.trim_start().starts_with('{') {
        true => json::read(text, LIMITS),
        false => values::yaml(text, LIMITS, YamlSchema::Core),
    };
    let value = value.map_err(|fault| refused(format!("cannot be read: {fault}; mend it")))?;
    let document = OpenApiDocument { root: &value };
    let version = document.text("openapi").unwrap_or_default();
    if !version.starts_with("3.0") && !version.starts_with("3.1") {
        let what = match document.text("swagger") {
            Some(_) => "is of version 2; convert it to OpenAPI 3.1",
            None => "has no `openapi: 3.0` or `3.1` at its top; name another document",
        };
        return Err(refused(what.into()));
    }
    let base = document.base(choice).map_err(|what| refused(what.into()))?;
    let patterns = patterns(choice.allow).map_err(refused)?;
    let mut found = OpenApiEndpoints::default();
    let mut known = Vec::new();
    let mut matched = vec![false; patterns.len()];
    for (path, item) in
        members(document.root).and_then(|root| object(root, "paths")).into_iter().flat_map(ValueMembers::iter)
    {
        let Some(item) = document.resolved(item).and_then(members).filter(|_| path.starts_with('/')) else {
            continue;
        };
        let Some(operation) = object(item, "get") else { continue };
        if known.len() < MOST_NAMED {
            known.push(format!("GET {}", line(path, MOST_TEXT.0)));
        }
        let allowing: Vec<_> = (0..).zip(&patterns).filter(|(_, pattern)| fits(pattern, path)).collect();
        allowing.iter().for_each(|(at, _)| {
            matched.iter_mut().skip(*at).take(1).for_each(|matched| *matched = true);
        });
        if allowing.is_empty() {
            continue;
        }
        if found.endpoints.len() >= MOST_ENDPOINTS {
            return Err(refused(format!(
                "has more than {MOST_ENDPOINTS} operations that are allowed; allow fewer"
            )));
        }
        document.add(&mut found, &base, path, item, operation);
    }
    let unused = matched.iter().position(|matched| !matched).and_then(|at| choice.allow.get(at));
    match unused {
        Some(unused) => Err(refused(format!(
            "has no operation {unused:?}, which is allowed; it has {}",
            if known.is_empty() { "none for GET".to_owned() } else { known.join(", ") }
        ))),
        None => Ok(found),
    }
}

/// The paths of the allowed operations.
fn patterns(allow: &[String]) -> Result<Vec<&str>, String> {
    if allow.is_empty() {
        return Err("has operations, and none is allowed; write allow: [\"GET /items/*\"]".into());
    }
    allow
        .iter()
        .map(|text| match text.split_once(' ') {
            Some(("GET", pattern)) if pattern.trim().starts_with(['/', '*']) => Ok(pattern.trim()),
            _ => Err(format!(
                "cannot be served as {text:?}: nothing but GET is sent; write \"GET /items/*\", where * is one segment, and ** any"
            )),
        })
        .collect()
}

/// Whether a path fits a pattern: `*` is anything within a segment, `**` is anything.
fn fits(pattern: &str, path: &str) -> bool {
    // The places in the pattern that are reached, which are as many as it has bytes at most.
    let pattern = pattern.as_bytes();
    let closed = |mut places: Vec<usize>| {
        let mut at = 0;
        while let Some(place) = places.get(at).copied() {
            let stars = pattern.iter().skip(place).take_while(|byte| **byte == b'*').count();
            if stars > 0 && !places.contains(&(place + stars)) {
                places.push(place + stars);
            }
            at += 1;
        }
        places
    };
    let mut places = closed(vec![0]);
    for byte in path.bytes() {
        let mut next = Vec::new();
        for place in places {
            let stars = pattern.iter().skip(place).take_while(|byte| **byte == b'*').count();
            let to = match stars {
                0 if pattern.get(place) == Some(&byte) => place + 1,
                1 if byte != b'/' => place,
                2.. => place,
                _ => continue,
            };
            if !next.contains(&to) {
                next.push(to);
            }
        }
        places = closed(next);
    }
    places.contains(&pattern.len())
}

/// A document, with what its references name.
struct OpenApiDocument<'d> {
    root: &'d FileValue,
}

impl<'d> OpenApiDocument<'d> {
    /// The text at the top of the document.
    fn text(&self, name: &str) -> Option<&'d str> {
        members(self.root)?.text(name)
    }

    /// The URL that the paths are behind.
    fn base(&self, choice: &OpenApiChoice<'_>) -> Result<String, &'static str> {
        if let Some(base) = choice.base_url {
            return Ok(base.to_owned());
        }
        let server = members(self.root).and_then(|root| list(root, "servers").first()).and_then(members);
        let written = server.and_then(|server| server.text("url")).unwrap_or("/");
        let mut url = String::new();
        let mut rest = written;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, behind) =
                behind.split_once('}').ok_or("has a wrong URL in `servers`; give a base_url")?;
            let variable = server.and_then(|server| object(object(server, "variables")?, name));
            let default = variable.and_then(|variable| variable.text("default"));
            url.extend([
                before,
                default.ok_or("has a variable without a default in `servers`; give a base_url")?,
            ]);
            rest = behind;
        }
        url.push_str(rest);
        match choice.origin {
            None if url.contains("://") => Ok(url),
            None => Err("has no absolute URL in `servers`; give a base_url"),
            Some(origin) => {
                let resolved =
                    uri::resolve(origin, &url).ok_or("has a wrong URL in `servers`; give a base_url")?;
                let of = |url: &str| url.parse().ok();
                let is_own = of(&resolved)
                    .zip(of(origin))
                    .is_some_and(|(one, other)| super::url::is_same_origin(&one, &other));
                match is_own {
                    true => Ok(resolved),
                    false => Err(
                        "names another server than the one that it comes from; give a base_url if that is meant",
                    ),
                }
            }
        }
    }

    /// A value, or the one that its `$ref` names.
    fn resolved(&self, value: &'d FileValue) -> Option<&'d FileValue> {
        let mut value = value;
        for _ in 0..MOST_STEPS {
            let Some(reference) = members(value).and_then(|members| members.text("$ref")) else {
                return Some(value);
            };
            let pointer = reference.strip_prefix("#/")?;
            value = self.root;
            for step in pointer.split('/') {
                let step = uri::decode(step)?.replace("~1", "/").replace("~0", "~");
                value = match value {
                    FileValue::Object(members) => members.get(&step)?,
                    FileValue::List(items) => items.get(step.parse::<usize>().ok()?)?,
                    _ => return None,
                };
            }
        }
        None
    }

    fn add(
        &self,
        found: &mut OpenApiEndpoints,
        base: &str,
        path: &str,
        item: &'d ValueMembers,
        operation: &'d ValueMembers,
    ) {
        let mut note = |what: &str| {
            if found.notes.len() < MOST_NOTES {
                found.notes.push(format!("GET {}: {what}", line(path, MOST_TEXT.0)));
            }
        };
        if item.get("servers").is_some() || operation.get("servers").is_some() {
            return note("it is left out: it has a server of its own; declare it as an endpoint");
        }
        let mut parameters = Vec::new();
        let mut query: Vec<&str> = Vec::new();
        for (key, place, facts) in self.parameters(item, operation, &mut note) {
            if place == "query" {
                query.push(key);
            }
            parameters.push((key, facts));
        }
        let url = match UrlTemplate::assemble(base, path, &query) {
            Ok(url) => url,
            Err(what) => return note(&format!("it is left out: its URL {what}")),
        };
        let parameters = url.variables().iter().filter_map(|variable| {
            let (_, facts) = parameters.iter().find(|(key, _)| *key == variable.key)?;
            Some(ParameterFacts { name: variable.name.clone(), ..facts.clone() })
        });
        let parameters = parameters.collect();
        let text = |name: &str, most| {
            let text = operation.text(name).map(|text| line(text, most));
            text.filter(|text| !text.is_empty())
        };
        let facts = EndpointFacts {
            title: text("summary", MOST_TEXT.0),
            description: text("description", MOST_TEXT.1),
            mime_type: self.mime_type(operation),
            parameters,
        };
        let name = name(operation.text("operationId"), path, &found.endpoints);
        found.endpoints.push(OpenApiEndpoint { name, url, facts });
    }

    /// The parameters of the path and the query, by their names; those of the operation replace those of the path.
    fn parameters(
        &self,
        item: &'d ValueMembers,
        operation: &'d ValueMembers,
        note: &mut dyn FnMut(&str),
    ) -> Vec<(&'d str, &'d str, ParameterFacts)> {
        let mut seen = HashSet::new();
        let mut parameters = Vec::new();
        let all = list(operation, "parameters").iter().chain(list(item, "parameters"));
        for parameter in all.take(MOST_PARAMETERS) {
            let Some(parameter) = self.resolved(parameter).and_then(members) else {
                note("a parameter is left out: its $ref leads nowhere in the document");
                continue;
            };
            let (Some(key), Some(place)) = (parameter.text("name"), parameter.text("in")) else { continue };
            if !seen.insert((key, place)) {
                continue;
            }
            let schema = parameter.get("schema").and_then(|schema| self.resolved(schema)).and_then(members);
            match place {
                "path" | "query" if kind_of(schema) == Some("object") => note(&format!(
                    "the parameter {:?} is left out: objects are not supported",
                    line(key, MOST_TEXT.0)
                )),
                "path" | "query" => parameters.push((key, place, facts_of(schema))),
                _ => note(&format!(
                    "the parameter {:?} of the {} is left out; add it to `headers` if it is always the same",
                    line(key, MOST_TEXT.0),
                    if place == "cookie" { "cookies" } else { "headers" },
                )),
            }
        }
        parameters
    }

    /// The media type of a successful answer: JSON if it may be that.
    fn mime_type(&self, operation: &'d ValueMembers) -> Option<String> {
        let responses = object(operation, "responses")?;
        let answer = ["200", "2XX", "default"].into_iter().find_map(|status| responses.get(status))?;
        let content = object(self.resolved(answer).and_then(members)?, "content")?;
        let is_type = |mime: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-._".contains(&byte);
            mime.len() <= 100 && mime.matches('/').count() == 1 && mime.bytes().all(is_plain)
        };
        let types = || content.iter().map(|(mime, _)| mime).filter(is_type);
        types().find(|mime| mime.ends_with("json")).or_else(|| types().next()).map(str::to_owned)
    }
}

/// The type of a schema; of several, the first that is not null.
fn kind_of(schema: Option<&ValueMembers>) -> Option<&str> {
    match schema?.get("type")? {
        FileValue::Text(kind) => Some(kind),
        FileValue::List(kinds) => kinds.iter().find_map(|kind| match kind {
            FileValue::Text(kind) if kind != "null" => Some(kind.as_str()),
            _ => None,
        }),
        _ => None,
    }
}

fn facts_of(schema: Option<&ValueMembers>) -> ParameterFacts {
    let kind = match kind_of(schema) {
        Some("integer") => ParameterForm::Integer,
        Some("number") => ParameterForm::Number,
        Some("boolean") => ParameterForm::Flag,
        _ => ParameterForm::Text,
    };
    let values = schema.map(|schema| list(schema, "enum")).unwrap_or_default();
    let text = |value: &FileValue| match value {
        FileValue::Text(text) => Some(text.clone()),
        FileValue::Number { number, .. } => Some(number.to_string()),
        FileValue::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    let values: Option<Vec<String>> = values.iter().map(text).collect();
    let values = values.filter(|values| {
        values.len() <= MOST_VALUES.0
            && values.iter().all(|value| value.len() <= MOST_VALUES.1 && !value.contains(char::is_control))
    });
    ParameterFacts { name: String::new(), kind, values: values.unwrap_or_default() }
}

/// A name for an endpoint that no other has: its operationId, or its path.
fn name(id: Option<&str>, path: &str, others: &[OpenApiEndpoint]) -> String {
    let spelled = |text: &str| {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let spelled: String = text
            .chars()
            .take(MOST_TEXT.0)
            .map(|letter| if is_plain(letter) { letter } else { '-' })
            .collect();
        let parts: Vec<&str> = spelled.split('-').filter(|part| !part.is_empty()).collect();
        parts.join("-")
    };
    let own = id.map(spelled).filter(|name| !name.is_empty()).unwrap_or_else(|| spelled(path));
    let own = if own.is_empty() { "root".to_owned() } else { own };
    let is_taken = |name: &str| others.iter().any(|other| other.name == name);
    match is_taken(&own) {
        false => own,
        true => (2..).map(|number| format!("{own}-{number}")).find(|name| !is_taken(name)).unwrap_or(own),
    }
}

fn members(value: &FileValue) -> Option<&ValueMembers> {
    match value {
        FileValue::Object(members) => Some(members),
        _ => None,
    }
}

/// A member that is an object.
fn object<'d>(of: &'d ValueMembers, name: &str) -> Option<&'d ValueMembers> {
    members(of.get(name)?)
}

/// A member that is a list; empty if it is none.
fn list<'d>(of: &'d ValueMembers, name: &str) -> &'d [FileValue] {
    match of.get(name) {
        Some(FileValue::List(items)) => items,
        _ => &[],
    }
}

/// A text of the document without control characters, cut.
fn line(text: &str, most: usize) -> String {
    let plain = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice<'c>(allow: &'c [String], origin: Option<&'c str>) -> OpenApiChoice<'c> {
        OpenApiChoice { origin, base_url: None, allow }
    }

    fn allowed(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    const SHOP: &str = r##"
openapi: 3.1.0
servers: [{url: "https://{region}.shop.example/v1", variables: {region: {default: eu}}}]
paths:
  /items/{item-id}:
    parameters: [{$ref: "#/components/parameters/Item"}]
    get:
      operationId: get item
      summary: "One item\nof the shop"
      description: Its price and more.
      parameters:
        - {name: lang, in: query, schema: {type: string, enum: [de, en]}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: filter, in: query, schema: {type: object}}
      responses: {"200": {$ref: "#/components/responses/Item"}}
    delete: {operationId: remove}
  /items: {get: {parameters: [{name: page, in: query, schema: {type: [integer, "null"]}}]}}
  /ref: {$ref: "#/components/pathItems/Status"}
  /loop: {$ref: "#/paths/~1loop"}
  /away: {$ref: "https://evil.example/doc.yaml#/x"}
  /own: {get: {servers: [{url: "https://evil.example"}]}}
  /secret: {get: {operationId: secret}}
  /make: {post: {operationId: make}}
components:
  parameters: {Item: {name: item-id, in: path, required: true, schema: {$ref: "#/components/schemas/Id"}}}
  schemas: {Id: {type: integer}}
  responses: {Item: {content: {text/html: {}, application/json: {}}}}
  pathItems: {Status: {get: {operationId: status}}}
"##;

    // S-20: the allowed GET operations of a document, with what it says of them.
    #[test]
    fn allowed_operations_are_endpoints() {
        let allow = allowed(&["GET /items/*", "GET /items", "GET /ref", "GET /own"]);
        let found = read("shop", SHOP, &choice(&allow, None)).unwrap();
        let names: Vec<&str> = found.endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        assert_eq!(names, ["get-item", "items", "status"]);
        let [item, items, status] = &found.endpoints[..] else { panic!("three") };
        assert_eq!(item.url.resources("api:///s/e"), "api:///s/e/{item_id}{?lang}");
        let value = |name: &str| Some(if name == "lang" { "de" } else { "7" });
        assert_eq!(item.url.expand_with(&value).unwrap(), "https://eu.shop.example/v1/items/7?lang=de");
        assert_eq!(item.facts.title.as_deref(), Some("One item of the shop"));
        assert_eq!(item.facts.mime_type.as_deref(), Some("application/json"));
        let [id, lang] = &item.facts.parameters[..] else { panic!("two") };
        assert_eq!(
            (id.kind, id.refuses("x"), id.refuses("-7")),
            (ParameterForm::Integer, Some("a whole number".into()), None)
        );
        assert_eq!((lang.values.len(), lang.refuses("fr")), (2, Some("one of de, en".into())));
        assert_eq!(items.url.resources("api:///s/e"), "api:///s/e{?page}");
        assert!(!status.url.is_template());
        let notes = found.notes.join("\n");
        for note in [
            "\"X-Trace\" of the headers is left out",
            "\"filter\" is left out: objects",
            "GET /own: it is left out",
        ] {
            assert!(notes.contains(note), "{notes}");
        }
    }

    // S-20: what is hostile or wrong is refused, with the fix.
    #[test]
    fn wrong_documents_are_refused() {
        let deep = format!("{{\"openapi\": \"3.0.0\", \"x\": {}}}", "[".repeat(100_000));
        let many: String = (0..600).map(|at| format!("  /p{at}: {{get: {{}}}}\n")).collect();
        let many = format!("openapi: 3.0.0\nservers: [{{url: 'https://h'}}]\npaths:\n{many}");
        let bomb = "openapi: 3.0.0\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    g: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
        for (text, allow, fault) in [
            ("", &["GET /a"][..], "has no `openapi: 3.0`"),
            ("swagger: '2.0'", &["GET /a"], "is of version 2; convert it"),
            ("openapi: 3.2.0", &["GET /a"], "has no `openapi: 3.0`"),
            (deep.as_str(), &["GET /a"], "cannot be read"),
            (bomb, &["GET /a"], "it has too many values"),
            (many.as_str(), &["GET **"], "has more than 500 operations"),
            ("openapi: 3.0.0\npaths: {/a: {get: {}}}", &["GET /a"], "has no absolute URL in `servers`"),
            (SHOP, &[], "none is allowed; write allow:"),
            (SHOP, &["POST /make"], "nothing but GET is sent"),
            (SHOP, &["/items"], "nothing but GET is sent"),
            (SHOP, &["GET /make"], "has no operation \"GET /make\""),
            (SHOP, &["GET /loop"], "has no operation \"GET /loop\""),
            (SHOP, &["GET /away"], "it has GET /items/{item-id}, GET /items, GET /ref"),
        ] {
            let error = read("shop", text, &choice(&allowed(allow), None)).unwrap_err().to_string();
            assert!(error.contains(fault), "{fault}: {error}");
        }
        let allow = allowed(&["GET /items"]);
        let error =
            read("shop", SHOP, &choice(&allow, Some("https://docs.example/openapi.yaml"))).unwrap_err();
        assert!(error.to_string().contains("names another server than the one that it comes from"));
        let own = "{\"openapi\": \"3.0.1\", \"servers\": [{\"url\": \"../v2\"}], \"paths\": {\"/items\": {\"get\": {}}}}";
        let found =
            read("shop", own, &choice(&allow, Some("https://docs.example/a/b/openapi.json"))).unwrap();
        assert_eq!(found.endpoints[0].url.expand(""), "https://docs.example/a/v2/items");
    }

    #[test]
    fn patterns_are_of_segments() {
        for (pattern, path, expected) in [
            ("/items/*", "/items/{id}", true),
            ("/items/*", "/items/{id}/reviews", false),
            ("/items/**", "/items/{id}/reviews", true),
            ("/v*/items", "/v2/items", true),
            ("**", "/a/b", true),
            ("/*", "/a/b", false),
            ("/a", "/a/", false),
            ("/a*b*c", "/aXbYbZc", true),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
        assert!(!fits(&"*a".repeat(2_000), &"a/".repeat(2_000)));
    }
}
