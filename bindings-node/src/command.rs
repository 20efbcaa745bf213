//! The command `mcp-resources`, in the process of npm's `bin`.

use napi_derive::napi;

/// Runs the command; `argv` begins with the name of the program. Returns the exit status.
#[napi]
pub(crate) fn main(argv: Vec<String>) -> u8 {
    mcp_resources_cli::run(argv.into_iter().map(Into::into))
}

// Only the macro's export uses it, and there is none where lints look at tests.
#[cfg(test)]
const _: fn(Vec<String>) -> u8 = main;
