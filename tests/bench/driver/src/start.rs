//! W8: from the start of the process to its first answer, the import of the library, and memory.

use crate::figures::{Figures, mib};
use crate::measure::{Run, Setting};
use crate::process::{Launch, Server};
use crate::servers::Contestant;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Reads that make it grow, before its memory is looked at again.
const READS: Duration = Duration::from_secs(10);

/// Starts the server and weighs it, at rest and after the reads of W2.
pub(crate) fn measure(
    launch: &Launch,
    contestant: &Contestant,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    let start = Instant::now();
    let mut run = Run::new(Server::start(launch, None)?, setting);
    if contestant.is_bare() {
        run.first_line()?;
        let started = start.elapsed();
        return Ok(Figures::default()
            .with("start_ms", started.as_secs_f64() * 1_000.0)
            .with("rest_mib", mib(run.server.resident()?)));
    }
    run.handshake()?;
    let started = start.elapsed();
    run.pump(1, READS)?;
    let rest = run.server.resident()?;
    run.pump(setting.requests, READS)?;
    let figures = Figures::default()
        .with("start_ms", started.as_secs_f64() * 1_000.0)
        .with("rest_mib", mib(rest))
        .with("after_mib", mib(run.server.resident()?))
        .with("peak_mib", mib(run.server.peak()?));
    match import(launch, contestant.name)? {
        Some(time) => Ok(figures.with("import_ms", time)),
        None => Ok(figures),
    }
}

/// The milliseconds that importing our package takes in Python together with its modules for tools.
pub(crate) fn import_tools(launch: &Launch) -> Result<f64, Box<dyn Error>> {
    timed(launch, &["-c"], &in_python("mcp_resources, mcp_resources.blocks, mcp_resources.tools"))
}

/// A script that prints the milliseconds of an import.
fn in_python(modules: &str) -> String {
    format!(
        "import asyncio, time; start = time.perf_counter(); import {modules}; print((time.perf_counter() - start) * 1000)"
    )
}

/// The milliseconds that importing the library takes in Python or Node.
pub(crate) fn import(launch: &Launch, name: &str) -> Result<Option<f64>, Box<dyn Error>> {
    let node = |module| {
        format!(
            "const start = performance.now(); await import('{module}'); console.log(performance.now() - start)"
        )
    };
    let (flags, script): (&[&str], String) = match name {
        "ours-python" => (&["-c"], in_python("mcp_resources")),
        "python-sdk" => (&["-c"], in_python("mcp.server.mcpserver")),
        "fastmcp" => (&["-c"], in_python("fastmcp")),
        "ours-node" => (&["--input-type=module", "-e"], node("mcp-resources")),
        "ts-sdk" => (&["--input-type=module", "-e"], node("@modelcontextprotocol/server")),
        _ => return Ok(None),
    };
    timed(launch, flags, &script).map(Some)
}

/// The number that a script prints which the interpreter of a server runs.
fn timed(launch: &Launch, flags: &[&str], script: &str) -> Result<f64, Box<dyn Error>> {
    let program = &launch.command[0];
    let fixture = launch.command.get(1).ok_or("no fixture")?;
    // It runs where the fixture is, which finds its packages from there.
    let program = if program.contains('/') { std::path::absolute(program)? } else { program.into() };
    let folder = Path::new(fixture).parent().ok_or("a fixture without a folder")?;
    let output = Command::new(program).args(flags).arg(script).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
