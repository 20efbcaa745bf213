//! The tools of the db provider: the rows of a table, one row, and each view.
//!
//! Law: a view has the same name as long as the declarations of databases and views before it stay the same.

use super::source::{DbSource, DeclaredView};
use super::target::{self, ROW, TABLE};
use mcp_resources_engine::option::OptionError;
use mcp_resources_engine::resource::ReadTool;
use mcp_resources_provider_kit::offered::{ToolNames, choice, number, text};
use mcp_resources_runtime::provider::Feed;
use std::sync::Arc;

/// The tools of all databases.
const TABLE_TOOLS: [&str; 2] = ["db_rows", "db_row"];

/// The tools that are offered, each for the databases whose declaration offers it.
pub(super) fn offered(sources: &[Arc<DbSource>], feed: &Feed) -> Vec<ReadTool> {
    let tables = [
        ReadTool::new("db_rows", TABLE)
            .title("Rows of a table")
            .description("Lists rows of a database table in the order of their keys. The next page begins at `next` of a page.")
            .parameter(text("after", "The key after which the page begins; the first page has none."))
            .parameter(number("rows", "How many rows, at most 1000.")),
        ReadTool::new("db_row", ROW)
            .title("A row of a table")
            .description("Shows one row of a database table by its key.")
            .parameter(text("key", "The key of the row, as 3, or as 2,3 where a key has two columns.")),
    ];
    let tables = tables.into_iter().filter_map(|tool| {
        let offers = |own: &&Arc<DbSource>| !own.tables.is_empty() && own.tools.offers(&tool.tool.name, feed);
        let all: Vec<_> = sources.iter().filter(offers).collect();
        let mut names: Vec<String> = all
            .iter()
            .flat_map(|own| {
                own.tables
                    .iter()
                    .map(|table| mcp_resources_provider_kit::path::text(table.name.as_bytes()).to_string())
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let databases = all.iter().map(|own| own.name.clone());
        let tool = tool.parameter(choice("name", "The database.", databases));
        (!all.is_empty()).then(|| tool.parameter(choice("table", "The table.", names)))
    });
    let views = views(sources).into_iter().filter(|(name, source, ..)| source.tools.offers(name, feed));
    tables.chain(views.map(|(name, source, number, view)| of_view(&name, source, number, view))).collect()
}

/// Refuses names that no tool has.
///
/// # Errors
/// As [`OfferedTools::check`](mcp_resources_provider_kit::offered::OfferedTools::check).
pub(super) fn check(sources: &[Arc<DbSource>]) -> Result<(), OptionError> {
    let views = views(sources);
    let own = |source: &Arc<DbSource>| {
        let mut names = TABLE_TOOLS.to_vec();
        let of_source = views.iter().filter(|(_, other, ..)| Arc::ptr_eq(other, source));
        names.extend(of_source.map(|(name, ..)| name.as_str()));
        source.tools.check("db", &names)
    };
    sources.iter().try_for_each(own)
}

/// All views with the names of their tools, their databases, and their numbers there.
fn views(sources: &[Arc<DbSource>]) -> Vec<(String, &Arc<DbSource>, usize, &DeclaredView)> {
    let mut names = ToolNames::with(&TABLE_TOOLS);
    let all = target::views(sources).filter_map(|(at, number)| {
        let source = sources.get(at)?;
        let view = source.views.get(number)?;
        Some((names.name(&["db", &source.name, &view.name]), source, number, view))
    });
    all.collect()
}

/// The tool of a view: its parameters are the arguments, and all must be given.
fn of_view(name: &str, source: &DbSource, number: usize, view: &DeclaredView) -> ReadTool {
    let tool = ReadTool::new(name, target::template(source, number))
        .title(format!("The view {} of {}", view.name, source.name))
        .description(format!(
            "Lists the rows that the view {} of the database {} selects.",
            view.name, source.name
        ));
    let parameters = view.statement.names.iter();
    parameters.fold(tool, |tool, name| {
        let given = text(name, &format!("The value of :{name} in the statement.")).required(true);
        tool.parameter(given)
    })
}
