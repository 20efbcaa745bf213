//! The search index in SQLite: in memory, or in a file that outlives the process.
//!
//! ```text
//!   doc    id, site, key, lang, stamp, head, body      what is known of each text, and the text itself
//!   words  rowid = id: title, headings, body           FTS5 over tokens that were folded before; no text is in it
//!   heads  rowid = id: title, headings                 the same without the body, for words that most texts have
//! ```
//!
//! Law: the file is a cache. A damaged file, or one of another version, is set aside and built again; no data is lost
//! with it.

use super::query::SearchQuery;
use rusqlite::{Connection, Error, OptionalExtension, ffi, params};
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The application id and the format version in the SQLite header of our files.
const APPLICATION: i32 = 0x4d43_5052;
/// A file holds digests too, so another algorithm of `digest.rs` is another version.
const VERSION: i32 = 4;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The position of the application id in the header.
const APPLICATION_AT: std::ops::Range<usize> = 68..72;

const SCHEMA: &str = r#"
CREATE TABLE doc(
    id INTEGER PRIMARY KEY, site TEXT NOT NULL, key TEXT NOT NULL, lang TEXT, stamp TEXT NOT NULL, head TEXT NOT NULL,
    body TEXT NOT NULL, UNIQUE(site, key)
);
CREATE INDEX doc_by_id ON doc(id, site, lang);
CREATE VIRTUAL TABLE heads USING fts5(title, headings, content='', contentless_delete=1, tokenize='ascii', prefix='1');
INSERT INTO heads(heads, rank) VALUES('rank', 'bm25(8.0, 3.0)');
CREATE VIRTUAL TABLE words USING fts5(title, headings, body, content='', contentless_delete=1, tokenize='ascii', prefix='1');
INSERT INTO words(words, rank) VALUES('rank', 'bm25(8.0, 3.0, 1.0)');
INSERT INTO words(words, rank) VALUES('hashsize', 33554432);
"#;

/// Maximum number of texts that are ranked among each other. For words that occur in more texts, those with the word in
/// the title or a heading come first: ranking all of them would take too long for a search.
const RANKED: usize = 1_000;
/// Ranking needs the number of texts with each phrase. With more tokens that takes too long where many texts match, so the first
/// that are found count.
const FEW_TOKENS: usize = 3;
/// If at least this many texts are added at once, the index is not merged; [`Index::merge`] does that later.
const MANY: usize = 64;
/// Approximate number of index pages that one step of merging writes.
const STEP: i32 = 16;

/// The ids of the texts that match, with their ranks.
const BY_HEADING: &str = "SELECT doc.id, heads.rank FROM heads CROSS JOIN doc INDEXED BY doc_by_id ON doc.id = heads.rowid \
    WHERE heads MATCH ?1 AND doc.site = ?2 AND (?3 IS NULL OR doc.lang = ?3 OR doc.lang >= ?4 AND doc.lang < ?5)";
const BY_RANK: &str = "SELECT doc.id, words.rank FROM words CROSS JOIN doc INDEXED BY doc_by_id ON doc.id = words.rowid \
    WHERE words MATCH ?1 AND doc.site = ?2 AND (?3 IS NULL OR doc.lang = ?3 OR doc.lang >= ?4 AND doc.lang < ?5)";
const AS_FOUND: &str = "SELECT doc.id, 0.0 FROM words CROSS JOIN doc INDEXED BY doc_by_id ON doc.id = words.rowid \
    WHERE words MATCH ?1 AND doc.site = ?2 AND (?3 IS NULL OR doc.lang = ?3 OR doc.lang >= ?4 AND doc.lang < ?5)";

/// A search index.
#[derive(Debug)]
pub struct Index {
    db: Connection,
    /// Whether many texts were added without merging.
    is_scattered: bool,
}

/// A text to add to the index.
#[derive(Debug)]
pub struct Put {
    pub key: String,
    pub lang: Option<String>,
    /// A stamp that changes with the text.
    pub stamp: String,
    /// Its description, for a process that starts with an existing index.
    pub head: String,
    /// The text, as the caller writes and reads it.
    pub body: String,
    /// The searched texts: tokens, as returned by [`super::SearchTokens::into_folded`].
    pub title: String,
    pub headings: String,
    pub text: String,
}

/// A text that was found.
#[derive(Clone, Debug)]
pub struct IndexRow {
    pub key: String,
    pub head: String,
    pub body: String,
}

impl Index {
    /// An empty one in memory.
    pub fn memory() -> Result<Self, Error> {
        let db = Connection::open_in_memory()?;
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;")?;
        db.execute_batch(SCHEMA)?;
        Ok(Self { db, is_scattered: false })
    }

    /// The one in `file`. If that is damaged, or of another version, an empty one, and a sentence for the log.
    pub fn file(file: &Path) -> Result<(Self, Option<String>), Error> {
        let fault = match Self::open(file) {
            Ok(Some(index)) => return Ok((index, None)),
            Ok(None) => "it is damaged, or of another version".to_owned(),
            // Nothing says that it is damaged: it stays where it is.
            Err(error) if is_of_system(&error) => return Err(error),
            Err(error) => error.to_string(),
        };
        let aside = set_aside(file);
        let index = Self::open(file)?.ok_or(Error::InvalidQuery)?;
        let kept = aside.map(|aside| format!("; what was there is {}", aside.display())).unwrap_or_default();
        Ok((index, Some(format!("the index {} is built again: {fault}{kept}", file.display()))))
    }

    /// `None` if the file exists and cannot be used.
    fn open(file: &Path) -> Result<Option<Self>, Error> {
        let db = Connection::open(file)?;
        if db.is_readonly("main")? {
            return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), None));
        }
        db.busy_timeout(Duration::from_millis(500))?;
        db.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL;")?;
        let log_ahead = || db.execute_batch("PRAGMA journal_mode = WAL;");
        let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let is_empty =
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0;
        if is_empty {
            // Not into a log: if this process is killed, the header of the file says whose it is.
            db.execute_batch(&format!(
                "PRAGMA journal_mode = DELETE; BEGIN; PRAGMA application_id = {APPLICATION}; \
                 PRAGMA user_version = {VERSION}; {SCHEMA} COMMIT;"
            ))?;
            log_ahead()?;
            return Ok(Some(Self { db, is_scattered: false }));
        }
        log_ahead()?;
        if (pragma("application_id")?, pragma("user_version")?) != (APPLICATION, VERSION) {
            return Ok(None);
        }
        let said: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if said != "ok" {
            return Ok(None);
        }
        for table in ["words", "heads"] {
            db.execute_batch(&format!("INSERT INTO {table}({table}) VALUES('integrity-check')"))?;
        }
        Ok(Some(Self { db, is_scattered: false }))
    }

    /// Why `file` may not be written: it is something else. One that is not there may be.
    pub fn refuses(file: &Path) -> Option<&'static str> {
        let metadata = match std::fs::metadata(file) {
            Ok(metadata) => metadata,
            Err(_)
                if file.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir()) =>
            {
                return None;
            }
            Err(_) => return Some("is in a directory that does not exist; create it, or name another file"),
        };
        if !metadata.is_file() {
            return Some("is no file; name one that may be written");
        }
        let mut header = Vec::new();
        let read = std::fs::File::open(file).and_then(|file| file.take(100).read_to_end(&mut header));
        let is_other = read.is_ok()
            && header.starts_with(MAGIC)
            && header.get(APPLICATION_AT).is_some_and(|own| own != APPLICATION.to_be_bytes());
        is_other.then_some("is a database of another program; name another file")
    }

    /// Forgets the texts of all sites but these.
    pub fn keep(&mut self, sites: &[&str]) -> Result<(), Error> {
        let names = serde_json::to_string(sites).unwrap_or_default();
        let gone = "site NOT IN (SELECT value FROM json_each(?1))";
        let transaction = self.db.transaction()?;
        transaction.execute(
            &format!("DELETE FROM words WHERE rowid IN (SELECT id FROM doc WHERE {gone})"),
            [&names],
        )?;
        transaction.execute(
            &format!("DELETE FROM heads WHERE rowid IN (SELECT id FROM doc WHERE {gone})"),
            [&names],
        )?;
        transaction.execute(&format!("DELETE FROM doc WHERE {gone}"), [&names])?;
        transaction.commit()
    }

    /// The key, stamp and head of each text of a site.
    pub fn known(&self, site: &str, mut visit: impl FnMut(String, String, String)) -> Result<(), Error> {
        let mut query = self.db.prepare_cached("SELECT key, stamp, head FROM doc WHERE site = ?1")?;
        let mut rows = query.query([site])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        Ok(())
    }

    /// Adds texts, replacing those with their keys, and removes others: all of it, or nothing.
    pub fn change(&mut self, site: &str, puts: &[Put], gone: &[String]) -> Result<(), Error> {
        let is_many = puts.len() >= MANY;
        self.is_scattered |= is_many;
        let transaction = self.db.transaction()?;
        let automerge = "INSERT INTO words(words, rank) VALUES('automerge', ?1)";
        if is_many {
            transaction.execute(automerge, [0])?;
        }
        {
            let mut find = transaction.prepare_cached("SELECT id FROM doc WHERE site = ?1 AND key = ?2")?;
            let mut forget = transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?;
            let mut behead = transaction.prepare_cached("DELETE FROM heads WHERE rowid = ?1")?;
            let mut delete = transaction.prepare_cached("DELETE FROM doc WHERE id = ?1")?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO doc(id, site, key, lang, stamp, head, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            let mut index = transaction
                .prepare_cached("INSERT INTO words(rowid, title, headings, body) VALUES(?1, ?2, ?3, ?4)")?;
            let mut heads =
                transaction.prepare_cached("INSERT INTO heads(rowid, title, headings) VALUES(?1, ?2, ?3)")?;
            let keys = gone.iter().map(|key| (key, None)).chain(puts.iter().map(|put| (&put.key, Some(put))));
            for (key, put) in keys {
                let known: Option<i64> = find.query_row(params![site, key], |row| row.get(0)).optional()?;
                if let Some(id) = known {
                    forget.execute([id])?;
                    behead.execute([id])?;
                    delete.execute([id])?;
                }
                let Some(Put { key, lang, stamp, head, body, title, headings, text }) = put else { continue };
                insert.execute(params![known, site, key, lang, stamp, head, body])?;
                let id = transaction.last_insert_rowid();
                index.execute(params![id, title, headings, text])?;
                heads.execute(params![id, title, headings])?;
            }
        }
        if is_many {
            transaction.execute(automerge, [4])?;
        }
        transaction.commit()
    }

    /// The first `max` texts of a site that a query matches and whose keys `permits` lets through, best first; and whether there
    /// are more. `lang` is a language, of which any variant will do.
    pub fn candidates(
        &self,
        site: &str,
        query: &SearchQuery,
        lang: Option<&str>,
        max: usize,
        permits: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(Vec<IndexRow>, bool), Error> {
        let mut found = SearchCandidates { rows: Vec::new(), seen: HashSet::new(), max, permits };
        if query.is_empty() {
            return Ok((found.rows, false));
        }
        let fts = query.fts();
        let wanted = WantedRows { site, fts: &fts, lang };
        let is_usual = self.has_more(&fts, RANKED)?;
        if is_usual && self.gather(BY_HEADING, &wanted, true, &mut found)? {
            return Ok((found.rows, true));
        }
        let is_ranked = !is_usual || query.tokens() <= FEW_TOKENS;
        let is_more =
            self.gather(if is_ranked { BY_RANK } else { AS_FOUND }, &wanted, is_ranked, &mut found)?;
        Ok((found.rows, is_more))
    }

    /// Whether more texts than this match, in any site.
    fn has_more(&self, fts: &str, than: usize) -> Result<bool, Error> {
        let mut query = self.db.prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2, 1")?;
        query.exists(params![fts, i64::try_from(than).unwrap_or(i64::MAX)])
    }

    /// Adds the texts that match, [`RANKED`] at a time and the best of these first; or each as it comes, if they are not
    /// ranked. Whether there are more than are wanted.
    fn gather(
        &self,
        sql: &str,
        wanted: &WantedRows<'_>,
        is_ranked: bool,
        found: &mut SearchCandidates<'_>,
    ) -> Result<bool, Error> {
        let mut ranks = self.db.prepare_cached(sql)?;
        // The variants of a language are what begins with it and a `-`, and so comes before it and a `.`.
        let variants = wanted.lang.map(|lang| (format!("{lang}-"), format!("{lang}.")));
        let (from, to) = variants.unzip();
        let mut rows = ranks.query(params![wanted.fts, wanted.site, wanted.lang, from, to])?;
        let mut best: Vec<(f64, i64)> = Vec::new();
        loop {
            let row = rows.next()?;
            let is_over = row.is_none();
            if let Some(row) = row {
                best.push((row.get(1)?, row.get(0)?));
            }
            if is_over || best.len() == RANKED || !is_ranked {
                best.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
                for (_, id) in best.drain(..) {
                    if self.take(id, found)? {
                        return Ok(true);
                    }
                }
            }
            if is_over {
                return Ok(false);
            }
        }
    }

    /// Adds a text, if it is permitted and new. Returns whether the candidates are full.
    fn take(&self, id: i64, found: &mut SearchCandidates<'_>) -> Result<bool, Error> {
        if !found.seen.insert(id) {
            return Ok(false);
        }
        let mut text = self.db.prepare_cached("SELECT key, head, body FROM doc WHERE id = ?1")?;
        let mut rows = text.query([id])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        let key: String = row.get(0)?;
        if !(found.permits)(&key) {
            return Ok(false);
        }
        if found.rows.len() == found.max {
            return Ok(true);
        }
        found.rows.push(IndexRow { key, head: row.get(1)?, body: row.get(2)? });
        Ok(false)
    }

    /// Merges a part of the texts added in bulk. Returns whether there may be more to merge.
    pub fn merge(&mut self) -> Result<bool, Error> {
        if !self.is_scattered {
            return Ok(false);
        }
        let before = self.db.total_changes();
        self.db.execute("INSERT INTO words(words, rank) VALUES('merge', ?1)", [-STEP])?;
        // As SQLite documents it: fewer than two rows have changed if there was nothing to do.
        self.is_scattered = self.db.total_changes().saturating_sub(before) >= 2;
        Ok(self.is_scattered)
    }
}

/// The conditions of a search.
struct WantedRows<'w> {
    site: &'w str,
    fts: &'w str,
    lang: Option<&'w str>,
}

/// The texts that are gathered for an answer.
struct SearchCandidates<'c> {
    rows: Vec<IndexRow>,
    /// The ids that were looked at.
    seen: HashSet<i64>,
    max: usize,
    permits: &'c mut dyn FnMut(&str) -> bool,
}

impl Index {
    /// Visits the keys of a site's texts that a query matches, in no order, until `visit` returns `false`.
    pub fn matches(
        &self,
        site: &str,
        query: &SearchQuery,
        mut visit: impl FnMut(&str) -> bool,
    ) -> Result<(), Error> {
        if query.is_empty() {
            return Ok(());
        }
        let mut keys = self.db.prepare_cached(
            "SELECT doc.key FROM words JOIN doc ON doc.id = words.rowid WHERE words MATCH ?1 AND doc.site = ?2",
        )?;
        let mut rows = keys.query(params![query.fts(), site])?;
        while let Some(row) = rows.next()? {
            if !visit(row.get_ref(0)?.as_str().unwrap_or_default()) {
                break;
            }
        }
        Ok(())
    }

    /// The text with a key.
    pub fn get(&self, site: &str, key: &str) -> Result<Option<IndexRow>, Error> {
        let mut query =
            self.db.prepare_cached("SELECT key, head, body FROM doc WHERE site = ?1 AND key = ?2")?;
        query
            .query_row([site, key], |row| {
                Ok(IndexRow { key: row.get(0)?, head: row.get(1)?, body: row.get(2)? })
            })
            .optional()
    }
}

/// Whether an error says nothing about the file: another process has it, the disk is full, or it may not be opened.
fn is_of_system(error: &Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(
            Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::ReadOnly
                | Code::DiskFull
                | Code::CannotOpen
                | Code::PermissionDenied
                | Code::SystemIoFailure
                | Code::OutOfMemory
        )
    )
}

/// Renames a file that cannot be used, and removes SQLite's files beside it.
fn set_aside(file: &Path) -> Option<PathBuf> {
    let beside = |ending: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let aside = beside(".damaged");
    let is_moved = std::fs::rename(file, &aside).is_ok();
    for ending in ["-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(beside(ending));
    }
    is_moved.then_some(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, lang: Option<&str>, title: &str, text: &str) -> Put {
        let words = |text: &str| super::super::SearchTokens::from_text(text).into_folded();
        Put {
            key: key.into(),
            lang: lang.map(Into::into),
            stamp: "1".into(),
            head: title.into(),
            body: text.into(),
            title: words(title),
            headings: words(""),
            text: words(text),
        }
    }

    fn found(index: &Index, query: &str, lang: Option<&str>) -> Vec<String> {
        let query = SearchQuery::parse(query).unwrap();
        let (rows, _) = index.candidates("s", &query, lang, 10, &mut |key| key != "hidden").unwrap();
        rows.into_iter().map(|row| row.key).collect()
    }

    fn fill(index: &mut Index) {
        let texts = [
            put("a", Some("ja"), "全文検索", "サーバーで検索します。issue化"),
            put("b", Some("en"), "Search", "Full-text search with an API on the server"),
            put("c", Some("ja-jp"), "設定", "ｻｰﾊﾞの設定と最適化"),
            put("hidden", None, "検索", "検索 search"),
        ];
        index.change("s", &texts, &[]).unwrap();
        index.change("other", &[put("a", None, "検索", "検索")], &[]).unwrap();
    }

    // S-07: words in two languages, pairs and single characters, and all words of a query.
    #[test]
    fn both_languages_are_found() {
        let mut index = Index::memory().unwrap();
        fill(&mut index);
        for (query, keys) in [
            ("検索", vec!["a"]),
            ("サーバ", vec!["a", "c"]),
            ("サーバー", vec!["a", "c"]),
            ("ＡＰＩ", vec!["b"]),
            ("issue化", vec!["a"]),
            ("化", vec!["a", "c"]),
            ("索", vec!["a"]),
            ("search API", vec!["b"]),
            ("search 検索", vec![]),
            ("索設", vec![]),
            ("\" OR words MATCH \"x", vec![]),
        ] {
            let mut all = found(&index, query, None);
            all.sort();
            assert_eq!(all, keys, "{query}");
        }
        assert_eq!(found(&index, "サーバ 設定", Some("ja")), ["c"]);
        assert_eq!(found(&index, "サーバ", Some("en")), [""; 0]);
        index.change("s", &[put("a", None, "x", "y")], &["b".into()]).unwrap();
        assert_eq!((found(&index, "検索", None), found(&index, "api", None)), (vec![], vec![]));
        assert_eq!(found(&index, "y", None), ["a"]);
    }

    // S-07: where many texts have a word, those with it in a heading come first, few are looked at, and none that is permitted
    // is lost behind others.
    #[test]
    fn usual_words_take_no_longer() {
        let mut index = Index::memory().unwrap();
        let all = 3 * RANKED;
        let texts: Vec<Put> = (0..all)
            .map(|at| {
                let title = if at % 100 == 7 { "usual" } else { "other" };
                put(
                    &format!("p{at}"),
                    Some(if at % 2 == 0 { "en" } else { "ja-jp" }),
                    title,
                    "usual 検索の設定です",
                )
            })
            .collect();
        index.change("s", &texts, &[]).unwrap();
        let mut steps = 0;
        while index.merge().unwrap() {
            steps += 1;
            assert!(steps < 1_000);
        }
        let search = |text: &str, lang: Option<&str>, max: usize, permits: &dyn Fn(&str) -> bool| {
            let mut looked_at = 0;
            let query = SearchQuery::parse(text).unwrap();
            let mut permits = |key: &str| {
                looked_at += 1;
                permits(key)
            };
            let (rows, is_more) = index.candidates("s", &query, lang, max, &mut permits).unwrap();
            let keys: HashSet<String> = rows.into_iter().map(|row| row.key).collect();
            (keys, is_more, looked_at)
        };
        let (keys, is_more, looked_at) = search("usual", None, 20, &|_| true);
        let in_title = |key: &String| key.ends_with("07") || key == "p7";
        assert!(keys.iter().all(in_title), "{keys:?}");
        assert_eq!((keys.len(), is_more, looked_at), (20, true, 21));
        assert_eq!(search("usual", Some("ja"), 100, &|_| true).0.len(), 100);
        assert!(search("usual", Some("en"), 10, &|_| true).0.iter().all(|key| !in_title(key)));
        let last = format!("p{}", all - 1);
        for text in ["usual", "検索の設定です"] {
            assert_eq!(search(text, None, all, &|_| true).0.len(), all, "{text}");
            assert_eq!(search(text, None, 5, &|key| key == last).0, HashSet::from([last.clone()]), "{text}");
        }
    }

    // S-07: a file keeps the index; one that is damaged is set aside, and one of another program is refused.
    #[test]
    fn a_file_is_a_cache() {
        let folder = std::env::temp_dir().join(format!("mcp-search-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("index.db");
        let open = || Index::file(&file).unwrap();
        let (mut index, said) = open();
        assert_eq!(said, None);
        fill(&mut index);
        assert!(is_of_system(&Index::file(&file).unwrap_err()));
        drop(index);
        let (mut index, said) = open();
        assert_eq!((said, found(&index, "検索", None)), (None, vec!["a".to_owned()]));
        index.keep(&["other"]).unwrap();
        assert_eq!(found(&index, "検索", None), [""; 0]);
        drop(index);
        assert_eq!(Index::refuses(&file), None);
        for damage in [&b"garbage"[..], &[MAGIC.as_slice(), &[0; 4_000]].concat()] {
            std::fs::write(&file, damage).unwrap();
            let (mut index, said) = open();
            assert!(said.unwrap().contains("index.db.damaged"));
            fill(&mut index);
            assert_eq!(found(&index, "検索", None), ["a"]);
        }
        // Version 3 had digests of another algorithm: nothing of it is taken over.
        let earlier = Connection::open(&file).unwrap();
        earlier.pragma_update(None, "user_version", 3).unwrap();
        drop(earlier);
        let (mut index, said) = open();
        assert!(said.unwrap().contains("it is damaged, or of another version"));
        let mut known = 0;
        index.known("s", |_, _, _| known += 1).unwrap();
        assert_eq!(known, 0);
        fill(&mut index);
        drop(index);
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0x55);
        std::fs::write(&file, bytes).unwrap();
        assert!(open().1.is_some());
        // What cannot be opened is not known to be damaged.
        std::fs::create_dir(folder.join("made-later")).unwrap();
        assert!(Index::file(&folder.join("made-later")).is_err() && folder.join("made-later").is_dir());
        let other = Connection::open(folder.join("other.db")).unwrap();
        other.execute_batch("CREATE TABLE t(a)").unwrap();
        assert!(Index::refuses(&folder.join("other.db")).unwrap().contains("another program"));
        assert!(Index::refuses(&folder).unwrap().contains("no file"));
        assert!(Index::refuses(&folder.join("no/such.db")).is_some());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
