//! W19: tools. Calls of `echo` go the way of reads; here are the list and the import.

use crate::client::ListMethod;
use crate::figures::Figures;
use crate::measure::Setting;
use crate::process::Launch;
use crate::servers::Contestant;
use crate::start;
use crate::walk;
use std::error::Error;

/// The number of listed tools.
const LISTED: u32 = 1_000;

/// What is measured of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolWork {
    /// Calls over stdio, with so many in flight.
    Stdio(u32),
    /// Calls over so many HTTP connections.
    Http(u32),
    /// `tools/list`, page by page to its end.
    List,
    /// The import of the package, and of its modules for tools.
    Import,
}

impl ToolWork {
    pub(crate) const ALL: [Self; 6] =
        [Self::Stdio(1), Self::Stdio(64), Self::Http(1), Self::Http(64), Self::List, Self::Import];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Stdio(in_flight) => format!("W19-{in_flight}"),
            Self::Http(connections) => format!("W19-http-{connections}"),
            Self::List => "W19-list".into(),
            Self::Import => "W19-import".into(),
        }
    }

    /// The number of tools besides `echo`.
    pub(crate) fn tools(self) -> u32 {
        if self == Self::List { LISTED } else { 0 }
    }
}

/// Starts the server and walks its list of tools.
pub(crate) fn measure_list(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let number_of = |name: &str| name.strip_prefix('t').and_then(|number| number.parse().ok());
    walk::measure_lists(launch, ListMethod::Tools, LISTED, number_of, setting)
}

/// The import of the package in processes of their own, and what its modules for tools add; medians.
pub(crate) fn measure_import(
    launch: &Launch,
    contestant: &Contestant,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    let mut imports = Vec::new();
    let mut with_tools = Vec::new();
    for _ in 0..setting.requests {
        imports.push(start::import(launch, contestant.name)?.ok_or("there is nothing to import")?);
        with_tools.push(start::import_tools(launch)?);
    }
    let [import, with_tools] = [&mut imports, &mut with_tools].map(|times| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or_default()
    });
    Ok(Figures::default().with("import_ms", import).with("tools_ms", with_tools - import))
}
