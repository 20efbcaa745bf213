//! Each case is run twice: whole messages answered inside the loop, and single bytes answered off it. The bytes that
//! the server sent must be the same, and are written to `target/fixtures/rust.out` for the other languages.

use super::case::{self, Case};
use super::host::{Host, Mode};
use crate::schema::Schemas;
use crate::vectors;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

const WHOLE: Mode = Mode { in_pieces: false, off_loop: false };
const IN_PIECES: Mode = Mode { in_pieces: true, off_loop: true };

/// The requirements that each case cites, and R-005 for every message.
#[test]
fn wire_fixtures() {
    let schemas = Schemas::load();
    if schemas.is_none() {
        vectors::left_out("no official schemas beside the project, messages are not validated");
    }
    let mut record = String::new();
    let mut failures = Vec::new();
    let mut passed = 0;
    for case in case::all("wire") {
        match run(&case, schemas.as_ref()) {
            Ok(sent) => {
                passed += 1;
                vectors::passed(&case.to_string(), case.member("covers"));
                let _ = writeln!(record, "# {case}\n{sent}");
            }
            Err(failure) => failures.push(format!("{case}: {failure}")),
        }
    }
    write_record(&record);
    println!("{passed} cases passed, {} failed", failures.len());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The bytes that the server sent, if the case passed both ways with the same bytes.
fn run(case: &Case, schemas: Option<&Schemas>) -> Result<String, String> {
    let whole = attempt(case, WHOLE, schemas)?;
    let pieces = attempt(case, IN_PIECES, None).map_err(|error| format!("off the loop: {error}"))?;
    if whole == pieces {
        Ok(whole)
    } else {
        Err(format!("off the loop it sends\n{pieces}instead of\n{whole}"))
    }
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

fn write_record(record: &str) {
    let folder = vectors::project().join("target/fixtures");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rust.out"), record).unwrap();
}
