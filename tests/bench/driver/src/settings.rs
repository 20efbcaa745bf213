//! W18: a server of the keys of a configuration file, beside one that reads the file for each request.
//!
//! ```text
//!   target/bench/settings/app.json          what is served
//!   target/bench/settings/resources.json    what `mcp-resources serve --config` is told of it
//! ```

use crate::figures::Figures;
use crate::measure::{self, Setting};
use crate::process::Launch;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Where the files are, from the root of the repository.
pub(crate) const FOLDER: &str = "target/bench/settings";
/// The URI of the key that is read, and what it holds.
pub(crate) const KEY_URI: &str = "config:///demo/server/port";
pub(crate) const KEY_TEXT: &str = "8080";
const APP: &str = r#"{"server": {"host": "127.0.0.1", "port": 8080, "workers": 4}, "theme": {"name": "dark"}, "password": "hidden"}
"#;
const CONFIG: &str = r#"{"providers": [{"config": {"apps": {"demo": "app.json"}, "allow": ["server", "server/**"]}}]}
"#;

/// Makes the files, starts the server and measures it.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let folder = Path::new(FOLDER);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("app.json"), APP)?;
    fs::write(folder.join("resources.json"), CONFIG)?;
    measure::measure(launch, setting)
}
