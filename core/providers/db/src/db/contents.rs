//! Builds the JSON that clients read.
//!
//! Law: a row appears on a page, or in `next`, only if the guard permits its URI. A page reads on past hidden rows
//! until it has as many rows as the client asked for.

use super::catalog::{CatalogRow, DbTable};
use super::options::MOST_ROWS;
use super::query::DbQuery;
use super::session::{DbSession, SessionFault, TIME};
use super::source::DbSource;
use super::target::{self, DbTarget};
use mcp_resources_engine::json_text;
use mcp_resources_provider_kit::digest::{Digester, digest};
use mcp_resources_template::uri::push_encoded;
use serde_json::{Map, Value, json};
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Instant;

/// The most rows of a watched page that are compared, including hidden ones.
const MOST_COMPARED: usize = 100_000;

/// The checks and the log of one request.
pub(super) struct RowReader<'r> {
    /// Whether the client may see a URI.
    pub(super) permits: &'r dyn Fn(&str) -> bool,
    /// Fails if an answer may not have this many bytes.
    pub(super) fits: &'r dyn Fn(u64) -> Result<(), SessionFault>,
    pub(super) log: &'r dyn Fn(&str),
}

/// The contents of a resource, and their state for later comparison.
#[derive(Debug)]
pub(super) struct DbRead {
    pub(super) text: String,
    pub(super) state: RowsState,
}

/// A digest of the rows behind a resource, before the guard has hidden any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowsState {
    pub(super) digest: u64,
    /// The number of rows read.
    pub(super) rows: usize,
}

/// The index: it needs no database.
pub(super) fn index(sources: &[Arc<DbSource>], permits: &dyn Fn(&str) -> bool) -> String {
    let databases = sources.iter().map(|source| {
        let schema = format!("{}/schema", source.uri);
        let tables: Vec<&str> =
            source.tables.iter().map(|table| table.uri.as_str()).filter(|uri| permits(uri)).collect();
        let views = source.views.iter().enumerate().filter(|(_, view)| permits(&view.uri));
        let views: Vec<String> = views.map(|(at, _)| target::template(source, at)).collect();
        let mut database = json!({ "name": source.name, "tables": tables, "views": views });
        if let (true, Some(members)) = (permits(&schema), database.as_object_mut()) {
            members.insert("schema".into(), schema.into());
        }
        database
    });
    json!({ "databases": databases.collect::<Vec<_>>() }).to_string()
}

/// Reads a target.
///
/// # Errors
/// See [`SessionFault`].
pub(super) fn read(
    source: &DbSource,
    session: &mut dyn DbSession,
    target: &DbTarget,
    reader: &RowReader<'_>,
) -> Result<DbRead, SessionFault> {
    let catalog = session.catalog()?;
    source.report(&catalog, reader.log);
    let table = |name: &str| catalog.table(name).ok_or(SessionFault::NotFound);
    match target {
        DbTarget::Index => Err(SessionFault::NotFound),
        DbTarget::Schema => {
            let text = schema(source, &catalog, reader.permits);
            let state = RowsState { digest: digest(schema(source, &catalog, &|_| true).as_bytes()), rows: 0 };
            Ok(DbRead { text, state })
        }
        DbTarget::Page { table: name, after, rows } => {
            let page =
                RowPage { table: table(name)?, after: after.as_deref(), rows: *rows, default: source.rows };
            page.read(session, reader)
        }
        DbTarget::Row { table: name, key } => read_row(session, table(name)?, key, reader),
        DbTarget::View(number, values) => {
            let view = catalog.views.get(*number).and_then(Option::as_ref).ok_or(SessionFault::NotFound)?;
            let limit = MOST_ROWS + 1;
            let mut text = b"{\"rows\":[".to_vec();
            let mut rows = 0;
            let names = source.views.get(*number).map_or(&[][..], |view| &view.statement.names);
            let asked = session.run(&DbQuery::View { view, values, limit }, &mut |row| {
                rows += 1;
                if rows == limit {
                    return Ok(false);
                }
                if rows > 1 {
                    text.push(b',');
                }
                row.write(&view.columns, &mut text);
                (reader.fits)(text.len() as u64).map(|()| true)
            });
            asked.map_err(|fault| named(fault, names))?;
            text.extend_from_slice(if rows == limit { b"],\"truncated\":true}" } else { b"]}" });
            let state = RowsState { digest: digest(&text), rows };
            Ok(DbRead { text: text_of(text), state })
        }
    }
}

/// Reads the state of a watched target. For a page, `rows` is how many rows the last read of it needed.
///
/// # Errors
/// See [`SessionFault`].
pub(super) fn state(
    source: &DbSource,
    session: &mut dyn DbSession,
    target: &DbTarget,
    rows: Option<usize>,
    reader: &RowReader<'_>,
) -> Result<RowsState, SessionFault> {
    let catalog = session.catalog()?;
    let (DbTarget::Page { table, after, rows: own }, Some(rows)) = (target, rows) else {
        return read(source, session, target, reader).map(|read| read.state);
    };
    let table = catalog.table(table).ok_or(SessionFault::NotFound)?;
    let page = RowPage { table, after: after.as_deref(), rows: *own, default: source.rows };
    let wanted = rows.clamp(page.rows() + 1, MOST_COMPARED);
    let mut compared = RowsDigest::default();
    page.scan(session, wanted.min(MOST_ROWS + 1), &mut |row| {
        compared.add(table, row);
        Ok(compared.rows < wanted)
    })?;
    Ok(compared.state())
}

/// The name of the parameter that a fault is about, where only its number is known.
fn named(fault: SessionFault, names: &[String]) -> SessionFault {
    match fault {
        SessionFault::Parameter { name, expected } => {
            let number: Option<usize> = name.parse().ok();
            let known = number.and_then(|number| names.get(number)).cloned();
            SessionFault::Parameter { name: known.unwrap_or(name), expected }
        }
        other => other,
    }
}

fn schema(source: &DbSource, catalog: &super::catalog::DbCatalog, permits: &dyn Fn(&str) -> bool) -> String {
    let tables = catalog.tables.iter().filter(|table| permits(&table.uri));
    let tables: Map<String, Value> = tables.map(|table| (table.name.clone(), table.describe())).collect();
    let mut views = Map::new();
    for (at, (view, found)) in source.views.iter().zip(&catalog.views).enumerate() {
        if let (Some(found), true) = (found, permits(&view.uri)) {
            let columns: Vec<_> = found.columns.iter().map(super::catalog::Column::describe).collect();
            let template = target::template(source, at);
            let parameters = &view.statement.names;
            views.insert(
                view.name.clone(),
                json!({ "uri": template, "parameters": parameters, "columns": columns }),
            );
        }
    }
    json!({ "tables": tables, "views": views }).to_string()
}

fn read_row(
    session: &mut dyn DbSession,
    table: &DbTable,
    key: &str,
    reader: &RowReader<'_>,
) -> Result<DbRead, SessionFault> {
    let values = table.read_key(key, false).ok_or(SessionFault::NotFound)?;
    let mut found: Vec<CatalogRow> = Vec::new();
    let asked = session.run(&DbQuery::Row { table, key: &values }, &mut |row| {
        found.push(row);
        Ok(true)
    });
    match asked {
        // The database takes the text for no value of the column.
        Err(SessionFault::Parameter { .. }) => return Err(SessionFault::NotFound),
        other => other?,
    }
    // Several rows have a NULL in their key: none of them is the one.
    let [row] = found.as_slice() else { return Err(SessionFault::NotFound) };
    let own = table.key_text(&row.key);
    if own != key || !(reader.permits)(&table.row_uri(&own)) {
        return Err(SessionFault::NotFound);
    }
    let mut text = Vec::new();
    row.write(&table.columns, &mut text);
    (reader.fits)(text.len() as u64)?;
    let state = RowsState { digest: digest(&text), rows: 1 };
    Ok(DbRead { text: text_of(text), state })
}

/// A page of a table.
struct RowPage<'p> {
    table: &'p DbTable,
    after: Option<&'p str>,
    rows: Option<usize>,
    default: usize,
}

impl RowPage<'_> {
    fn rows(&self) -> usize {
        self.rows.unwrap_or(self.default)
    }

    fn read(&self, session: &mut dyn DbSession, reader: &RowReader<'_>) -> Result<DbRead, SessionFault> {
        let table = self.table;
        let wanted = self.rows();
        let mut text = b"{\"rows\":[".to_vec();
        let mut compared = RowsDigest::default();
        let mut shown = 0;
        let mut last = None;
        let mut has_more = false;
        self.scan(session, wanted + 1, &mut |row| {
            let written = compared.add(table, row);
            if !(reader.permits)(&table.row_uri(&table.key_text(&row.key))) {
                return Ok(true);
            }
            let size = (text.len() + written.len()) as u64;
            match (reader.fits)(size) {
                Err(fault) if shown == 0 => return Err(fault),
                // The remaining rows go to the next page.
                Err(_) => has_more = true,
                Ok(()) => has_more = shown == wanted,
            }
            if has_more {
                return Ok(false);
            }
            if shown > 0 {
                text.push(b',');
            }
            text.extend_from_slice(written);
            last = Some(table.cursor_text(&row.key));
            shown += 1;
            Ok(true)
        })?;
        text.push(b']');
        if let (true, Some(last)) = (has_more, last) {
            text.extend_from_slice(b",\"next\":");
            json_text::escape_into(&self.next(&last), &mut text);
        }
        text.push(b'}');
        Ok(DbRead { text: text_of(text), state: compared.state() })
    }

    /// The URI of the page behind the row with this key.
    fn next(&self, last: &str) -> String {
        let mut uri = format!("{}?after=", self.table.uri);
        for byte in last.bytes() {
            match byte {
                b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
                _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
                _ => push_encoded(&mut uri, byte),
            }
        }
        match self.rows {
            Some(rows) => uri + &format!("&rows={rows}"),
            None => uri,
        }
    }

    /// Visits the rows of the table behind `after`, `first` of them with the first query, until `visit` returns that it
    /// needs no more.
    fn scan(
        &self,
        session: &mut dyn DbSession,
        first: usize,
        visit: &mut dyn FnMut(&CatalogRow) -> Result<bool, SessionFault>,
    ) -> Result<(), SessionFault> {
        const EXPECTED: &str = "the key of a row, as in `next`";
        let table = self.table;
        let begun = Instant::now();
        let mut after = match self.after {
            Some(text) => {
                let key = table.read_key(text, true);
                Some(key.ok_or_else(|| SessionFault::parameter("after", EXPECTED))?)
            }
            None => None,
        };
        let mut limit = first;
        loop {
            let mut last = None;
            let mut count = 0;
            let mut is_done = false;
            let query = DbQuery::Page { table, after: after.as_deref(), limit };
            let asked = session.run(&query, &mut |row| {
                count += 1;
                is_done = !visit(&row)?;
                last = Some(row.key);
                Ok(!is_done)
            });
            match asked {
                Err(SessionFault::Parameter { .. }) => {
                    return Err(SessionFault::parameter("after", EXPECTED));
                }
                other => other?,
            }
            if is_done || count < limit || last.is_none() {
                return Ok(());
            }
            if begun.elapsed() > TIME {
                return Err(SessionFault::Time);
            }
            after = last;
            limit = MOST_ROWS;
        }
    }
}

/// Digests rows one after the other.
#[derive(Default)]
struct RowsDigest {
    digester: Digester,
    rows: usize,
    written: Vec<u8>,
}

impl RowsDigest {
    /// Adds a row, and returns its text.
    fn add(&mut self, table: &DbTable, row: &CatalogRow) -> &[u8] {
        self.written.clear();
        row.write(&table.columns, &mut self.written);
        self.digester.write(&self.written);
        self.digester.write_u8(0xFF);
        self.rows += 1;
        &self.written
    }

    fn state(&self) -> RowsState {
        RowsState { digest: self.digester.finish(), rows: self.rows }
    }
}

/// JSON is text: it was made of texts.
fn text_of(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
