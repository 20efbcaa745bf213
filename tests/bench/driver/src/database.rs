//! W17: a server of a table in SQLite, beside a handler that asks `sqlite3`: how fast its pages are read, and how soon another
//! process's commit is reported.
//!
//! ```text
//!   target/bench/database/shop.db           the table items, 20,000 rows
//!   target/bench/database/resources.json    what `mcp-resources serve --config` is told of it
//! ```

use crate::docs::Searcher;
use crate::figures::{Figures, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
use crate::updates;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the database is, from the root of the repository.
pub(crate) const FOLDER: &str = "target/bench/database";
/// How many rows the table has.
const ROWS: u64 = 20_000;
/// How often ours looks for changes, in milliseconds.
const POLL: u64 = 200;
const FIRST_PAGE: &str = "db:///shop/items?rows=1000";
const CHANGING: &str = "db:///shop/items/1";
/// Makes the table if it is told how many rows, then changes the first row for each line that it reads.
const SCRIPT: &str = "
import sqlite3, sys
shop = sqlite3.connect(sys.argv[1], isolation_level=None)
shop.execute('PRAGMA synchronous = OFF')
if len(sys.argv) > 2:
    shop.execute('CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL, about TEXT)')
    shop.execute('BEGIN')
    rows = ((at, f'item {at}', at / 8, f'What is said of item {at}, 検索 and more') for at in range(1, int(sys.argv[2]) + 1))
    shop.executemany('INSERT INTO items VALUES(?, ?, ?, ?)', rows)
    shop.execute('COMMIT')
for line in sys.stdin:
    shop.execute('UPDATE items SET price = ? WHERE id = 1', (int(line),))
    print('done', flush=True)
";

/// What is measured of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All its pages, of 1,000 rows each.
    Pages,
    /// From a commit of another process to the notification of it.
    Change,
}

/// A page of the table.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    rows: Vec<&'a RawValue>,
    next: Option<String>,
}

/// Makes the database, starts the server and measures it.
pub(crate) fn measure(launch: &Launch, part: Part, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    make()?;
    match part {
        Part::Pages => pages(launch, setting),
        Part::Change => {
            let mut writer = Writer::new(None)?;
            updates::measure_changes(launch, CHANGING, CHANGING, setting, |number| writer.change(number))
        }
    }
}

/// Walks the table time and again.
fn pages(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut reader = Searcher::new(Server::start(launch, None)?, setting.modern)?;
    reader.search(FIRST_PAGE)?;
    let cpu = reader.server.cpu_ns()?;
    let start = Instant::now();
    let mut seen = 0;
    while start.elapsed() < setting.time {
        let mut next = Some(FIRST_PAGE.to_owned());
        let mut walked = 0;
        while let Some(uri) = next {
            let text = reader.search(&uri)?;
            let page: Page<'_> = serde_json::from_str(&text)?;
            walked += page.rows.len() as u64;
            next = page.next;
        }
        if walked != ROWS {
            return Err(format!("{walked} rows instead of {ROWS}").into());
        }
        seen += walked;
    }
    let cpu = reader.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::default()
        .with("rate", 1.0 / per(wall.as_secs_f64(), seen))
        .with("cpu_us_item", per(micros(cpu), seen)))
}

fn make() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(FOLDER);
    fs::create_dir_all(folder)?;
    let file = folder.join("shop.db");
    let _ = fs::remove_file(&file);
    drop(Writer::new(Some(ROWS))?);
    let url = format!("sqlite:{}", file.canonicalize()?.display());
    let database = serde_json::json!({ "url": url, "tables": ["items"] });
    let config = serde_json::json!({ "providers": [{ "db": { "databases": { "shop": database } } }] });
    Ok(fs::write(folder.join("resources.json"), config.to_string())?)
}

/// The process that makes changes.
struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn new(rows: Option<u64>) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new("python3");
        command.args(["-c", SCRIPT]).arg(Path::new(FOLDER).join("shop.db"));
        command.args(rows.map(|rows| rows.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, input, output })
    }

    /// Returns when it is committed.
    fn change(&mut self, number: u64) -> Result<Instant, Box<dyn Error>> {
        // The notification before came with a poll: a change at any time after it, not always just after.
        std::thread::sleep(Duration::from_millis(number * 37 % POLL));
        let input = self.input.as_mut().ok_or("no pipe")?;
        writeln!(input, "{}", number + 1_000)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.trim() == "done" { Ok(Instant::now()) } else { Err("no change was made".into()) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
