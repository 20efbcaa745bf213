//! Each case is run twice: whatever there is written at once and answered inside the loop, and written in the smallest
//! pieces and answered off it. Every response must have the same bytes both ways.

use super::host::{Host, Mode};
use crate::schema::Schemas;
use crate::vectors;
use crate::wire::case::{self, Case};
use std::panic::{AssertUnwindSafe, catch_unwind};

const WHOLE: Mode = Mode { room: usize::MAX, off_loop: false };
const IN_PIECES: Mode = Mode { room: 1, off_loop: true };

/// The requirements that each case cites.
#[test]
fn http_fixtures() {
    let schemas = Schemas::load();
    if schemas.is_none() {
        vectors::left_out("no official schemas beside the project, messages are not validated");
    }
    let mut failures = Vec::new();
    let mut passed = 0;
    for case in case::all("http") {
        match run(&case, schemas.as_ref()) {
            Ok(()) => {
                passed += 1;
                vectors::passed(&case.to_string(), case.member("covers"));
            }
            Err(failure) => failures.push(format!("{case}: {failure}")),
        }
    }
    println!("{passed} cases passed, {} failed", failures.len());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn run(case: &Case, schemas: Option<&Schemas>) -> Result<(), String> {
    let whole = attempt(case, WHOLE, schemas)?;
    let pieces = attempt(case, IN_PIECES, None).map_err(|error| format!("in pieces: {error}"))?;
    if whole == pieces { Ok(()) } else { Err(format!("in pieces it sends\n{pieces}instead of\n{whole}")) }
}

/// A case that panics is a failure of this case alone.
fn attempt(case: &Case, mode: Mode, schemas: Option<&Schemas>) -> Result<String, String> {
    let run = || Host::new(case, mode, schemas)?.run();
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("?")))
    })
}
