//! The manual pages, made from the same descriptions as the help. Packages contain them.

use crate::Outcome;
use crate::args::Cli;
use crate::error::Failed;
use clap::CommandFactory;
use std::path::Path;

/// Writes a page for the command, and one for each subcommand.
pub(crate) fn write(directory: &Path) -> Outcome {
    let wrong =
        |error| Failed::new(format!("the manual cannot be written to {}: {error}", directory.display()));
    clap_mangen::generate_to(Cli::command(), directory).map_err(wrong)?;
    Ok(0)
}
