//! Tests with too many directories, and with too many events.

use super::*;
use notify::EventHandler;

// S-01: beyond `watch_dirs` directories are polled; the log says so once, with the fix.
#[test]
fn more_directories_than_may_be_watched() {
    let folder = Folder::with([("a/x", "1"), ("b/x", "1"), ("c/x", "1"), ("d/x", "1")]);
    let bench = Bench::with(folder, HEARS, |options| options.watch_dirs(3));
    bench.watch_lists();
    bench.until("three are watched", || bench.watched().len() == 3);
    let mut said = Vec::new();
    for dir in ["a", "b", "c", "d"] {
        bench.folder.write(format!("{dir}/y"), "");
        bench.expect(LIST);
        bench.watch(&format!("{dir}/x"));
        bench.folder.write(format!("{dir}/x"), "22");
        bench.expect_updated(&format!("{dir}/x"));
        said.extend(bench.take().into_iter().filter(|what| what.contains("watch_dirs")));
    }
    assert_eq!(
        said,
        [
            "there is more to watch than watch_dirs=3 allows: 5 directories and 0 subscribed paths; 2 of them are looked at \
          in turns, which takes at most half a percent of a processor, so changes are reported later; set watch_dirs to 5 \
          or more, or exclude directories"
        ]
    );
    // Subscribed files count for the system's own limit alone.
    bench.until("three directories are watched, and the files", || bench.watched().len() == 3 + 4);
}

// S-01: after an overflow all is as after a fresh walk, whatever has happened meanwhile.
#[test]
fn an_overflow_loses_nothing() {
    let bench = Bench::new(Folder::new(), WatchSettings { hints: 8, ..HEARS });
    for directory in 0..10 {
        for file in 0..10 {
            bench.folder.write(format!("{directory}/{file}"), "1");
        }
    }
    bench.watch_lists();
    for directory in 0..10 {
        bench.watch(&format!("{directory}/0"));
    }
    bench.take();
    for round in 0..5 {
        // Far more names at a time than hints may wait.
        for directory in 0..10 {
            let old = bench.at(&directory.to_string());
            let new = bench.at(&format!("{directory}-new"));
            fs::rename(&old, &new).unwrap();
            for file in 1..10 {
                bench.folder.write(format!("{directory}-new/{file}"), "22");
                bench.folder.write(format!("{directory}-new/more-{round}/{file}/x"), "");
            }
            fs::rename(&new, &old).unwrap();
            bench.folder.write(format!("{directory}/0"), "x".repeat(round + 2));
        }
        for directory in 0..10 {
            bench.expect_updated(&format!("{directory}/0"));
        }
        bench.expect(LIST);
        let mut expected = BTreeSet::new();
        walk(&bench.folder.0, &mut |path| {
            let name = path.strip_prefix(&bench.folder.0).unwrap().to_str().unwrap();
            if path.is_dir() || name.len() == 3 && name.ends_with("/0") {
                expected.insert(name.to_owned());
            }
        });
        bench.until("a fresh walk watches the same", || bench.watched() == expected);
        bench.take();
    }
}

// S-01: the system says that it has lost events: what is as it was is not reported, and all is watched on.
#[test]
fn the_system_loses_events() {
    let bench = Bench::new(Folder::with([("a", "1"), ("d/b", "1")]), HEARS);
    for path in ["a", "d/b"] {
        bench.watch(path);
    }
    bench.watch_lists();
    // Old enough for a change to show.
    let settled = std::time::SystemTime::now() - Duration::from_secs(60);
    for path in ["a", "d/b"] {
        fs::File::open(bench.at(path)).unwrap().set_modified(settled).unwrap();
        bench.expect_updated(path);
    }
    bench.expect_quiet();
    for _ in 0..3 {
        let flag = notify::event::Flag::Rescan;
        let event = notify::Event::new(notify::EventKind::Other).set_flag(flag);
        super::super::inbox::EventSink(bench.watch.inbox()).handle_event(Ok(event));
        bench.expect_nothing();
    }
    bench.folder.write("d/b", "22");
    bench.expect_updated("d/b");
    bench.folder.write("d/c", "22");
    bench.expect(LIST);
}
