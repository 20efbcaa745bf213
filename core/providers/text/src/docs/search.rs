//! The answer to a search: pages, best first, each with the section that fits best.
//!
//! Law: a page or section that a client may not see is not counted, scored or mentioned. The index gives candidates;
//! everything in the answer about them is computed from the text that the client may see.

use super::library::{SiteLibrary, SiteSnapshot};
use super::site::DocsSite;
use crate::search::{IndexRow, SearchQuery, SearchTokens, score, snippet};
use mcp_resources_engine::error::ReadError;
use serde::Serialize;
use serde_json::Value;

/// The number of hits by default, and the maximum.
const HITS: usize = 10;
const MOST: usize = 100;
/// The number of candidates looked at in addition to the wanted hits.
const WIDER: usize = 30;

/// A parsed search.
#[derive(Debug)]
pub(super) struct SearchRequest {
    text: String,
    query: SearchQuery,
    max: usize,
    lang: Option<String>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct SearchAnswer<'a> {
    site: &'a str,
    query: &'a str,
    hits: Vec<Hit>,
    /// Whether other pages match too.
    more: bool,
    /// Whether pages are missing that are not indexed yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// A page that was found.
#[derive(Debug, Serialize)]
struct Hit {
    /// Of the section, if the best one has a heading.
    uri: String,
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    section: String,
    snippet: String,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
}

/// The title, description and language of a page, as the index keeps them.
struct SearchSubject {
    title: String,
    description: String,
    lang: Option<String>,
}

impl SearchRequest {
    /// Reads the variables. `name` is that of the one with the query.
    pub(super) fn parse(
        name: &str,
        text: Option<&str>,
        max: Option<&str>,
        lang: Option<&str>,
    ) -> Result<Self, ReadError> {
        let wrong = |parameter: &str, expected: &str| ReadError::InvalidParameter {
            parameter: parameter.into(),
            expected: expected.into(),
        };
        let text =
            text.filter(|text| !text.trim().is_empty()).ok_or_else(|| wrong(name, "words to search for"))?;
        let query =
            SearchQuery::parse(text).ok_or_else(|| wrong(name, "at most 16 words and 1,024 bytes"))?;
        let max = match max {
            None => HITS,
            Some(text) => text
                .parse()
                .ok()
                .filter(|max| (1..=MOST).contains(max) && text.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| wrong("k", "a whole number from 1 to 100"))?,
        };
        let lang = match lang {
            None => None,
            Some(lang) if super::page::is_lang(lang) => Some(lang.to_ascii_lowercase()),
            Some(_) => return Err(wrong("lang", "a language such as ja or en-GB")),
        };
        Ok(Self { text: text.to_owned(), query, max, lang })
    }
}

/// Searches a site. `None`: the index does not answer, and why.
pub(super) fn search(
    library: &SiteLibrary,
    site: &DocsSite,
    request: &SearchRequest,
    snapshot: &SiteSnapshot,
    permits: &dyn Fn(&str) -> bool,
) -> Result<String, String> {
    let is_whole = snapshot.is_whole;
    let SearchRequest { text, query, max, lang } = request;
    let wanted = max.saturating_add(WIDER);
    let found = library.with_index(&site.group, |index| {
        // The index may have a page that is gone, if it could not be written.
        let mut permits = |key: &str| snapshot.pages.contains_key(key) && permits(&site.page_uri(key));
        index.candidates(site.name(), query, lang.as_deref(), wanted, &mut permits)
    });
    let (rows, mut more) = match found {
        Some(Ok(found)) => found,
        Some(Err(error)) => return Err(format!("the search index does not answer: {error}")),
        // It is not open yet.
        None if !is_whole => (Vec::new(), false),
        None => return Err("there is no search index".to_owned()),
    };
    let hits = rows.into_iter().filter_map(|row| hit(site, &row, query, permits));
    let mut hits: Vec<(Hit, String)> = hits.collect();
    let order =
        |one: &Hit, other: &Hit| other.score.total_cmp(&one.score).then_with(|| one.uri.cmp(&other.uri));
    hits.sort_by(|(one, _), (other, _)| order(one, other));
    more |= hits.len() > *max;
    hits.truncate(*max);
    let hits = hits.into_iter().map(|(hit, text)| {
        let snippet = snippet(&text, &query.hits(&SearchTokens::from_text(&text)));
        Hit { snippet, ..hit }
    });
    let hits = hits.collect();
    let incomplete = !is_whole;
    let answer = SearchAnswer { site: site.name(), query: text, hits, more, incomplete };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

/// The entry for a page without the snippet, and the text to cut the snippet from; `None` if the words are not in the
/// text that the client may see.
fn hit(
    site: &DocsSite,
    row: &IndexRow,
    query: &SearchQuery,
    permits: &dyn Fn(&str) -> bool,
) -> Option<(Hit, String)> {
    let SearchSubject { title, description, lang } = SearchSubject::from_head(&row.head)?;
    let sections: Vec<(String, String, String)> = serde_json::from_str(&row.body).ok()?;
    let page = site.page_uri(&row.key);
    let title = if title.is_empty() { name(&row.key).to_owned() } else { title };
    let in_title = query.hits(&SearchTokens::from_text(&title)).counts;
    let mut in_headings = query.hits(&SearchTokens::from_text(&description)).counts;
    let mut in_body = vec![0; in_title.len()];
    let mut length = 0;
    let mut best: Option<(f64, String, &str, &str)> = None;
    for (slug, heading, text) in &sections {
        let uri = DocsSite::section_uri(&page, slug);
        if !slug.is_empty() && !permits(&uri) {
            continue;
        }
        let words = SearchTokens::from_text(text);
        let own_heading = query.hits(&SearchTokens::from_text(heading)).counts;
        let own = query.hits(&words).counts;
        let fit = score(&[], &own_heading, &own, words.count());
        if best.as_ref().is_none_or(|(other, ..)| fit > *other) {
            best = Some((fit, uri, heading, text));
        }
        for (sum, own) in in_headings.iter_mut().zip(&own_heading).chain(in_body.iter_mut().zip(&own)) {
            *sum += own;
        }
        length += words.count();
    }
    let is_all = (0..in_title.len()).all(|at| {
        [&in_title, &in_headings, &in_body]
            .iter()
            .any(|counts| counts.get(at).is_some_and(|count| *count > 0))
    });
    if !is_all {
        return None;
    }
    let (_, uri, section, text) =
        best.filter(|(fit, ..)| *fit > 0.0).unwrap_or((0.0, page, "", first(&sections)));
    let text = if text.trim().is_empty() { section } else { text };
    let score = score(&in_title, &in_headings, &in_body, length);
    let hit = Hit { uri, title, section: section.to_owned(), snippet: String::new(), score, lang };
    Some((hit, text.to_owned()))
}

/// The text that a page begins with.
fn first(sections: &[(String, String, String)]) -> &str {
    sections.iter().map(|(.., text)| &**text).find(|text| !text.trim().is_empty()).unwrap_or_default()
}

/// The name of a page that has no title.
pub(super) fn name(key: &str) -> &str {
    let name = key.rsplit('/').next().unwrap_or(key);
    name.rsplit_once('.').map_or(name, |(name, _)| name)
}

impl SearchSubject {
    fn from_head(head: &str) -> Option<Self> {
        let head: Vec<Value> = serde_json::from_str(head).ok()?;
        let about = head.first()?;
        let text = |at: usize| about.get(at).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            title: text(0).unwrap_or_default(),
            description: text(1).unwrap_or_default(),
            lang: text(4),
        })
    }
}
