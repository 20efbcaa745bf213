//! `token`: makes, lists and revokes the bearer tokens of `serve`.

use crate::Outcome;
use crate::args::{Token, TokenAction};
use crate::error::Failed;
use crate::output;
use crate::tokens;
use jiff::Timestamp;
use mcp_resources_serve::{TokenEntry, read_tokens};
use std::io::{self, Write};

/// Does what the words say. A new token is the only thing on stdout.
pub(crate) fn run(args: &Token) -> Outcome {
    match &args.action {
        TokenAction::New { name, scope, group, expires, file } => {
            let named = |reason: String| Failed::new(format!("{}: {reason}", file.display()));
            let expires = expires.as_deref().map(|text| tokens::after(Timestamp::now(), text)).transpose();
            let expires = expires.map_err(|reason| Failed::usage(format!("--expires: {reason}")))?;
            let (token, entry) = tokens::generate(name, scope, group, expires).map_err(Failed::usage)?;
            tokens::add(file, &entry).map_err(named)?;
            writeln!(io::stdout().lock(), "{token}")?;
            output::say("note", "it is shown this once; only its SHA-256 is stored");
            Ok(0)
        }
        TokenAction::List { file } => {
            let entries =
                read_tokens(file).map_err(|reason| Failed::new(format!("{}: {reason}", file.display())))?;
            let now = Timestamp::now();
            let rows: Vec<Vec<String>> = entries.iter().map(|entry| row(entry, now)).collect();
            let table = output::table(&["NAME", "SCOPES", "GROUPS", "EXPIRES"], &rows, output::columns());
            let mut out = anstream::stdout().lock();
            out.write_all(table.as_bytes())?;
            Ok(0)
        }
        TokenAction::Revoke { name, file } => {
            let named = |reason: String| Failed::new(format!("{}: {reason}", file.display()));
            match tokens::revoke(file, name).map_err(named)? {
                0 => Err(Failed::new(format!("{}: there is no token of {name:?}", file.display()))),
                1 => {
                    output::say("note", &format!("1 token of {name} is revoked"));
                    Ok(0)
                }
                count => {
                    output::say("note", &format!("{count} tokens of {name} are revoked"));
                    Ok(0)
                }
            }
        }
    }
}

fn row(entry: &TokenEntry, now: Timestamp) -> Vec<String> {
    let expires = match entry.expires {
        None => "never".to_owned(),
        Some(time) if time <= now => format!("{time} (expired)"),
        Some(time) => time.to_string(),
    };
    let groups = entry.groups.join(", ");
    let plain = |text: &str| output::plain(text).into_owned();
    vec![plain(&entry.name), entry.scopes.join(" "), plain(&groups), expires]
}
