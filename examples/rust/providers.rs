//! Two providers: the time, and a folder in memory whose entries come and go.
//!
//! clock:///now, clock:///{+zone}  the time, told each second while somebody watches
//! memory:///{+path}               100,000 notes in pages; ticker.txt changes twice a second, guest.txt comes and goes
//!
//! `providers PORT` serves over HTTP instead of stdio. What lies in secret/ is hidden by the guard.

use mcp_resources::providers::clock::Clock;
use mcp_resources::providers::memory::Memory;
use mcp_resources::{Policy, ResourceServer};
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = Memory::new();
    fill(&folder);
    let mut policy = Policy::default();
    policy.deny = ["memory:///secret/**"].into_iter().collect();
    let server = ResourceServer::builder("providers", "1.0.0")
        .guard(policy)
        .mount(Clock::new())
        .mount(folder.clone())
        .build()?;
    std::thread::spawn(move || come_and_go(&folder));
    match std::env::args().nth(1) {
        Some(port) => Ok(server.run_http((Ipv4Addr::LOCALHOST, port.parse()?)).await?),
        None => Ok(server.run_stdio().await?),
    }
}

/// Puts what the folder has from the beginning.
fn fill(folder: &Memory) {
    for number in 0..100_000 {
        folder.put_text(&format!("notes/{number:05}.txt"), format!("note {number}\n"), None);
    }
    let pattern: Vec<u8> = (0..=255).cycle().take(131_072).collect();
    folder.put_bytes("picture.bin", pattern, Some("image/x-pattern"));
    folder.put_text("secret/plan.txt", "not for everybody", None);
}

/// Changes entries for ever, on a thread of its own.
fn come_and_go(folder: &Memory) {
    for turn in 0_u64.. {
        folder.put_text("ticker.txt", format!("turn {turn}"), None);
        if turn % 2 == 0 {
            folder.put_text("guest.txt", "here", None);
        } else {
            folder.remove("guest.txt");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
