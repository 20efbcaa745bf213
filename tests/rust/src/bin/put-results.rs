//! Puts one result after another into a file: `put-results FILE ROUND`. Each is written on standard output once it is
//! acknowledged. It goes on until it is killed. For the test that nothing acknowledged is lost.
#![expect(clippy::expect_used, reason = "what goes wrong here ends a test")]

use mcp_resources_providers::results::{PutOptions, ResultOptions, Results};
use std::io::Write;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: put-results FILE ROUND");
    let round = arguments.next().expect("usage: put-results FILE ROUND");
    let options = ResultOptions::new().file(file).entries(1_000_000).bytes(1 << 30);
    let results = Results::new(options).expect("a file that can be used");
    let mut out = std::io::stdout().lock();
    for number in 0_u64.. {
        // Some are put anew, some are large.
        let id = format!("{round}-{}", number % 40);
        let body = format!("{number} {}", "x".repeat(if number % 7 == 0 { 20_000 } else { 50 }));
        results.put(&id, body, PutOptions::new()).expect("it is put");
        writeln!(out, "{number}").expect("somebody reads");
        out.flush().expect("somebody reads");
    }
}
