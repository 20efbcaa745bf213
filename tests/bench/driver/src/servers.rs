//! The servers of the comparison: what the driver must know about each.

use crate::workload::Workload;

/// One server.
pub(crate) struct Contestant {
    /// Its name, as `../serve` knows it.
    pub(crate) name: String,
    /// Requests before counting starts: Python's caches and Node's compiler need some.
    pub(crate) warm: u64,
    /// Answers every read with the fixture's static text.
    pub(crate) constant: bool,
}

impl Contestant {
    /// The server with this name.
    pub(crate) fn named(name: &str) -> Self {
        let node = matches!(name, "ours-node" | "ts-sdk");
        let warm = if node { 10_000 } else { 1_000 };
        Self { name: name.into(), warm, constant: name.starts_with("floor") }
    }
}

/// Whether the server's fixture has what the workload reads.
pub(crate) fn takes_part(name: &str, workload: Workload) -> bool {
    let ours = name.starts_with("ours-");
    match workload {
        Workload::Constant => ours,
        Workload::Inline | Workload::InlineItem => name == "ours-python",
        Workload::Blob | Workload::Text => !name.starts_with("floor"),
        Workload::Static | Workload::Item | Workload::AsyncItem => name != "floor-http",
        Workload::Http8 | Workload::Http64 => name != "floor",
        Workload::HttpConstant => ours || name == "floor-http",
        Workload::Updates | Workload::Subscribers | Workload::Listeners => ours,
    }
}
