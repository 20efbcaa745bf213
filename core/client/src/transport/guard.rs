//! Ends the children of this process when it is killed, so that it cannot end them itself.
//!
//! ```text
//!   this process ── "+ GROUP", "- GROUP" ──▶ a shell: remembers the groups that run
//!        killed  ── end of its input ──────▶          kills them, and ends
//! ```
//!
//! Law: it knows no group that this process has reaped, because another process may have its number by then.

use rustix::process::Pid;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Of a shell, which every system has: it needs no program of its own, whatever language this process belongs to.
const SCRIPT: &str = r#"
groups=
while read -r sign group; do
    case $sign in
    +) groups="$groups $group" ;;
    -)
        rest=
        for one in $groups; do [ "$one" = "$group" ] || rest="$rest $one"; done
        groups=$rest
        ;;
    esac
done
for one in $groups; do kill -9 "-$one"; done
"#;

/// The input of the shell.
static GUARD: OnceLock<Mutex<ChildStdin>> = OnceLock::new();

/// Starts the shell, once for this process. Servers that clients start from now on end with it, even if it is killed.
///
/// # Errors
/// The system's error if there is no shell.
pub fn guard_children() -> io::Result<()> {
    if GUARD.get().is_some() {
        return Ok(());
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a group of its own, so that Ctrl-C does not end it before the others.
    let mut shell = shell.process_group(0).spawn()?;
    if let Some(input) = shell.stdin.take() {
        let _ = GUARD.set(Mutex::new(input));
    }
    // It ends with this process, and is reaped by the system.
    Ok(())
}

/// Reports that a group runs, or that its leader is about to be reaped.
pub(super) fn report(group: Pid, runs: bool) {
    let Some(guard) = GUARD.get() else { return };
    let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
    let sign = if runs { '+' } else { '-' };
    // Fails if somebody has killed the shell.
    let _ = guard.write_all(format!("{sign} {}\n", group.as_raw_nonzero()).as_bytes());
}
