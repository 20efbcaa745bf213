//! Ending listens and streams by the server: for a connection, and for a principal.

use super::*;

// R-096, DEC-16: pending notifications first, then the result; on stdio R-097.
#[test]
fn shutdown_ends_every_listen() {
    for (ending, after) in [(ListenEnding::ResultOnly, 0), (ListenEnding::ResultThenCancelled, 1)] {
        let mut world = World::new();
        let connection = world.listener("7", ListKinds::NONE, &[("note://a", "note://a")]);
        let legacy = world.legacy();
        world.updated("note://a");
        assert_eq!(world.deliver(connection), [tagged_update("7", "note://a")]);
        world.updated("note://a");
        world.woken.take();
        for _ in 0..2 {
            world.hub.shutdown(connection);
            world.hub.shutdown(legacy);
        }
        assert_eq!(world.woken.all(), [connection]);
        world.pass(Limits::default().coalesce);
        world.updated("note://a");
        world.list_changed();
        let (lines, left) = world.deliver_within(connection, usize::MAX, ending);
        let expected = [tagged_update("7", "note://a"), end("7"), cancelled("7")];
        assert_eq!(lines, expected[..2 + after]);
        assert_eq!(left, Delivered::Ended);
        assert!(!world.hub.listening(connection, id("7").as_id()));
        assert_eq!(world.deliver_within(legacy, 1, ending), (vec![], Delivered::Ended));
        assert_eq!(world.deliver_within(connection, 1, ending), (vec![], Delivered::Ended));
        world.listen(connection, "8", Filter { lists: ListKinds::TOOLS, uris: &[] });
        assert_eq!(
            world.deliver_within(connection, 1, ListenEnding::ResultOnly),
            (vec![end("8")], Delivered::Ended)
        );
        assert_eq!(world.hub.disconnect(connection), ["note://a".into()]);
    }
}

// ending one connection does not affect others, nor later ones.
#[test]
fn other_connections_go_on_after_a_shutdown() {
    let mut world = World::new();
    let uris = [("note://a", "note://a")];
    let ended = world.listener("1", ListKinds::NONE, &uris);
    let other = world.listener("2", ListKinds::NONE, &uris);
    world.hub.shutdown(ended);
    let later = world.listener("3", ListKinds::NONE, &uris);
    world.updated("note://a");
    let told = world.deliver_within(ended, usize::MAX, ListenEnding::ResultOnly);
    assert_eq!(told, (vec![end("1")], Delivered::Ended));
    assert_eq!(world.deliver(other), [tagged_update("2", "note://a")]);
    assert_eq!(world.deliver(later), [tagged_update("3", "note://a")]);
}

// revoking a principal ends the stream of its session; missed changes are notified on the next one.
#[test]
fn revocation_ends_the_stream_of_a_session() {
    let mut world = World::new();
    let session = world.hub.connect();
    world.hub.legacy(session, Principal::new("eve"), ListKinds::NONE, &world.woken.waker(session));
    world.hub.ready(session);
    world.hub.subscribe(session, "note://a", "note://a").unwrap();
    assert_eq!(world.hub.revoke(""), []);
    assert_eq!(world.hub.revoke("eve"), []);
    assert_eq!(world.woken.all(), [session]);
    world.updated("note://a");
    let ended = (vec![], Delivered::Ended);
    assert_eq!(world.deliver_within(session, usize::MAX, ListenEnding::ResultOnly), ended);
    assert_eq!(world.deliver(session), [legacy_update("note://a")]);
    world.hub.revoke("eve");
    world.hub.readmit(session);
    assert_eq!(world.deliver(session), Vec::<String>::new());
}

// revocation ends the listens of one principal without further notifications.
#[test]
fn revocation_ends_the_listens_of_one_principal() {
    let mut world = World::new();
    let uris = [("note://a", "note://a"), ("note://b", "note://b")];
    let kept = world.listener("1", ListKinds::NONE, &uris[..1]);
    let revoked = world.hub.connect();
    let filter = Filter { lists: ListKinds::NONE, uris: &uris };
    world
        .hub
        .listen(revoked, id("2").as_id(), Principal::new("eve"), filter, &world.woken.waker(revoked))
        .unwrap();
    world.updated("note://a");
    assert_eq!(world.hub.revoke("eve"), ["note://b".into()]);
    let told = world.deliver_within(revoked, usize::MAX, ListenEnding::ResultOnly);
    assert_eq!(told, (vec![end("2")], Delivered::Ended));
    assert_eq!(world.deliver(kept), [tagged_update("1", "note://a")]);
    assert_eq!(world.hub.counts().subscriptions, 1);
}
