//! Runs a file of guard cases: a line for each failure, then `N passed, M failed`. See `tests/fixtures/run-guard`.

use mcp_resources_tests::guarding;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: run-guard FILE");
        return ExitCode::from(2);
    };
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    match text.and_then(|text| guarding::run(&text)) {
        Ok(report) => {
            report.failures.iter().for_each(|failure| println!("{failure}"));
            println!("{} passed, {} failed", report.passed, report.failures.len());
            ExitCode::from(u8::from(!report.failures.is_empty()))
        }
        Err(error) => {
            eprintln!("{}: {error}", path.to_string_lossy());
            ExitCode::from(2)
        }
    }
}
