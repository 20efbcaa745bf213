//! The end of a server or a client, with its pending requests.

use super::*;

// a server that stops answers its listens, then sends cancellations.
#[tokio::test]
async fn shutting_down_ends_listens_with_their_results() {
    let server = quiet().text(Resource::new("a://x"), "x").build().unwrap();
    let mut client = Client::modern(&server).unwrap();
    let notifications = json!({"resourceSubscriptions": ["a://x"]});
    let listen = client.send("subscriptions/listen", json!({"notifications": notifications})).unwrap();
    client.notification().await.unwrap();
    server.shutdown();
    assert_eq!(client.answer(listen).await.unwrap()["resultType"], "complete");
    let cancelled = client.notification().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(client.notification().await, None);
}

// a client that leaves does not affect others, nor later ones.
#[tokio::test]
async fn other_clients_go_on_when_one_has_left() {
    let server = quiet().text(Resource::new("a://x"), "x").build().unwrap();
    let params = json!({"notifications": {"resourceSubscriptions": ["a://x"]}});
    let mut stays = Client::modern(&server).unwrap();
    stays.send("subscriptions/listen", params.clone()).unwrap();
    stays.notification().await.unwrap();
    for _ in 0..2 {
        let mut leaves = Client::modern(&server).unwrap();
        leaves.send("subscriptions/listen", params.clone()).unwrap();
        leaves.notification().await.unwrap();
        server.notify_updated("a://x").unwrap();
        for client in [&mut stays, &mut leaves] {
            assert_eq!(client.notification().await.unwrap()["method"], "notifications/resources/updated");
        }
    }
}

// at the end of input open listens are answered before the output ends.
#[tokio::test]
async fn the_end_of_input_ends_listens_with_their_results() {
    let server = quiet().text(Resource::new("a://x"), "x").build().unwrap();
    let params = json!({"notifications": {"resourceSubscriptions": ["a://x"]}});
    let lines = conversation(&server, &[(7, "subscriptions/listen", params)]).await;
    let [begun, result, cancelled] = &lines[..] else { panic!("{lines:?}") };
    assert!(begun["method"].as_str().unwrap().ends_with("acknowledged"));
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(cancelled["params"]["requestId"], 7);
}

// at the end of input, requests in flight may finish within the grace period.
#[tokio::test]
async fn the_end_of_input_leaves_a_grace() {
    let mut limits = Limits::default();
    limits.grace = 2_000;
    let server = quiet()
        .limits(limits)
        .resource(Resource::new("a://soon"), |_| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            "soon"
        })
        .resource(Resource::new("a://never"), |_| std::future::pending::<String>())
        .build()
        .unwrap();
    let reads = [(1, "a://never"), (2, "a://soon")];
    let reads = reads.map(|(id, uri)| (id, "resources/read", json!({"uri": uri})));
    let lines = conversation(&server, &reads).await;
    let [answer] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&answer["id"], &answer["result"]["contents"][0]["text"]), (&json!(2), &json!("soon")));
}
