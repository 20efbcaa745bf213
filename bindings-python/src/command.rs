//! The command `mcp-resources`, in the process of its console script.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command; `argv` begins with the name of the program. Returns the exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| mcp_resources_cli::run(argv))
}
