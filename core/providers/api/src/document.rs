//! Takes the OpenAPI document of an API from its file or its URL.
//!
//! Law: a document at a URL is requested once, under the rules of all requests, and without the operator's headers.

use super::cache::ApiAnswer;
use super::fetch::{FetchedAnswer, Fetcher};
use super::openapi::{self, EndpointFacts, MOST_DOCUMENT, OpenApiChoice};
use super::options::{ApiDeclaration, ApiOptions, CheckedService, is_url};
use super::template::UrlTemplate;
use mcp_resources_engine::option::OptionError;
use mcp_resources_runtime::transport::open_to_read;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// The endpoints of an API's document.
#[derive(Debug, Default)]
pub(super) struct ApiOperations {
    /// By name.
    pub(super) endpoints: Vec<(String, CheckedService)>,
    /// Lines for the log about what was left out.
    pub(super) notes: Vec<String>,
}

/// The endpoints of an API's document, if it has one.
///
/// # Errors
/// The document cannot be had or read, or nothing of it is allowed.
pub(super) fn operations(
    api: &str,
    declaration: &ApiDeclaration,
    options: &ApiOptions,
) -> Result<ApiOperations, OptionError> {
    let refused = |what: String| OptionError::sentence(format!("api: {api}: {what}"));
    let Some(document) = &declaration.openapi else {
        let has_more = !declaration.allow.is_empty()
            || declaration.base_url.is_some()
            || !declaration.headers.is_empty();
        return match has_more {
            true => Err(refused(
                "it has allow, base_url or headers without a document; name one: `openapi: FILE`".into(),
            )),
            false => Ok(ApiOperations::default()),
        };
    };
    let text = match is_url(document) {
        true => requested(document, options).map_err(refused)?,
        false => read(Path::new(document)).map_err(refused)?,
    };
    let choice = OpenApiChoice {
        origin: Some(document.as_str()).filter(|document| is_url(document)),
        base_url: declaration.base_url.as_deref(),
        allow: &declaration.allow,
    };
    let found = openapi::read(api, &text, &choice)?;
    let operations = found.endpoints.into_iter().map(|endpoint| {
        let checked = CheckedService::new(endpoint.url, &declaration.headers, endpoint.facts);
        checked.map(|checked| (endpoint.name, checked)).map_err(refused)
    });
    Ok(ApiOperations { endpoints: operations.collect::<Result<_, _>>()?, notes: found.notes })
}

fn read(file: &Path) -> Result<String, String> {
    let wrong = |what: &str| format!("the OpenAPI document {} {what}", file.display());
    let mut text = String::new();
    let opened = open_to_read(file).and_then(|file| file.take(MOST_DOCUMENT + 1).read_to_string(&mut text));
    match opened {
        Ok(read) if read as u64 > MOST_DOCUMENT => Err(wrong("is larger than 16 MiB; name another file")),
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(wrong("does not exist; name another file")),
        Err(_) => Err(wrong("cannot be read; name another file")),
    }
}

/// The text of a document at a URL. The URL is not repeated: it may have a key.
fn requested(url: &str, options: &ApiOptions) -> Result<String, String> {
    let wrong = |what: &str| format!("the URL of the OpenAPI document {what}");
    let url = UrlTemplate::parse(url).map_err(wrong)?;
    if !url.variables().is_empty() {
        return Err(wrong("has a variable; write the whole URL"));
    }
    let endpoint = CheckedService::new(url, &[], EndpointFacts::default())?;
    let fetcher = Fetcher::new(&ApiOptions { bytes: MOST_DOCUMENT, ..options.clone() });
    let failed = |what: &str| {
        format!("the OpenAPI document cannot be requested: {what}; try again, or save it and name the file")
    };
    match fetcher.fetch(&endpoint, "", None) {
        FetchedAnswer::New(ApiAnswer { body, .. }, _) => {
            String::from_utf8(body.bytes().to_vec()).map_err(|_| failed("it is no UTF-8"))
        }
        FetchedAnswer::TooLarge => Err(failed("it is larger than 16 MiB")),
        FetchedAnswer::Absent => Err(failed("it is not there")),
        FetchedAnswer::Down(what, _) | FetchedAnswer::Failed(what) => Err(failed(&what)),
        FetchedAnswer::NotModified(_) | FetchedAnswer::Unwanted => Err(failed("there is no answer")),
    }
}
