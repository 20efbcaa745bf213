//! Tests of opening paths under a root, with both methods.

mod known;
mod rules;
mod swap;

use super::contents::{self, LineRange};
use super::list::{self, FileListContext};
use super::root_directory::{Missing, Resolution};
use super::tree::{self, Tree};
use super::{FileOptions, Symlinks, complete};
use mcp_resources_engine::connection::{Body, Contents, Item, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::provider::RequestContext;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

const WAYS: [Resolution; 2] = [Resolution::Kernel, Resolution::Steps];

/// A directory of the test's own, gone with it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mcp-files-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn with<const N: usize>(files: [(&str, &str); N]) -> Self {
        let folder = Self::new();
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    pub(super) fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn tree(&self, way: Resolution, change: impl FnOnce(FileOptions) -> FileOptions) -> Arc<Tree> {
        self.tree_at("", way, change)
    }

    fn tree_at(
        &self,
        path: &str,
        way: Resolution,
        change: impl FnOnce(FileOptions) -> FileOptions,
    ) -> Arc<Tree> {
        let options = change(FileOptions::new().root("r", self.0.join(path)));
        Tree::all(&options, way).unwrap().remove(0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn all(_uri: &str) -> bool {
    true
}

fn context() -> RequestContext<'static> {
    RequestContext::detached()
}

/// The text at the decoded path of a URI, or the children's URIs, one on each line.
fn read(tree: &Tree, text: &str) -> Result<String, Missing> {
    let (path, must_be_dir) = tree::path(text).ok_or(Missing::NotFound)?;
    let root = tree.open()?;
    let opened = tree.find(&root, &path, &all)?;
    let result = if opened.is_dir() {
        contents::directory(tree, &root, &path, &opened.into_dir().unwrap(), &context())?
    } else if must_be_dir {
        return Err(Missing::NotFound);
    } else {
        contents::file(opened, &path, None, None, &context()).unwrap()
    };
    Ok(shown(&result))
}

fn shown(result: &ReadResult<'_>) -> String {
    let shown = |contents: &Contents<'_>| match (&contents.uri, &contents.body) {
        (Some(uri), _) => uri.to_string(),
        (None, Body::Text(text)) => text.to_string(),
        (None, Body::Blob(bytes)) => bytes.escape_ascii().to_string(),
        other => panic!("{other:?}"),
    };
    result.contents.iter().map(shown).collect::<Vec<_>>().join("\n")
}

const NONE: Result<String, Missing> = Err(Missing::NotFound);

fn ok(text: &str) -> Result<String, Missing> {
    Ok(text.to_owned())
}

fn walk(trees: &[Arc<Tree>], limit: usize, mut between: impl FnMut(usize)) -> Vec<String> {
    let mut uris = Vec::new();
    let mut cursor = None::<String>;
    let mut pages = 0;
    loop {
        let asked =
            FileListContext { cursor: cursor.as_deref(), limit, permits: &all, is_cancelled: &|| false };
        let page = list::page(trees, &asked);
        assert!(page.items.len() <= limit && page.missing.is_empty(), "{page:?}");
        uris.extend(page.items.iter().map(|item| match item {
            Item::Resource(resource) => resource.uri.strip_prefix("file:///").unwrap().to_owned(),
            Item::Foreign { uri, .. } => uri.clone(),
        }));
        cursor = page.next;
        pages += 1;
        assert!(pages < 10_000, "it does not end");
        if cursor.is_none() {
            return uris;
        }
        between(pages);
    }
}

// S-01, S-11: what is absent, hidden, ignored, excluded, outside, or no file is the same.
#[test]
fn what_is_not_served_is_not_found() {
    for way in WAYS {
        let folder = Folder::with([
            ("a.txt", "a"),
            ("dir/b.txt", "b"),
            (".env", "secret"),
            ("dir/.hidden/x", "secret"),
            ("drafts/x.txt", "secret"),
            ("build/out/x.txt", "secret"),
            (".gitignore", "build/\n*.log\n!keep.log\n"),
            ("dir/.gitignore", "/only-here\n"),
            ("dir/only-here", "secret"),
            ("dir/deep/only-here", "shown"),
            ("x.log", "secret"),
            ("keep.log", "kept"),
        ]);
        let tree = folder.tree(way, |options| options.exclude(["drafts"]));
        assert_eq!(read(&tree, "a.txt"), ok("a"));
        assert_eq!(read(&tree, "dir/b.txt"), ok("b"));
        assert_eq!(read(&tree, "dir/deep/only-here"), ok("shown"));
        assert_eq!(read(&tree, "keep.log"), ok("kept"));
        let root = ok("file:///r/a.txt\nfile:///r/dir/\nfile:///r/keep.log");
        assert_eq!((read(&tree, ""), read(&tree, "")), (root.clone(), root));
        let dir = ok("file:///r/dir/b.txt\nfile:///r/dir/deep/");
        assert_eq!((read(&tree, "dir"), read(&tree, "dir/")), (dir.clone(), dir));
        for path in [
            "absent",
            "a.txt/",
            "a.txt/x",
            ".env",
            "dir/.hidden",
            "dir/.hidden/x",
            "drafts",
            "drafts/",
            "drafts/x.txt",
            "build",
            "build/out",
            "build/out/x.txt",
            "x.log",
            "dir/only-here",
            ".gitignore",
            "..",
            "dir/../a.txt",
            "/etc/passwd",
            "dir//b.txt",
            "./a.txt",
            "a.txt\0",
            "~2Eenv",
            "~41.txt",
        ] {
            assert_eq!(read(&tree, path), NONE, "{path}");
        }
    }
}

/// Files, and links of all sorts between them, in `root`.
fn linked() -> Folder {
    let folder = Folder::with([
        ("root/a.txt", "a"),
        ("root/dir/b.txt", "b"),
        ("root/.env", "secret"),
        ("root/drafts/x.txt", "secret"),
        ("root/out/x.txt", "secret"),
        ("root/.gitignore", "/out/\n"),
        ("outside.txt", "secret"),
    ]);
    let link = |target: &str, at: &str| symlink(target, folder.0.join("root").join(at)).unwrap();
    for (target, at) in [
        ("a.txt", "to-a"),
        ("dir", "to-dir"),
        ("../a.txt", "dir/up"),
        ("to-a", "to-to-a"),
        (".env", "to-env"),
        ("drafts/x.txt", "to-draft"),
        ("drafts", "to-drafts"),
        ("out/x.txt", "to-ignored"),
        ("../outside.txt", "to-outside"),
        ("dir/../../outside.txt", "around"),
        ("/etc/hostname", "absolute"),
        ("loop", "loop"),
        ("..", "to-parent"),
        ("absent", "dangling"),
    ] {
        link(target, at);
    }
    symlink(folder.0.join("root/a.txt"), folder.0.join("root/absolute-inside")).unwrap();
    folder
}

// S-01, S-11: links are judged by where they lead, and lead nowhere outside.
#[test]
fn links_lead_where_they_may() {
    for way in WAYS {
        let folder = linked();
        let links = ["to-a", "to-to-a", "to-dir/b.txt", "dir/up", "to-dir/up"];
        let never = folder.tree_at("root", way, |options| options.exclude(["drafts"]));
        for path in links {
            assert_eq!(read(&never, path), NONE, "{path}");
        }
        assert_eq!(read(&never, ""), ok("file:///r/a.txt\nfile:///r/dir/"));
        let inside =
            folder.tree_at("root", way, |options| options.exclude(["drafts"]).symlinks(Symlinks::Inside));
        for (path, text) in links.into_iter().zip(["a", "a", "b", "a", "a"]) {
            assert_eq!(read(&inside, path), ok(text), "{path} {way:?}");
        }
        let shown = "a.txt dir/ to-a to-dir/ to-to-a".split(' ').map(|name| format!("file:///r/{name}"));
        assert_eq!(read(&inside, ""), Ok(shown.collect::<Vec<_>>().join("\n")), "{way:?}");
        for path in [
            "to-env",
            "to-draft",
            "to-drafts",
            "to-drafts/x.txt",
            "to-ignored",
            "to-outside",
            "around",
            "absolute",
            "absolute-inside",
            "loop",
            "to-parent",
            "to-parent/outside.txt",
            "dangling",
        ] {
            assert_eq!(read(&inside, path), NONE, "{path} {way:?}");
        }
        let denied = |uri: &str| !uri.ends_with("a.txt");
        let root = inside.open().unwrap();
        assert_eq!(inside.find(&root, b"to-a", &denied).unwrap_err(), Missing::NotFound, "by where it leads");
        assert_eq!(
            walk(&[inside], 10, |_| {}),
            ["r/a.txt", "r/to-a", "r/to-to-a", "r/dir/b.txt", "r/dir/up"]
        );
    }
}

// S-01: where a directory finds an entry under two names, each that it has is its own. Hard links are all that can be made
// everywhere of what a file system does that is not case-sensitive.
#[test]
fn names_that_fold_are_told_apart() {
    let folder = Folder::with([("secret.txt", "secret"), ("b/x", "x")]);
    fs::hard_link(folder.0.join("secret.txt"), folder.0.join("SECRET.TXT")).unwrap();
    let tree = folder.tree(Resolution::best(), |options| options.exclude(["secret.txt"]));
    assert_eq!((read(&tree, "secret.txt"), read(&tree, "SECRET.TXT")), (NONE, ok("secret")));
    assert_eq!((read(&tree, "b/x"), read(&tree, "B/X")), (ok("x"), NONE));
}

// S-01: a root is like the directories in it: it must permit looking for a name, and need not permit reading its names.
#[cfg(target_os = "linux")]
#[test]
fn a_root_that_keeps_its_names() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with([
        ("r/a.txt", "a"),
        ("r/d/b.txt", "b"),
        ("r/d/.gitignore", "c.txt\n"),
        ("r/d/c.txt", "c"),
    ]);
    let permit = |mode| fs::set_permissions(folder.0.join("r"), fs::Permissions::from_mode(mode)).unwrap();
    permit(0o311);
    // The superuser is refused nothing.
    if fs::read_dir(folder.0.join("r")).is_err() {
        for way in WAYS {
            let tree = folder.tree_at("r", way, |options| options);
            assert_eq!((read(&tree, "a.txt"), read(&tree, "d/b.txt")), (ok("a"), ok("b")));
            assert_eq!((read(&tree, "d/c.txt"), read(&tree, "absent")), (NONE, NONE));
            assert!(matches!(read(&tree, ""), Err(Missing::Failed(_))));
        }
        // What fails for every name says nothing of one.
        permit(0o000);
        let tree = folder.tree_at("r", Resolution::best(), |options| options);
        assert!(matches!(read(&tree, "a.txt"), Err(Missing::Failed(_))));
        assert!(tree.take_faults().is_empty());
    }
    permit(0o755);
}

// S-01: nothing waits for the other end of a FIFO.
#[test]
fn only_files_and_directories_are_opened() {
    for way in WAYS {
        let folder = Folder::with([("a.txt", "a")]);
        let fifo = std::process::Command::new("mkfifo").arg(folder.0.join("fifo")).status().unwrap();
        assert!(fifo.success());
        let _socket = std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
        for symlinks in [Symlinks::Never, Symlinks::Inside] {
            let tree = folder.tree(way, |options| options.symlinks(symlinks));
            assert_eq!((read(&tree, "fifo"), read(&tree, "socket")), (NONE, NONE));
            assert_eq!(read(&tree, ""), ok("file:///r/a.txt"));
        }
        let devices = Tree::all(&FileOptions::new().root("dev", "/dev"), way).unwrap().remove(0);
        assert_eq!(
            (read(&devices, "null"), read(&devices, "zero"), read(&devices, "tty")),
            (NONE, NONE, NONE)
        );
    }
}

// S-01: each name of a file system is read by the URI under which it is listed.
#[test]
fn names_of_any_bytes_are_read() {
    let names: [&[u8]; 14] = [
        b"a b",
        b"100%",
        b"a%20b",
        b"a%2Fb",
        b"new\nline",
        b"back\\slash",
        b"\xff\xfe",
        b"~41",
        b"...",
        b"c:drive",
        b"what?#",
        "\u{e9}".as_bytes(),
        "e\u{301}".as_bytes(),
        "\u{ff0e}\u{ff0e}".as_bytes(),
    ];
    for way in WAYS {
        let folder = Folder::new();
        for name in names {
            folder.write(OsStr::from_bytes(name), name);
        }
        let tree = folder.tree(way, |options| options.hidden(true));
        let mut found: Vec<Vec<u8>> = Vec::new();
        for uri in walk(std::slice::from_ref(&tree), 3, |_| {}) {
            let (path, is_dir) = tree.path_of(&format!("file:///{uri}")).unwrap();
            assert!(!is_dir);
            let root = tree.open().unwrap();
            let opened = tree.find(&root, &path, &all).unwrap();
            let result = contents::file(opened, &path, None, None, &context()).unwrap();
            let bytes = match &result.contents[0].body {
                Body::Text(text) => text.as_bytes().to_vec(),
                Body::Blob(bytes) => bytes.to_vec(),
                other => panic!("{other:?}"),
            };
            assert_eq!(bytes, path);
            found.push(path);
        }
        let mut expected: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).into();
        expected.sort();
        assert_eq!(found, expected);
    }
}

// S-01: rules hold as they are now: with and without a repository around the root, and after they were edited.
#[test]
fn rules_are_those_of_now() {
    let folder = Folder::with([
        ("repo/.gitignore", "*.o\n/sub/top\n"),
        ("repo/.git/info/exclude", "private\n"),
        ("repo/sub/a.o", ""),
        ("repo/sub/top", ""),
        ("repo/sub/private", ""),
        ("repo/sub/a.txt", ""),
        ("repo/sub/b.txt", ""),
    ]);
    let tree = folder.tree_at("repo/sub", Resolution::best(), |options| options);
    let list = || walk(std::slice::from_ref(&tree), 10, |_| {});
    assert_eq!(list(), ["r/a.txt", "r/b.txt"]);
    folder.write("repo/sub/.gitignore", "a.txt\n!private\n");
    assert_eq!(list(), ["r/b.txt", "r/private"]);
    folder.write("repo/sub/.gitignore", "b.txt\n!private\n");
    assert_eq!(list(), ["r/a.txt", "r/private"]);
    folder.write("repo/sub/.ignore", "!b.txt\n[");
    assert_eq!(list(), ["r/a.txt", "r/b.txt", "r/private"]);
    fs::remove_file(folder.0.join("repo/sub/.gitignore")).unwrap();
    folder.write("repo/.gitignore", "");
    assert_eq!(list(), ["r/a.o", "r/a.txt", "r/b.txt", "r/top"]);
    let tree = folder.tree_at("repo/sub", Resolution::best(), |options| options.gitignore(false));
    assert_eq!(walk(&[tree], 10, |_| {}).len(), 5);
}

// S-01: rules that are kept hold for as long as their file is the same: not after another took its place that is as large and
// as old, nor after it was edited or removed.
#[test]
fn kept_rules_are_those_of_their_file() {
    for way in WAYS {
        let folder = Folder::with([
            ("repo/.git/info/exclude", "c.txt\n"),
            ("repo/sub/.gitignore", "a.txt\n"),
            ("repo/sub/a.txt", ""),
            ("repo/sub/b.txt", ""),
            ("repo/sub/c.txt", ""),
        ]);
        // What was written just now is not kept.
        let age = |path: &str| {
            let file = fs::File::options().write(true).open(folder.0.join(path)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        };
        age("repo/.git/info/exclude");
        age("repo/sub/.gitignore");
        let tree = folder.tree_at("repo/sub", way, |options| options);
        let list = || walk(std::slice::from_ref(&tree), 10, |_| {});
        assert_eq!([list(), list()], [["r/b.txt"], ["r/b.txt"]]);
        folder.write("repo/other", "b.txt\n");
        age("repo/other");
        fs::rename(folder.0.join("repo/other"), folder.0.join("repo/sub/.gitignore")).unwrap();
        assert_eq!([list(), list()], [["r/a.txt"], ["r/a.txt"]]);
        folder.write("repo/.git/info/exclude", "a.txt\n");
        assert_eq!(list(), ["r/c.txt"]);
        fs::remove_file(folder.0.join("repo/sub/.gitignore")).unwrap();
        assert_eq!(list(), ["r/b.txt", "r/c.txt"]);
    }
}

// S-01: `*` is within a segment, `**` over segments.
#[test]
fn globs_include_and_exclude() {
    let folder = Folder::with([
        ("a.md", ""),
        ("a.rs", ""),
        ("docs/b.md", ""),
        ("docs/deep/c.md", ""),
        ("src/d.rs", ""),
        ("src/deep/e.rs", ""),
    ]);
    let list = |include: &[&str], exclude: &[&str]| {
        let tree = folder
            .tree(Resolution::best(), |options| options.include(include.to_vec()).exclude(exclude.to_vec()));
        walk(&[tree], 10, |_| {}).join(" ")
    };
    assert_eq!(list(&["*.md"], &[]), "r/a.md");
    assert_eq!(list(&["**/*.md"], &[]), "r/a.md r/docs/b.md r/docs/deep/c.md");
    assert_eq!(list(&["src/*.rs", "docs/**"], &["docs/deep"]), "r/docs/b.md r/src/d.rs");
    assert_eq!(list(&["src"], &["**/e.rs"]), "r/src/d.rs");
    assert_eq!(list(&[], &["*/deep/**", "*.rs"]), "r/a.md r/docs/b.md r/src/d.rs");
    let tree = folder.tree(Resolution::best(), |options| options.include(["src/deep/*"]));
    assert_eq!(read(&tree, ""), ok("file:///r/src/"));
    assert_eq!(
        (read(&tree, "docs"), read(&tree, "src/d.rs"), read(&tree, "src/deep/e.rs")),
        (NONE, NONE, ok(""))
    );
    let wrong = FileOptions::new().root("r", &folder.0).include(["a[b"]);
    assert!(
        Tree::all(&wrong, Resolution::best())
            .unwrap_err()
            .to_string()
            .contains("include has the glob \"a[b\"")
    );
}

// S-01, R-101: every size of page gives the same list, in the order of the walk, and no more than was said.
#[test]
fn lists_are_walked_page_by_page() {
    let folder = Folder::new();
    let mut expected = Vec::new();
    for directory in ["", "a/", "a/b/", "a-b/", "c/"] {
        for file in 0..5 {
            folder.write(format!("{directory}{file}"), "");
            expected.push(format!("r/{directory}{file}"));
        }
    }
    // In the order of names: the walk compares names, not paths.
    let trees = [folder.tree(Resolution::best(), |options| options)];
    for limit in 1..30 {
        assert_eq!(walk(&trees, limit, |_| {}), expected, "{limit}");
    }
    for max in 0..30 {
        let trees = [folder.tree(Resolution::best(), |options| options.list_max(max))];
        for limit in [1, 2, 7, 100] {
            assert_eq!(walk(&trees, limit, |_| {}), expected[..max.min(25)], "{max} {limit}");
        }
    }
}

// S-01, R-103: what comes and goes between two pages neither repeats nor loses anything else.
#[test]
fn a_cursor_survives_changes() {
    let folder = Folder::new();
    for directory in ["a", "b", "c"] {
        for file in 0..4 {
            folder.write(format!("{directory}/{file}"), "");
        }
    }
    let trees = [folder.tree(Resolution::best(), |options| options)];
    let uris = walk(&trees, 2, |page| match page {
        1 => {
            fs::remove_file(folder.0.join("a/1")).unwrap();
            folder.write("a/0-before", "");
            folder.write("a/2-new", "");
        }
        2 => fs::remove_dir_all(folder.0.join("a")).unwrap(),
        3 => fs::rename(folder.0.join("c"), folder.0.join("d")).unwrap(),
        _ => {}
    });
    assert_eq!(uris.join(" "), "r/a/0 r/a/1 r/a/2 r/a/2-new r/b/0 r/b/1 r/b/2 r/b/3 r/d/0 r/d/1 r/d/2 r/d/3");
    for cursor in ["", "x", "1.1:", "1.1:no/such", "a.b:r/x", "1.1:r/../..", "1.1:r/~41"] {
        let asked =
            FileListContext { cursor: Some(cursor), limit: 5, permits: &all, is_cancelled: &|| false };
        assert!(list::page(&trees, &asked).items.is_empty(), "{cursor}");
    }
}

// S-01: roots of one declaration share `list_max`; a root inside another and one of the same name elsewhere are roots like
// others; one that is gone is named, and is there again when it comes back.
#[test]
fn several_roots() {
    let folder = Folder::with([("a/1", ""), ("a/2", ""), ("a/b/3", ""), ("c/4", "")]);
    let options = |list_max| {
        let at = |path: &str| folder.0.join(path);
        FileOptions::new().root("a", at("a")).root("b", at("a/b")).root("4", at("c")).list_max(list_max)
    };
    let trees = Tree::all(&options(100), Resolution::best()).unwrap();
    assert_eq!(walk(&trees, 2, |_| {}), ["a/1", "a/2", "a/b/3", "b/3", "4/4"]);
    let mut few = Tree::all(&options(3), Resolution::best()).unwrap();
    assert_eq!(walk(&few, 2, |_| {}), ["a/1", "a/2", "a/b/3"]);
    few.extend(Tree::all(&FileOptions::new().root("c", folder.0.join("c")), Resolution::best()).unwrap());
    assert_eq!(walk(&few, 2, |_| {}), ["a/1", "a/2", "a/b/3", "c/4"]);
    fs::rename(folder.0.join("a"), folder.0.join("gone")).unwrap();
    let asked = FileListContext { cursor: None, limit: 10, permits: &all, is_cancelled: &|| false };
    let page = list::page(&trees, &asked);
    assert_eq!((page.items.len(), page.missing.join(" ")), (1, "a b".to_owned()));
    assert_eq!(read(&trees[0], "1"), NONE);
    fs::rename(folder.0.join("gone"), folder.0.join("a")).unwrap();
    assert_eq!(read(&trees[0], "1"), ok(""));
}

// S-01: whole paths, as they go into a URI, of what is served.
#[test]
fn completion_goes_on_from_what_was_typed() {
    let folder = Folder::with([
        ("src/main.rs", ""),
        ("src/a b.rs", ""),
        ("src/.hidden", ""),
        ("setup", ""),
        ("ignored", ""),
        (".gitignore", "ignored\n"),
    ]);
    let tree = folder.tree(Resolution::best(), |options| options);
    let paths = |typed: &str| {
        let permits = |uri: &str| !uri.ends_with("setup");
        complete::paths(&tree, typed, &permits, &|| false).unwrap_or_default().join(" ")
    };
    for (typed, values) in [
        ("", "src/"),
        ("s", "src/"),
        ("src/", "src/a%20b.rs src/main.rs"),
        ("src/a ", "src/a%20b.rs"),
        ("src/a%20", "src/a%20b.rs"),
        ("src/.", ""),
        ("i", ""),
        ("../", ""),
        ("/", ""),
        ("absent/", ""),
        ("src/main.rs/", ""),
    ] {
        assert_eq!(paths(typed), values, "{typed}");
    }
    assert_eq!(complete::roots(&[tree], ""), ["r"]);
}

// S-01, S-12: the size is checked before a file is read, and no more than that is read.
#[test]
fn sizes_and_lines() {
    let folder = Folder::with([("a", "one\ntwo\nthree\n"), ("empty", ""), ("big", &"x".repeat(300_000))]);
    let tree = folder.tree(Resolution::best(), |options| options);
    let root = tree.open().unwrap();
    let open = |path: &str| tree.find(&root, path.as_bytes(), &all).unwrap();
    let max = |limit| Err(ReadError::SizeExceeded { limit, size: Some(14) });
    let read = |path: &str, lines: Option<&str>, limit| {
        let lines = lines.map(|lines| LineRange::parse(lines).unwrap());
        contents::file(open(path), path.as_bytes(), lines, limit, &context()).map(|result| shown(&result))
    };
    assert_eq!(read("a", None, Some(13)), max(13));
    assert_eq!(read("a", None, Some(14)).unwrap().len(), 14);
    assert_eq!(read("a", Some("2-2"), Some(4)).unwrap(), "two\n");
    assert_eq!(read("a", Some("2-9"), None).unwrap(), "two\nthree\n");
    assert!(matches!(read("a", Some("2-3"), Some(4)), Err(ReadError::SizeExceeded { limit: 4, .. })));
    assert_eq!(read("empty", Some("1-5"), None).unwrap(), "");
    let range =
        |there: &str| ReadError::InvalidParameter { parameter: "lines".into(), expected: there.into() };
    assert_eq!(read("a", Some("4-9"), None), Err(range("lines from 1 to 3")));
    assert_eq!(read("big", Some("2-"), None), Err(range("lines from 1 to 1")));
    assert_eq!(read("big", None, None).unwrap().len(), 300_000);
    for size in [1, 4_095, 4_096, 65_535, 65_536, 65_537] {
        folder.write("big", "x".repeat(size));
        assert_eq!(read("big", None, None).unwrap().len(), size);
    }
    // It grows after it was opened.
    let grows = open("a");
    folder.write("a", "x".repeat(200_000));
    let found = contents::file(grows, b"a", None, Some(100_000), &context());
    assert!(matches!(found, Err(ReadError::SizeExceeded { limit: 100_000, .. })));
    // Even by one byte, which there was room for.
    let grows = open("empty");
    folder.write("empty", "x");
    let found = contents::file(grows, b"empty", None, Some(0), &context());
    assert!(matches!(found, Err(ReadError::SizeExceeded { limit: 0, .. })));
    folder.write("a", "x".repeat(14));
    let grows = open("a");
    folder.write("a", "x".repeat(15));
    let found = contents::file(grows, b"a", None, Some(14), &context());
    assert!(matches!(found, Err(ReadError::SizeExceeded { limit: 14, .. })));
    // All that is there is read, in whatever way its size has changed meanwhile.
    let changes =
        [(0, 1), (0, 5_000), (1, 2), (1, 3), (10, 4_097), (4_096, 70_000), (65_536, 70_000), (10, 3)];
    for (before, after) in changes.into_iter().chain([(70_000, 140_000), (70_000, 10)]) {
        folder.write("b", "x".repeat(before));
        let opened = open("b");
        folder.write("b", "y".repeat(after));
        let found = contents::file(opened, b"b", None, None, &context()).unwrap();
        assert_eq!(shown(&found), "y".repeat(after), "{before} {after}");
    }
}

// S-01: files that are not served leave no trace beyond a bound either, such as another page.
#[test]
fn what_is_not_served_leaves_no_trace() {
    let folder = Folder::with([(".gitignore", "z*\n")]);
    for file in 0..1_000 {
        folder.write(format!("{file:04}"), "");
        folder.write(format!("z{file:04}"), "");
    }
    let tree = folder.tree(Resolution::best(), |options| options);
    let root = tree.open().unwrap();
    let dir = tree.find(&root, b"", &all).unwrap().into_dir().unwrap();
    let result = contents::directory(&tree, &root, b"", &dir, &context()).unwrap();
    assert_eq!((result.contents.len(), result.contents.last().unwrap().meta.as_deref()), (1_000, None));
    let asked = FileListContext { cursor: None, limit: 1_000, permits: &all, is_cancelled: &|| false };
    let page = list::page(&[tree], &asked);
    assert_eq!((page.items.len(), page.next), (1_000, None));
}

// S-01: a long directory is read up to a bound, and says that there is more.
#[test]
fn a_long_directory_is_cut() {
    let folder = Folder::new();
    for file in 0..1_001 {
        folder.write(format!("d/{file:04}"), "");
    }
    let tree = folder.tree(Resolution::best(), |options| options);
    let root = tree.open().unwrap();
    let dir = tree.find(&root, b"d", &all).unwrap().into_dir().unwrap();
    let result = contents::directory(&tree, &root, b"d", &dir, &context()).unwrap();
    let last = result.contents.last().unwrap();
    assert_eq!((result.contents.len(), last.uri.as_deref()), (1_000, Some("file:///r/d/0999")));
    assert!(last.meta.as_deref().unwrap().contains("more"));
    fs::create_dir(folder.0.join("empty")).unwrap();
    assert_eq!(read(&tree, "empty"), ok(""));
}
