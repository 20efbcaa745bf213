//! Resolves URIs to tables, rows and views.

use super::options::MOST_ROWS;
use super::source::DbSource;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_template::{Lookup, TemplateSet, UriTemplate};
use std::sync::Arc;

pub(super) const INDEX: &str = "db:///";
pub(super) const SCHEMA: &str = "db:///{name}/schema";
pub(super) const TABLE: &str = "db:///{name}/{table}{?after,rows}";
pub(super) const ROW: &str = "db:///{name}/{table}/{key}";

routes! {
    /// The resources and templates of the provider.
    pub(super) enum DbRoute {
        Index,
        Schema,
        Table,
        Row,
        /// A statement, by its place in [`views`].
        View(at: usize),
    }
}

/// A resource of a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DbTarget {
    Index,
    Schema,
    Page {
        table: String,
        after: Option<String>,
        /// `None`: the default of the source.
        rows: Option<usize>,
    },
    Row {
        table: String,
        key: String,
    },
    /// A statement by its number, with the values of its parameters.
    View(usize, Vec<String>),
}

/// A declared statement, by its source and its number there.
pub(super) type ViewNumber = (usize, usize);

/// All declared statements, in the order of their routes.
pub(super) fn views(sources: &[Arc<DbSource>]) -> impl Iterator<Item = ViewNumber> {
    sources.iter().enumerate().flat_map(|(at, source)| (0..source.views.len()).map(move |view| (at, view)))
}

/// The template of a statement.
pub(super) fn template(source: &DbSource, view: usize) -> String {
    let Some(view) = source.views.get(view) else { return String::new() };
    match view.statement.names.as_slice() {
        [] => view.uri.clone(),
        names => format!("{}{{?{}}}", view.uri, names.join(",")),
    }
}

impl DbTarget {
    /// Resolves a request to a source, by its number, and a target in it.
    ///
    /// # Errors
    /// Nothing of the name is declared, or a variable has a wrong form.
    pub(super) fn resolve<'v>(
        sources: &[Arc<DbSource>],
        route: DbRoute,
        variable: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<(usize, Self), ReadError> {
        if route == DbRoute::Index {
            return Ok((0, Self::Index));
        }
        if let DbRoute::View(number) = route {
            let (at, view) = views(sources).nth(number).ok_or(ReadError::NotFound)?;
            let declared =
                sources.get(at).and_then(|source| source.views.get(view)).ok_or(ReadError::NotFound)?;
            let value = |name: &String| match variable(name) {
                Some(value) => Ok(value.to_owned()),
                None => {
                    Err(ReadError::InvalidParameter { parameter: name.clone(), expected: "a value".into() })
                }
            };
            let values = declared.statement.names.iter().map(value).collect::<Result<_, _>>()?;
            return Ok((at, Self::View(view, values)));
        }
        let name = variable("name").unwrap_or_default();
        let at = sources.iter().position(|source| source.name == name).ok_or(ReadError::NotFound)?;
        if route == DbRoute::Schema {
            return Ok((at, Self::Schema));
        }
        let table = variable("table").unwrap_or_default();
        let declared =
            sources.get(at).and_then(|source| source.declared(table)).ok_or(ReadError::NotFound)?;
        let table = declared.name.clone();
        if route == DbRoute::Row {
            return Ok((at, Self::Row { table, key: variable("key").unwrap_or_default().into() }));
        }
        let rows = match variable("rows") {
            None => None,
            Some(text) => Some(rows_of(text).ok_or_else(|| ReadError::InvalidParameter {
                parameter: "rows".into(),
                expected: format!("a whole number from 1 to {MOST_ROWS}"),
            })?),
        };
        Ok((at, Self::Page { table, after: variable("after").map(str::to_owned), rows }))
    }
}

/// The templates that every source has.
const PATTERNS: [(&str, DbRoute); 3] =
    [(SCHEMA, DbRoute::Schema), (TABLE, DbRoute::Table), (ROW, DbRoute::Row)];

/// All templates, to resolve a watched URI, for which there is no request.
pub(super) struct DbTemplates(Option<TemplateSet>);

impl DbTemplates {
    pub(super) fn new(sources: &[Arc<DbSource>]) -> Self {
        let views = views(sources).filter_map(|(at, view)| Some(template(sources.get(at)?, view)));
        let texts = PATTERNS.iter().map(|(text, _)| (*text).to_owned()).chain(views);
        // The engine has taken the same templates when they were mounted.
        let parsed = texts.map(|text| UriTemplate::parse(&text)).collect::<Result<Vec<_>, _>>().ok();
        Self(parsed.and_then(|parsed| TemplateSet::new(parsed).ok()))
    }

    /// Resolves a canonical URI.
    pub(super) fn target(&self, sources: &[Arc<DbSource>], uri: &str) -> Option<(usize, DbTarget)> {
        match self.0.as_ref()?.match_uri(uri).ok()? {
            Lookup::Match { index, params } => {
                let mut routes = PATTERNS.iter().map(|(_, route)| *route).chain((0..).map(DbRoute::View));
                let route = routes.nth(index)?;
                DbTarget::resolve(sources, route, |name| params.text(name)).ok()
            }
            _ => None,
        }
    }
}

fn rows_of(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|rows| is_number && (1..=MOST_ROWS).contains(rows))
}
