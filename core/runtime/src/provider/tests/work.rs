//! The work that events leave for functions of another language.

use super::*;
use crate::transport::Work;

/// A binding needs not remember to ask providers: its work is what they leave.
#[test]
fn a_language_gets_what_no_provider_serves() {
    let served = TestServer::new(Limits::default());
    let mount = Mount::new("does").template(ONE, Template::new(ANY)).workers(0, 0);
    served.mount(Does::new(mount, |_, reply| reply.send(contents("fine"))));
    let own = Edit::AddResource { resource: Resource::new("own:///"), source: ItemSource::Handler(1_000) };
    served.engine.publish(vec![own], Now::default()).unwrap();
    let event_handler = Providers::before(served.mounts.clone(), served.event_handler.clone());
    let peer = Peer::pipe(served.pipe.clone(), served.clock.clone(), event_handler);
    let mut left = Vec::new();
    for (id, uri) in [(1, "held:///a"), (2, "own:///")] {
        let message = modern(id, "resources/read", json!({ "uri": uri })).to_string();
        let outcome = served.pipe.line(Line::Message(message.as_bytes()));
        left.extend(peer.work(outcome.events).filter_map(Work::into_owned));
    }
    assert!(matches!(&left[..], [Work::Ask(request)] if request.uri() == Some("own:///")), "{left:?}");
    assert_eq!(text(&served.wait(1)[0]), "fine");
}
