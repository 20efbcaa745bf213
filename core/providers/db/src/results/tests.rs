//! Tests of the two stores against a naive model, of damaged files, and of shared computations.

use super::entry::{Content, ResultEntry, ResultKey};
use super::options::ResultLimits;
use super::store::ResultStore;
use super::*;
use mcp_resources_provider_kit::declared::one;
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mcp-results-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("results.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const IDS: [&str; 4] = ["a", "b", "c/d", "é"];
const WHO: [Option<&str>; 3] = [None, Some("alice"), Some("")];
const LIMITS: ResultLimits = ResultLimits { entries: 5, bytes: 100 };

#[derive(Clone, Debug)]
enum Op {
    Put { id: usize, who: usize, size: usize, ttl: u64, is_text: bool },
    Get { id: usize, who: usize },
    Remove { id: usize, who: usize },
    Wait(u64),
    Walk { who: usize, after: Option<usize> },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = 0..IDS.len();
    let who = 0..WHO.len();
    let op = prop_oneof![
        4 => (id.clone(), who.clone(), 0..60_usize, 1..40_u64, any::<bool>())
            .prop_map(|(id, who, size, ttl, is_text)| Op::Put { id, who, size, ttl, is_text }),
        3 => (id.clone(), who.clone()).prop_map(|(id, who)| Op::Get { id, who }),
        1 => (id.clone(), who.clone()).prop_map(|(id, who)| Op::Remove { id, who }),
        1 => (0..20_u64).prop_map(Op::Wait),
        1 => (who, proptest::option::of(id)).prop_map(|(who, after)| Op::Walk { who, after }),
    ];
    proptest::collection::vec(op, 1..60)
}

/// The kept results, in the order of their last use.
#[derive(Default)]
struct Model(Vec<(ResultKey, ResultEntry)>);

impl Model {
    fn expire(&mut self, now: u64) {
        self.0.retain(|(_, entry)| entry.expires > now);
    }

    fn put(&mut self, key: &ResultKey, entry: &ResultEntry, now: u64) -> bool {
        self.expire(now);
        let before = self.0.len();
        self.0.retain(|(other, _)| other != key);
        let is_replaced = self.0.len() < before;
        let size = |entry: &ResultEntry| entry.content.len() as u64;
        while self.0.len() >= LIMITS.entries
            || self.0.iter().map(|(_, one)| size(one)).sum::<u64>() + size(entry) > LIMITS.bytes
        {
            self.0.remove(0);
        }
        self.0.push((key.clone(), entry.clone()));
        is_replaced
    }

    fn seen(&self, id: &str, who: Option<&str>, now: u64) -> Option<usize> {
        let at = |who: Option<&str>| {
            let is_it = |(key, entry): &(ResultKey, ResultEntry)| {
                &*key.id == id && key.principal.as_deref() == who && entry.expires > now
            };
            self.0.iter().position(is_it)
        };
        who.and_then(|who| at(Some(who))).or_else(|| at(None))
    }

    fn get(&mut self, id: &str, who: Option<&str>, now: u64) -> Option<ResultEntry> {
        let found = self.0.remove(self.seen(id, who, now)?);
        self.0.push(found.clone());
        Some(found.1)
    }

    fn remove(&mut self, key: &ResultKey, now: u64) -> bool {
        let at = self.0.iter().position(|(other, _)| other == key);
        at.is_some_and(|at| self.0.remove(at).1.expires > now)
    }

    fn walk(&self, after: Option<&str>, who: &str, now: u64) -> Vec<String> {
        let mut ids: Vec<&str> = IDS.into_iter().filter(|id| after.is_none_or(|after| *id > after)).collect();
        ids.sort_unstable();
        ids.into_iter().filter(|id| self.seen(id, Some(who), now).is_some()).map(str::to_owned).collect()
    }
}

fn run(mut store: ResultStore, ops: &[Op]) {
    let mut model = Model::default();
    let mut now = 1_000;
    for (number, op) in ops.iter().enumerate() {
        match *op {
            Op::Put { id, who, size, ttl, is_text } => {
                let text = format!("{number}-{}", "x".repeat(size));
                let content = if is_text { Content::from(text) } else { Content::from(text.into_bytes()) };
                let mime_type = is_text.then(|| "text/markdown".into());
                let entry = ResultEntry { content, mime_type, created: now, expires: now + ttl };
                let key = ResultKey { id: IDS[id].into(), principal: WHO[who].map(Into::into) };
                let is_replaced = store.put(&key, &entry, now).unwrap().0;
                assert_eq!(is_replaced, model.put(&key, &entry, now), "{number}: {op:?}");
            }
            Op::Get { id, who } => {
                let admits = |_| Ok::<(), ()>(());
                let found = store.get(IDS[id], WHO[who], now, admits).unwrap().map(Result::unwrap);
                assert_eq!(found, model.get(IDS[id], WHO[who], now), "{number}: {op:?}");
            }
            Op::Remove { id, who } => {
                let key = ResultKey { id: IDS[id].into(), principal: WHO[who].map(Into::into) };
                assert_eq!(store.remove(&key, now).unwrap(), model.remove(&key, now), "{number}: {op:?}");
            }
            Op::Wait(time) => now += time,
            Op::Walk { who, after } => {
                let who = WHO[who].unwrap_or_default();
                let after = after.map(|id| IDS[id]);
                let mut ids = Vec::new();
                let mut each = |result: entry::Summary| {
                    ids.push(result.id.to_string());
                    true
                };
                store.walk(after, who, now, &mut each).unwrap();
                assert_eq!(ids, model.walk(after, who, now), "{number}: {op:?}");
            }
        }
    }
    model.expire(now);
    assert_eq!(store.len(now).unwrap().rest, model.0.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // S-06: a random history of puts, uses, removals and time ends as in a naive model, in memory and in a file.
    #[test]
    fn a_random_history_equals_a_naive_model(ops in ops()) {
        run(ResultStore::new(&options(None)).unwrap(), &ops);
        let folder = Folder::new();
        run(ResultStore::new(&options(Some(folder.file()))).unwrap(), &ops);
    }
}

fn options(file: Option<PathBuf>) -> ResultOptions {
    let options = ResultOptions::new().entries(LIMITS.entries).bytes(LIMITS.bytes);
    match file {
        Some(file) => options.file(file),
        None => options,
    }
}

fn text(results: &Results, id: &str) -> Option<String> {
    results.get(id, None).unwrap().map(|entry| match entry.content {
        Content::Text(text) => text.to_string(),
        Content::Blob(bytes) => format!("{bytes:?}"),
    })
}

// S-06: what was put is there when the file is opened again, as far as it fits into smaller limits, and for two caches at once.
#[test]
fn a_file_outlives_the_cache() {
    let folder = Folder::new();
    let open = || Results::new(options(Some(folder.file()))).unwrap();
    let one = open();
    let two = open();
    for number in 0..5 {
        one.put(&number.to_string(), format!("{number}"), PutOptions::new()).unwrap();
    }
    assert_eq!(text(&two, "0").as_deref(), Some("0"));
    two.put("0", "again", PutOptions::new()).unwrap();
    assert_eq!(text(&one, "0").as_deref(), Some("again"));
    drop((one, two));

    let fewer = Results::new(options(Some(folder.file())).entries(3)).unwrap();
    assert_eq!(fewer.len().unwrap(), 5);
    fewer.put("new", "new", PutOptions::new()).unwrap();
    assert_eq!(fewer.len().unwrap(), 3);
    assert_eq!(text(&fewer, "0").as_deref(), Some("again"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(folder.file()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

// S-06: many make the same file at once, each with a connection of its own.
#[test]
fn a_file_is_made_once() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let file = folder.file();
            scope.spawn(move || {
                let results = Results::new(ResultOptions::new().file(file)).unwrap();
                results.put(&number.to_string(), "x", PutOptions::new()).unwrap();
            });
        }
    });
    assert_eq!(Results::new(ResultOptions::new().file(folder.file())).unwrap().len().unwrap(), 8);
}

// S-06: a file that is damaged, of something else or not to be made is an error at the start that says so, and stays as it is.
#[test]
fn a_wrong_file_is_refused_and_stays() {
    let folder = Folder::new();
    let refused = |file: PathBuf| Results::new(ResultOptions::new().file(file)).unwrap_err().to_string();
    let damaged = folder.0.join("damaged");
    Results::new(ResultOptions::new().file(&damaged))
        .unwrap()
        .put("a", "x".repeat(50_000), PutOptions::new())
        .unwrap();
    let whole = fs::read(&damaged).unwrap();
    let mut head = whole.clone();
    let mut page = whole;
    head[20..100].fill(0xA5);
    page[4_096..8_192].fill(0xA5);
    let text = folder.0.join("text");
    let other = folder.0.join("other");
    rusqlite::Connection::open(&other).unwrap().execute("CREATE TABLE result (id)", []).unwrap();
    for (file, content, message) in [
        (&damaged, Some(head), "is damaged, or no SQLite database; move it away"),
        (&damaged, Some(page), "is damaged, or no SQLite database; move it away"),
        (&text, Some(b"these are no results".repeat(100)), "is damaged, or no SQLite database"),
        (&other, None, "is a database of something else; name another file"),
    ] {
        if let Some(content) = content {
            fs::write(file, content).unwrap();
        }
        let before = fs::read(file).unwrap();
        let said = refused(file.clone());
        assert!(said.contains(message) && said.contains(&*file.to_string_lossy()), "{said}");
        assert!(fs::read(file).unwrap() == before, "{} is another now", file.display());
    }
    let said = refused(folder.0.join("none/results.db"));
    assert!(said.contains("its directory does not exist"), "{said}");
    assert!(refused(folder.0.clone()).contains("results: the file"));
}

// S-06: what cannot be a cache or a result is named, with what would be right.
#[test]
fn wrong_options_are_named() {
    for (options, message) in [
        (ResultOptions::new().scheme("Wall Bounce"), "\"Wall Bounce\" is no scheme"),
        (ResultOptions::new().scheme(""), "\"\" is no scheme"),
        (ResultOptions::new().entries(0), "entries is 0"),
        (ResultOptions::new().bytes(0), "bytes is 0"),
        (ResultOptions::new().ttl(Duration::ZERO), "ttl is 0"),
    ] {
        let said = Results::new(options).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
    let results = Results::new(options(None)).unwrap();
    let put = |id: &str, content: &str, options| results.put(id, content, options).unwrap_err().to_string();
    assert!(put("", "", PutOptions::new()).contains("an id has 0 bytes; give one of 1 to 1024"));
    assert!(put(&"x".repeat(1_025), "", PutOptions::new()).contains("1025 bytes"));
    assert!(put("a", &"x".repeat(101), PutOptions::new()).contains("101 bytes, and the cache holds 100"));
    assert!(put("a", "", PutOptions::new().ttl(Duration::ZERO)).contains("is 0"));
    let mut declared = one::<Results>("one".into()).unwrap();
    Declare::merge(&mut declared, one(OptionValue::None).unwrap()).unwrap();
    let twice = Declare::merge(&mut declared, one("one".into()).unwrap()).unwrap_err().to_string();
    assert!(twice.contains("two caches have the scheme \"one\""), "{twice}");
}

/// Polls a future once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

// S-06: those who wait share the end of one computation; when the one that computes is dropped, another one computes; what
// fails is not kept.
#[test]
fn computations_are_shared() {
    let results = Results::new(options(None)).unwrap();
    let runs = AtomicUsize::new(0);
    let pending = || {
        runs.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<&str, &str>>()
    };
    let done = || {
        runs.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok::<_, &str>("done"))
    };
    let mut second = pin!(results.get_or_compute("a", PutOptions::new(), done));
    {
        let mut first = pin!(results.get_or_compute("a", PutOptions::new(), pending));
        assert!(poll(first.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
    let Poll::Ready(Ok(entry)) = poll(second) else { panic!("it computes in the place of the first") };
    assert_eq!((entry.content, runs.load(Ordering::Relaxed)), (Content::from("done"), 2));

    let fails = || std::future::ready(Err::<&str, _>("broken"));
    let Poll::Ready(Err(error)) = poll(pin!(results.get_or_compute("b", PutOptions::new(), fails))) else {
        panic!("it fails")
    };
    assert_eq!(error.to_string(), "broken");
    assert_eq!(text(&results, "b"), None);
    let large = || std::future::ready(Ok::<_, &str>("x".repeat(101)));
    let Poll::Ready(Err(error)) = poll(pin!(results.get_or_compute("b", PutOptions::new(), large))) else {
        panic!("it does not fit")
    };
    assert!(error.to_string().contains("101 bytes"));
}

// S-06: a file that is removed or replaced while it is open loses nothing that was acknowledged, for two that share it, with or
// without its log.
#[test]
fn a_file_that_is_gone_loses_nothing() {
    for ends in [&[""][..], &["", "-wal", "-shm"], &["", "-wal"], &["", "-shm"]] {
        let folder = Folder::new();
        let open = || Results::new(options(Some(folder.file()))).unwrap();
        let one = open();
        let two = open();
        one.put("a", "1", PutOptions::new()).unwrap();
        two.put("b", "2", PutOptions::new()).unwrap();
        for end in ends {
            fs::remove_file(format!("{}{end}", folder.file().display())).unwrap();
        }
        two.put("c", "3", PutOptions::new()).unwrap();
        one.put("a", "4", PutOptions::new()).unwrap();
        drop(two);
        let all = |results: &Results| ["a", "b", "c"].map(|id| text(results, id).unwrap_or_default());
        assert_eq!(all(&one), ["4", "2", "3"], "{ends:?}");
        drop(one);
        assert_eq!(all(&open()), ["4", "2", "3"], "{ends:?}");
    }
}

// S-06: a file of another process that takes the place of an open one keeps what it has, and gets what was acknowledged; what is
// no such file is an error for as long as it is there.
#[test]
fn a_file_may_be_replaced() {
    let folder = Folder::new();
    let results = Results::new(options(Some(folder.file()))).unwrap();
    results.put("a", "1", PutOptions::new()).unwrap();
    results.put("b", "1", PutOptions::new()).unwrap();
    let other = folder.0.join("other.db");
    Results::new(options(Some(other.clone()))).unwrap().put("b", "2", PutOptions::new()).unwrap();
    fs::rename(&other, folder.file()).unwrap();
    assert_eq!(["a", "b"].map(|id| text(&results, id).unwrap_or_default()), ["1", "2"]);

    fs::rename(folder.file(), &other).unwrap();
    fs::write(folder.file(), "these are no results".repeat(100)).unwrap();
    let said = results.put("c", "3", PutOptions::new()).unwrap_err().to_string();
    assert!(said.contains("is damaged, or no SQLite database"), "{said}");
    fs::remove_file(folder.file()).unwrap();
    fs::create_dir(folder.file()).unwrap();
    let said = results.get("a", None).unwrap_err().to_string();
    assert!(said.contains("is no file"), "{said}");
    fs::remove_dir(folder.file()).unwrap();
    results.put("c", "3", PutOptions::new()).unwrap();
    assert_eq!(["a", "b", "c"].map(|id| text(&results, id).unwrap_or_default()), ["1", "2", "3"]);
}
