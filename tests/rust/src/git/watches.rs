//! Notifications: only subscribers whose contents have changed get them.

use super::*;
use mcp_resources_runtime::testing::Listen;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What is told: waits for all that is `expected`, a minute at most, and then for more.
async fn notified(client: &mut Client, listen: &Listen, expected: &BTreeSet<String>) -> BTreeSet<String> {
    let begun = Instant::now();
    let mut all = BTreeSet::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(1_500), client.next(listen)).await {
            Ok(told) => {
                let told = told.expect("the listen goes on");
                let uri = told.params["uri"].as_str();
                all.insert(uri.map_or("lists", |uri| uri.rsplit("project/").next().unwrap()).to_owned());
            }
            Err(_) if all.is_superset(expected) || begun.elapsed() > Duration::from_secs(60) => return all,
            Err(_) => {}
        }
    }
}

/// Waits until a change is older than what the clock of a file system cannot tell apart: what is newer counts as a change.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// The URI of the next update.
async fn updated(client: &mut Client) -> String {
    loop {
        let told = client.notification().await.unwrap();
        // The lists may have changed too.
        if let Some(uri) = told["params"]["uri"].as_str() {
            return uri.to_owned();
        }
    }
}

/// S-02, R-083, R-092: a commit, a tag, a fetch into a branch, and an edit, each wakes its own.
#[tokio::test]
async fn only_what_changed_is_told() {
    let (folder, ids) = project();
    let mut client = client(options(&folder));
    let fixed = format!("git:///project/blob/{}/README.md", ids[0]);
    let rest = [
        "status",
        "branches",
        "tags",
        "log",
        "log/main",
        "log/feature~2Fx",
        "log/v1",
        "diff/v1/main",
        "diff/v1/feature~2Fx",
        "tree/main/",
        "blob/main/src/main.rs",
        "blob/main/README.md",
        "blob/feature~2Fx/README.md",
        "commit/v1",
    ];
    let mut uris: Vec<String> = rest.iter().map(|rest| format!("git:///project/{rest}")).collect();
    uris.push(fixed);
    settle().await;
    let listen = client.listen(&uris.iter().map(String::as_str).collect::<Vec<_>>(), true).await.unwrap();
    assert_eq!(
        notified(&mut client, &listen, &BTreeSet::new()).await,
        BTreeSet::new(),
        "nothing has changed yet"
    );
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

    folder.write("project/src/main.rs", "fn main() { again() }\n");
    let expected = set(&["status"]);
    assert_eq!(notified(&mut client, &listen, &expected).await, expected, "an edit");
    folder.commit("project", "Again");
    let expected = set(&[
        "status",
        "branches",
        "log",
        "log/main",
        "diff/v1/main",
        "tree/main/",
        "blob/main/src/main.rs",
    ]);
    assert_eq!(notified(&mut client, &listen, &expected).await, expected, "a commit");
    folder.git("project", &["tag", "v3"]);
    let expected = set(&["tags", "lists"]);
    assert_eq!(notified(&mut client, &listen, &expected).await, expected, "a tag");
    folder.git("project", &["update-ref", "refs/heads/feature/x", "main~1"]);
    let expected = set(&["branches", "log/feature~2Fx", "diff/v1/feature~2Fx"]);
    assert_eq!(notified(&mut client, &listen, &expected).await, expected, "a fetch into a branch");
    folder.git("project", &["pack-refs", "--all"]);
    let expected = set(&[]);
    assert_eq!(
        notified(&mut client, &listen, &expected).await,
        expected,
        "nothing but where references are kept"
    );
    folder.git("project", &["checkout", "-q", "-b", "new"]);
    let expected = set(&["status", "branches", "lists"]);
    assert_eq!(notified(&mut client, &listen, &expected).await, expected, "a branch");
}

/// S-02, R-076: what changed between a read and the subscription is reported, in a legacy session too, each time.
#[tokio::test]
async fn nothing_falls_between_a_read_and_a_subscription() {
    let (folder, _) = project();
    let server = served(options(&folder), "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    let uri = "git:///project/log";
    for turn in 0..2 {
        client.read(uri).await.unwrap();
        folder.commit("project", &format!("Between {turn}"));
        client.subscribe(uri).await.unwrap();
        assert_eq!(updated(&mut client).await, uri);
        client.unsubscribe(uri).await.unwrap();
    }
    // Never read: a commit right behind the subscription.
    for turn in 0..5 {
        settle().await;
        let uri = format!("git:///project/log/HEAD~{turn}");
        client.subscribe(&uri).await.unwrap();
        folder.commit("project", &format!("Behind {turn}"));
        assert_eq!(updated(&mut client).await, uri);
        client.unsubscribe(&uri).await.unwrap();
    }
}

/// S-02: with `watch` off there are no notifications and no thread.
#[tokio::test]
async fn watching_can_be_off() {
    let (folder, _) = project();
    let mut client = client(options(&folder).watch(false));
    let listen = client.listen(&["git:///project/log"], true).await.unwrap();
    folder.commit("project", "More");
    assert_eq!(notified(&mut client, &listen, &BTreeSet::new()).await, BTreeSet::new());
}
