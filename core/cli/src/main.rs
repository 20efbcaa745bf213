//! The program `mcp-resources`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_resources_cli::main(std::env::args_os())
}
