//! A server whose resources are the lines of a file: `serve-values FILE [PORT]`, over stdio or HTTP. It dies when it is killed,
//! and its file lives on. For the test of a client that must not miss a change.
#![expect(clippy::expect_used, reason = "what goes wrong here ends a test")]

use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::Template;
use mcp_resources_runtime::server::ResourceServer;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().expect("usage: serve-values FILE [PORT]"));
    let beside = |extension: &str| file.with_extension(extension);
    std::fs::write(beside("new"), std::process::id().to_string()).expect("the number of the process");
    let before = lines(&file);
    let own = file.clone();
    let wrong = beside("wrong");
    let under_way: Arc<Mutex<HashSet<usize>>> = Arc::default();
    let mut limits = Limits::default();
    limits.in_flight = 4_096;
    let server = ResourceServer::builder("values", "1")
        .template(Template::new("values://{number}"), move |request| {
            let file = own.clone();
            let wrong = wrong.clone();
            let under_way = under_way.clone();
            async move {
                let number = request.param("number").and_then(|number| number.parse().ok());
                let number: usize = number.ok_or(ReadError::NotFound)?;
                if !under_way.lock().expect("no panic").insert(number) {
                    std::fs::write(wrong, format!("{number} was read twice at once")).expect("the report");
                }
                tokio::time::sleep(Duration::from_millis(number as u64 % 4)).await;
                let line = lines(&file).into_iter().nth(number);
                under_way.lock().expect("no panic").remove(&number);
                line.filter(|line| line != "gone").ok_or(ReadError::NotFound)
            }
        })
        .limits(limits)
        .build()
        .expect("a server");
    let told = server.clone();
    let told_of = file.clone();
    std::thread::spawn(move || tell(&told, &told_of, before));
    std::fs::rename(beside("new"), beside("pid")).expect("the number of the process");
    match arguments.next() {
        None => server.run_stdio().await.expect("stdio"),
        Some(port) => server.run_http(("127.0.0.1", port.parse().expect("a port"))).await.expect("HTTP"),
    }
}

/// Tells of each line that has changed.
fn tell(server: &ResourceServer, file: &Path, mut before: Vec<String>) {
    loop {
        std::thread::sleep(Duration::from_millis(2));
        let now = lines(file);
        for (number, (old, new)) in before.iter().zip(&now).enumerate() {
            if old != new {
                server.notify_updated(&format!("values://{number}")).expect("a URI");
            }
        }
        before = now;
    }
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).expect("the file").lines().map(str::to_owned).collect()
}
