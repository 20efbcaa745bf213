//! A Google Drive on loopback, for the tests of other languages: `serve-drive` writes its URL, and then does what each
//! line of its input says (see `LoopbackDrive::command`), and answers with a line of the requests that it has had. It
//! ends with its input.

use mcp_resources_tests::drive::LoopbackDrive;
use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let drive = LoopbackDrive::start();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", drive.url)?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let heard = drive.command(&serde_json::from_str(&line?)?);
        writeln!(out, "{}", serde_json::to_string(&heard)?)?;
        out.flush()?;
    }
    Ok(())
}
