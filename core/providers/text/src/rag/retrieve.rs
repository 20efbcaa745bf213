//! Finds the passages that answer a question.
//!
//! ```text
//!   question ──▶ words, any of which may occur ──▶ index: candidates ──▶ BM25 ──┐
//!            └─▶ Embedder, if there is one ──▶ nearest vectors ─────────────────┴──▶ reciprocal-rank fusion ──▶ passages
//! ```
//!
//! Law: the numbers of BM25 are counted over the documents that the client may see, so no score tells of another. Vectors are
//! compared for those alone.

use super::chunk::Chunk;
use super::collection::{Collection, DocumentStore, Documents};
use super::document::{chunk_key, of_body, of_key};
use super::embed::{self, Embedder, cosine, fuse};
use crate::search::{IndexRow, SearchQuery, SearchTokens};
use mcp_resources_engine::connection::{Contents, ReadResult};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;

/// Maximum number of candidates of each ranking.
const CANDIDATES: usize = 200;
/// Maximum number of occurrences of a word that are counted.
const COUNTED: usize = 50_000;
/// BM25's constants, a usual length of a chunk in tokens, and how much a title and a heading count.
const K1: f64 = 1.2;
const B: f64 = 0.75;
const USUAL: f64 = 200.0;
const TITLE: f64 = 2.0;
const HEADING: f64 = 2.0;

/// A passage that was found.
struct Passage {
    id: String,
    at: usize,
    heading: String,
    text: String,
}

/// The documents that the client may see; the guard is asked once about each.
struct Permitted<'p> {
    collection: &'p Collection,
    documents: &'p Documents,
    permits: &'p dyn Fn(&str) -> bool,
    known: RefCell<HashMap<String, bool>>,
}

impl Permitted<'_> {
    fn is(&self, id: &str) -> bool {
        if let Some(is) = self.known.borrow().get(id) {
            return *is;
        }
        let is = self.documents.all.contains_key(id) && permits(self.collection, id, self.permits);
        self.known.borrow_mut().insert(id.to_owned(), is);
        is
    }
}

/// Whether a client may see a document: under each of its URIs, if it has two.
pub(super) fn permits(collection: &Collection, id: &str, permits: &dyn Fn(&str) -> bool) -> bool {
    permits(&collection.document_uri(id)) && collection.source_uri(id).is_none_or(|uri| permits(&uri))
}

/// The contents of a search. `Err` is the reason for the log. Without a vector of the question only words are ranked,
/// and `log` gets the reason.
pub(super) fn search(
    store: &DocumentStore,
    collection: &Collection,
    documents: &Documents,
    text: &str,
    query: &SearchQuery,
    permits: &dyn Fn(&str) -> bool,
    log: &dyn Fn(&str),
) -> Result<ReadResult<'static>, String> {
    let permitted = Permitted { collection, documents, permits, known: RefCell::default() };
    let by_words = words(store, collection, documents, query, &permitted)?;
    let (ranking, ranked) =
        match collection.embedder.as_ref().and_then(|own| vector(&**own, documents, text, log)) {
            None => ("bm25", by_words.iter().map(|(passage, score)| (key(passage), *score)).collect()),
            Some(vector) => {
                let by_words = by_words.iter().map(|(passage, _)| key(passage)).collect();
                ("bm25+vectors", fuse(&[by_words, nearest(documents, &vector, &permitted)]))
            }
        };
    let ranked: Vec<(String, f64)> = ranked;
    let mut known: HashMap<String, Passage> =
        by_words.into_iter().map(|(passage, _)| (key(&passage), passage)).collect();
    let mut contents = Vec::new();
    for (key, score) in ranked.into_iter().take(collection.hits) {
        let passage = known.remove(&key).or_else(|| {
            let row =
                store.with_index(collection, |index| index.get(&collection.name, &key))?.ok().flatten()?;
            passage(&row)
        });
        if let Some(passage) = passage {
            contents.push(content(collection, documents, &passage, score, ranking));
        }
    }
    if contents.is_empty() {
        // A read has something.
        let meta = meta(documents, json!({ "hits": 0, "ranking": ranking }));
        contents.push(Contents::text("").with_mime_type("text/plain").with_meta(meta));
    }
    Ok(ReadResult { contents, cache: None })
}

/// The vector of a question, if there are vectors to compare it with.
fn vector(
    embedder: &dyn Embedder,
    documents: &Documents,
    text: &str,
    log: &dyn Fn(&str),
) -> Option<Vec<f32>> {
    let length = documents.vectors.values().next().map(|vector| vector.len());
    let made = embed::vectors(embedder, &[text], length);
    let made = made.inspect_err(|reason| log(&format!("a question has no vector: {reason}"))).ok()?;
    made.into_iter().next().filter(|_| length.is_some())
}

/// Passages by BM25, best first.
fn words(
    store: &DocumentStore,
    collection: &Collection,
    documents: &Documents,
    query: &SearchQuery,
    permitted: &Permitted<'_>,
) -> Result<Vec<(Passage, f64)>, String> {
    let all: usize = documents.all.values().filter(|one| permitted.is(&one.id)).map(|one| one.chunks).sum();
    let failed = |error: rusqlite::Error| format!("the search index does not answer: {error}");
    let asked = store.with_index(collection, |index| {
        let mut rarities = Vec::new();
        for word in query.words() {
            let mut count = 0_usize;
            let mut seen = 0_usize;
            index.matches(&collection.name, &word, |key| {
                seen += 1;
                count += usize::from(of_key(key).is_some_and(|(id, _)| permitted.is(id)));
                seen < COUNTED
            })?;
            let all = all as f64;
            let count = count as f64;
            rarities.push(((all - count + 0.5) / (count + 0.5)).ln_1p().max(0.0));
        }
        let mut permits = |key: &str| of_key(key).is_some_and(|(id, _)| permitted.is(id));
        let (rows, _) = index.candidates(&collection.name, query, None, CANDIDATES, &mut permits)?;
        Ok::<_, rusqlite::Error>((rarities, rows))
    });
    let (rarities, rows) = asked.ok_or("there is no search index")?.map_err(failed)?;
    let scored = rows.iter().filter_map(passage).map(|passage| {
        let title = documents.all.get(&passage.id).and_then(|document| document.title.clone());
        let score = bm25(query, &rarities, title.as_deref().unwrap_or_default(), &passage);
        (passage, score)
    });
    let mut scored: Vec<_> = scored.filter(|(_, score)| *score > 0.0).collect();
    scored.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| key(&one.0).cmp(&key(&other.0))));
    Ok(scored)
}

fn bm25(query: &SearchQuery, rarities: &[f64], title: &str, passage: &Passage) -> f64 {
    let words = SearchTokens::from_text(&passage.text);
    let norm = K1 * (1.0 - B + B * words.count() as f64 / USUAL);
    let counts = |words: &SearchTokens| query.hits(words).counts;
    let title = counts(&SearchTokens::from_text(title));
    let heading = counts(&SearchTokens::from_text(&passage.heading));
    let text = counts(&words);
    let sum: f64 = rarities
        .iter()
        .enumerate()
        .map(|(at, rarity)| {
            let count = |counts: &[usize]| counts.get(at).copied().unwrap_or_default() as f64;
            let often = TITLE * count(&title) + HEADING * count(&heading) + count(&text);
            rarity * often * (K1 + 1.0) / (often + norm)
        })
        .sum();
    (sum * 1_000.0).round() / 1_000.0
}

/// The chunks whose vectors are nearest, by key.
fn nearest(documents: &Documents, vector: &[f32], permitted: &Permitted<'_>) -> Vec<String> {
    let seen =
        documents.vectors.iter().filter(|(key, _)| of_key(key).is_some_and(|(id, _)| permitted.is(id)));
    let mut near: Vec<(f32, &String)> = seen.map(|(key, other)| (cosine(vector, other), key)).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    near.into_iter().take(CANDIDATES).filter(|(near, _)| *near > 0.0).map(|(_, key)| key.clone()).collect()
}

fn key(passage: &Passage) -> String {
    chunk_key(&passage.id, passage.at)
}

fn passage(row: &IndexRow) -> Option<Passage> {
    let (id, at) = of_key(&row.key)?;
    let Chunk { heading, text } = of_body(&row.body)?;
    Some(Passage { id: id.to_owned(), at, heading, text })
}

fn content(
    collection: &Collection,
    documents: &Documents,
    passage: &Passage,
    score: f64,
    ranking: &str,
) -> Contents<'static> {
    let Passage { id, at, heading, text } = passage;
    let document = documents.all.get(id);
    let uri = collection.document_uri(id);
    let about = json!({
        "score": score,
        "position": at,
        "chunks": document.map_or(0, |document| document.chunks),
        "heading": heading,
        "title": document.and_then(|document| document.title.as_deref()),
        "source": collection.source_uri(id).unwrap_or_else(|| uri.clone()),
        "ranking": ranking,
    });
    let meta = meta(documents, about);
    Contents::text(text.clone()).with_uri(uri).with_mime_type("text/plain").with_meta(meta)
}

/// The `_meta` of a passage. It says that others may be missing while some documents are still unread.
fn meta(documents: &Documents, mut about: Value) -> String {
    if let Some(members) = about.as_object_mut().filter(|_| !documents.is_whole) {
        members.insert("incomplete".into(), true.into());
    }
    about.to_string()
}
