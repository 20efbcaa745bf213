//! Providers that are mounted, unmounted, and that conflict.

use super::*;

/// Unmounting frees everything: catalogue entries, handlers, threads, the provider, queued requests.
#[test]
fn unmounting_gives_everything_back() {
    let served = TestServer::new(Limits::default());
    let mount = Mount::new("all")
        .template(ONE, Template::new(ANY).list(ListSource { pages: true }))
        .resource(Route(2), Resource::new("held:///"))
        .foreign_template("{", r#"{"uriTemplate":"{","name":"odd"}"#)
        .lists(Route(3), "all", true)
        .fallback(Route(4))
        .workers(0, 0);
    let (provider, held) = Holds::new(mount);
    let weak = Arc::downgrade(&provider);
    let id = served.mount(provider);
    served.read(1, "held:///a");
    served.read(2, "nothing:///else");
    let waiting: Vec<_> = held.try_iter().collect();
    assert_eq!(waiting.iter().map(|(read, _)| read.route()).collect::<Vec<_>>(), [ONE, Route(4)]);
    assert!(served.mounts.unmount(id) && !served.mounts.unmount(id));
    let catalog = served.engine.catalog();
    assert!(catalog.is_empty() && catalog.fallback().is_none());
    served.read(3, "held:///a");
    assert_eq!(kind(&served.wait(1)[0]), "not_found");
    for (_, reply) in waiting {
        reply.send(contents("still answered"));
    }
    assert!(served.wait(2).iter().all(|answer| text(answer) == "still answered"));
    assert!(weak.upgrade().is_none(), "the provider is gone");
    assert!(served.mounts.is_empty());
}

/// Queued requests fail at once when their provider is unmounted.
#[test]
fn what_waits_fails_when_its_provider_is_unmounted() {
    let served = TestServer::new(Limits::default());
    let (entered, enters) = channel();
    let (release, released) = channel::<()>();
    let entered = Mutex::new(entered);
    let released = Mutex::new(released);
    let mount = Mount::new("slow").template(ONE, Template::new(ANY)).workers(1, 8);
    let id = served.mount(Does::new(mount, move |_, reply| {
        let _ = lock(&entered).send(());
        let _ = lock(&released).recv();
        reply.send(contents("done"));
    }));
    (0..3).for_each(|id| served.read(id, "held:///a"));
    enters.recv().unwrap();
    served.mounts.unmount(id);
    release.send(()).unwrap();
    let got = served.wait(3);
    let count = |word: &str| got.iter().filter(|answer| text(answer) == word || kind(answer) == word).count();
    assert_eq!((count("done"), count("read_error")), (1, 2), "{got:?}");
    assert_eq!(served.pipe.in_flight(), 0);
}

/// A feed works only while its provider is mounted, and only for its own resources.
#[test]
fn a_feed_reports_its_own_resources_while_mounted() {
    struct Fed(Mutex<Option<Feed>>);
    impl Provider for Fed {
        fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
            *lock(&self.0) = Some(feed);
            Ok(Mount::new("fed").workers(0, 0))
        }
        fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
            reply.send(Ok(Contents::text(request.uri().to_owned()).into()));
        }
    }
    let served = TestServer::new(Limits::default());
    let constant = Resource::new("fed:///constant");
    let edit = Edit::AddResource { resource: constant, source: ItemSource::Text("mine".into()) };
    served.engine.apply(vec![edit], Now::default()).unwrap();
    let provider = Arc::new(Fed(Mutex::default()));
    let id = served.mount(provider.clone());
    let feed = lock(&provider.0).clone().unwrap();
    let add = |uri: &str| FeedEntry::Add(ONE, Resource::new(uri));
    let update = |uri: &str| FeedEntry::Update {
        uri: uri.into(),
        size: Some(4),
        last_modified: None,
        description: None,
    };
    let reports = feed.publish(vec![
        add("fed:///a"),
        add("no uri"),
        add("fed:///constant"),
        update("fed:///a"),
        update("fed:///constant"),
        FeedEntry::Remove("fed:///constant".into()),
        add("fed:///b"),
    ]);
    let sound: Vec<bool> = reports.iter().map(Result::is_ok).collect();
    assert_eq!(sound, [true, false, false, true, false, false, true], "{reports:?}");
    served.read(1, "fed:///constant");
    assert_eq!(text(&served.wait(1)[0]), "mine", "what is registered at the very URI goes first");
    served.read(2, "fed:///a");
    assert_eq!(text(&served.wait(1)[0]), "fed:///a");
    assert_eq!(feed.publish(vec![FeedEntry::Remove("FED:///b".into())]), [Ok(())]);
    assert!(feed.is_alive());
    served.mounts.unmount(id);
    assert!(!feed.is_alive() && feed.updated("fed:///a").is_ok());
    assert_eq!(feed.publish(vec![add("fed:///c")]), [Ok(())]);
    assert_eq!(served.engine.catalog().len(), 1, "the constant alone");
}

/// A mount that conflicts is refused as a whole, and the error names the existing one.
#[test]
fn a_mount_that_collides_names_the_first() {
    let served = TestServer::new(Limits::default());
    served.mount(Holds::any().0);
    let second = Mount::new("second")
        .resource(ONE, Resource::new("held:///fixed"))
        .template(ONE, Template::new("held:///{other}"));
    let error = served.mounts.mount(Holds::new(second).0).unwrap_err().to_string();
    assert!(error.starts_with("second: ") && error.contains("holds"), "{error}");
    let catalog = served.engine.catalog();
    assert_eq!((catalog.len(), catalog.templates().len()), (0, 1), "nothing of it");
    assert_eq!(served.mounts.len(), 1);
}

/// Several providers are mounted together or not at all, and none twice; a refused one gets no further calls.
#[test]
fn several_are_mounted_or_none() {
    let served = TestServer::new(Limits::default());
    let other = || Holds::new(Mount::new("other").resource(ONE, Resource::new("other:///")).workers(0, 0)).0;
    let error = served.mounts.mount_all(&[Holds::any().0, other(), other()]).unwrap_err().to_string();
    assert!(error.starts_with("other: ") && error.ends_with("; the mount other has it"), "{error}");
    assert!(served.mounts.is_empty() && served.engine.catalog().is_empty());
    let both: [Arc<dyn Provider>; 2] = [Holds::any().0, other()];
    served.mounts.mount_all(&both).unwrap();
    let error = served.mounts.mount_all(&both[..1]).unwrap_err().to_string();
    assert_eq!(error, "holds: it is mounted already; unmount it first, or make another");
    assert!(served.mounts.unmount_provider(&both[0]) && !served.mounts.unmount_provider(&both[0]));
    assert_eq!(served.mounts.len(), 1);
}

/// A provider that panics in `mount` is not mounted.
#[test]
fn a_provider_that_panics_while_it_is_mounted_is_not() {
    struct Panics;
    impl Provider for Panics {
        fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
            panic!("as the test wants it")
        }
        fn read(&self, _request: Read, _reply: Responder<ReadResult<'static>>) {}
    }
    let served = TestServer::new(Limits::default());
    assert!(served.mounts.mount(Arc::new(Panics)).is_err() && served.mounts.is_empty());
}

/// Fallbacks are tried in the order of their mounts, until one has the resource.
#[test]
fn fallbacks_are_asked_in_the_order_of_their_mounts() {
    let served = TestServer::new(Limits::default());
    let fallback = |name: &'static str, threads: usize| {
        let mount = Mount::new(name).fallback(ONE).workers(threads, 8);
        Does::new(mount, move |request: Read, reply| {
            let has = request.uri().contains(name);
            reply.send(if has { contents(name) } else { Err(ReadError::NotFound) });
        })
    };
    let first = served.mount(fallback("first", 2));
    served.mount(fallback("second", 0));
    served.mount(fallback("third", 1));
    for (uri, expected) in [("x:///third", "third"), ("x:///first/third", "first"), ("x:///second", "second")]
    {
        served.read(1, uri);
        assert_eq!(text(&served.wait(1)[0]), expected);
    }
    served.read(1, "x:///nowhere");
    assert_eq!(kind(&served.wait(1)[0]), "not_found");
    served.mounts.unmount(first);
    served.read(1, "x:///first/third");
    assert_eq!(text(&served.wait(1)[0]), "third");
    assert_eq!(served.pipe.in_flight(), 0);
}

/// Stores its feed.
struct Keeps(Mutex<Option<Feed>>);

impl Provider for Keeps {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        *lock(&self.0) = Some(feed);
        Ok(Mount::new("keeps").template(ONE, Template::new(ANY)).workers(0, 0))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Err(ReadError::NotFound));
    }
}

/// Log messages of a provider outside of requests go to the runtime of the client that reads or watches, under the name of
/// the mount. Earlier messages are queued; none is logged after unmounting.
#[test]
fn a_provider_logs() {
    let served = TestServer::new(Limits::default());
    let keeps = Arc::new(Keeps(Mutex::default()));
    let mount = served.mount(keeps.clone());
    let feed = lock(&keeps.0).clone().unwrap();
    feed.log("early");
    assert!(served.said().is_empty());
    served.read(7, "held:///a");
    assert_eq!(served.said(), ["keeps: early"]);
    let filter = json!({ "resourceSubscriptions": ["held:///a"] });
    served.ask(1, "subscriptions/listen", json!({ "notifications": filter }));
    feed.log("late");
    assert_eq!(served.said(), ["keeps: late"]);
    served.mounts.unmount(mount);
    feed.log("too late");
    assert!(served.said().is_empty());
    // A runtime may set another destination for all of them.
    let (sender, said) = channel();
    let sender = Mutex::new(sender);
    served.mounts.log_with(Box::new(move |what| lock(&sender).send(what.to_owned()).unwrap()));
    served.mount(keeps.clone());
    lock(&keeps.0).clone().unwrap().log("here");
    assert_eq!((said.recv().unwrap(), served.said().len()), ("keeps: here".to_owned(), 0));
}
