//! Commits and tags that no program would write today, as `git log` and `git for-each-ref` show them.

use super::*;

/// A generator of numbers, the same for each seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len())]
    }
}

/// How many cases a test compares with git: more for `make soak`.
pub(super) fn cases(usual: usize) -> usize {
    std::env::var("MCP_RESOURCES_GIT_CASES").map_or(usual, |text| text.parse().unwrap())
}

/// Writes an object without a check.
fn written(folder: &Folder, kind: &str, bytes: &[u8]) -> String {
    let id = git(&folder.at("project"), &["hash-object", "-t", kind, "-w", "--literally", "--stdin"], bytes);
    String::from_utf8(id).unwrap().trim().to_owned()
}

/// What git says with these arguments; `None` if it fails.
fn said(folder: &Folder, arguments: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("git").args(arguments).current_dir(folder.at("project")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.split('\x01').map(str::to_owned).collect())
}

/// As git writes dates: it says `Z` for UTC, and nothing where there is none.
fn date(value: &Value) -> String {
    value.as_str().map_or_else(String::new, |date| {
        date.strip_suffix("+00:00").map_or(date.to_owned(), |date| format!("{date}Z"))
    })
}

const GOOD: &str = "Ada <ada@example.org> 1334833756 -0700";

/// S-02: one commit that is malformed hides no other, and is shown as far as it can be read.
#[tokio::test]
async fn a_malformed_commit_hides_no_other() {
    let folder = Folder::new();
    folder.repository("project");
    let first = folder.git("project", &["rev-parse", "HEAD"]).trim().to_owned();
    let tree = folder.git("project", &["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let head = format!("tree {tree}\nparent {first}\n");
    for (name, rest) in [
        (
            "a line end in an address",
            "author A <a@x\n> 1334833756 -0700\ncommitter A <a@x\n> 1334833756 -0700\n\nbad\n".to_owned(),
        ),
        ("no address", format!("author Foo 1282910542 +0200\ncommitter {GOOD}\n\nbad\n")),
        ("two authors", format!("author {GOOD}\nauthor B <b@x> 1 +0000\ncommitter {GOOD}\n\nbad\n")),
        ("no empty line", format!("author {GOOD}\ncommitter {GOOD}\n")),
        (
            "a zone of letters",
            "author A <a@x> 1334833756 UTC\ncommitter A <a@x> 1334833756 UTC\n\nbad\n".to_owned(),
        ),
        ("no people", "\nbad\n".to_owned()),
    ] {
        let bad = written(&folder, "commit", format!("{head}{rest}").as_bytes());
        let good = folder.git("project", &["commit-tree", &tree, "-p", &bad, "-m", "good"]).trim().to_owned();
        folder.git("project", &["update-ref", "refs/heads/main", &good]);
        folder.git("project", &["update-ref", "refs/heads/bad", &bad]);
        let mut client = client(options(&folder));
        for uri in ["log", "log/main", "log/HEAD"] {
            let log = json_at(&mut client, &format!("git:///project/{uri}")).await;
            assert_eq!(each(&log, "commits", "id"), [&*good, &*bad, &*first], "{name} {uri}");
        }
        let log = json_at(&mut client, "git:///project/log?n=1").await;
        assert_eq!((each(&log, "commits", "id"), &log["more"]), (vec![&*good], &json!(true)), "{name}");
        let log = json_at(&mut client, "git:///project/log?path=README.md").await;
        assert_eq!(each(&log, "commits", "id"), [&*first], "{name}");
        assert_eq!(json_at(&mut client, "git:///project/commit/HEAD~1").await["id"], bad, "{name}");
        let branches = json_at(&mut client, "git:///project/branches").await;
        assert_eq!(each(&branches, "branches", "id").len(), 2, "{name}");
    }
}

/// A commit that git may or may not be able to read.
fn random_commit(dice: &mut Dice, tree: &str, parent: &str) -> Vec<u8> {
    const PEOPLE: [&[u8]; 24] = [
        b"Ada <ada@example.org> 1334833756 -0700",
        b"Ada <ada@example.org> 1700000000 +0000",
        b"  Ada   <ada@example.org> 1700000000 +0530",
        b"Ada<ada@example.org>1700000000 +0100",
        b"Ada <ada@example.org> 1700000000",
        b"Ada <ada@example.org> UTC",
        b"Ada <ada@example.org> 1700000000 UTC",
        b"Ada <ada@example.org> -1700000000 +0000",
        b"Ada <ada@example.org> 99999999999 +0000",
        b"Ada <ada@example.org> 0 -0130",
        b"Ada <ada@example.org>",
        b"Ada <ada@example.org",
        b"Ada <> 1700000000 +0100",
        b"<ada@example.org> 1700000000 +0100",
        b" <ada@example.org> 1700000000 +0100",
        b"Ada <a<b>c> 1700000000 +0100",
        b"Ada <a@b>> 1700000000 +0100",
        b"Ada \"x\" <a b> 1700000000 +0100",
        b"Foo 1282910542 +0200",
        b"A\xe9 <a@b> 1700000000 +0100",
        b"\xc3\xa9t\xc3\xa9 <a@b> 1700000000 +0100",
        b"A <a@x\n> 1334833756 -0700",
        b"\x1b$B8!:w\x1b(B <a@b> 1700000000 +0100",
        b"",
    ];
    const HEADERS: [&[u8]; 12] = [
        b"encoding ISO-8859-1\n",
        b"encoding Shift_JIS\n",
        b"encoding ISO-2022-JP\n",
        b"encoding EUC-JP\n",
        b"encoding UTF-8\n",
        b"encoding nothing\n",
        b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n author X <x@x> 1 +0000\n -----END PGP SIGNATURE-----\n",
        b"mergetag object 0000000000000000000000000000000000000000\n type commit\n tag x\n \n text\n",
        b"HG:extra thing\n",
        b"author B <b@example.org> 1600000000 +0200\n",
        b"committer C <c@example.org> 1500000000 +0200\n",
        b"x\n",
    ];
    const TEXT: [&[u8]; 14] = [
        b"\n",
        b"\n",
        b"\n\n",
        b"\r\n",
        b" ",
        b"\t",
        b"Subject",
        b"body of text",
        b"caf\xe9",
        b"\xe6\xa4\x9c",
        b"\x8c\x9f\x8d\xf5",
        b"\x1b$B8!:w\x1b(B",
        b"Signed-off-by: A <a@b>",
        b"\x00",
    ];
    let mut bytes = format!("tree {tree}\n").into_bytes();
    for _ in 0..dice.roll(3) {
        bytes.extend(format!("parent {parent}\n").into_bytes());
    }
    for name in ["author ", "committer "] {
        if dice.roll(12) > 0 {
            bytes.extend([name.as_bytes(), dice.pick(&PEOPLE), b"\n"].concat());
        }
    }
    while dice.roll(2) == 0 {
        bytes.extend_from_slice(dice.pick(&HEADERS));
    }
    if dice.roll(12) > 0 {
        bytes.push(b'\n');
    }
    for _ in 0..dice.roll(9) {
        bytes.extend_from_slice(dice.pick(&TEXT));
    }
    bytes
}

/// S-02: names, addresses, dates, subjects and messages are those of `git log`, whatever a commit has.
#[tokio::test]
async fn commits_are_those_of_git_log() {
    let folder = Folder::new();
    folder.repository("project");
    let parent = folder.git("project", &["rev-parse", "HEAD"]).trim().to_owned();
    let tree = folder.git("project", &["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let mut client = client(options(&folder));
    let mut dice = Dice::new(8);
    let mut compared = 0;
    for case in 0..cases(150) {
        let raw = random_commit(&mut dice, &tree, &parent);
        let id = written(&folder, "commit", &raw);
        let format = "--format=%an%x01%ae%x01%aI%x01%cn%x01%ce%x01%cI%x01%s%x01%B%x01%P%x01";
        let Some(expected) = said(&folder, &["log", "-1", format, &id]) else { continue };
        let ours = json_at(&mut client, &format!("git:///project/commit/{id}")).await;
        let person = |who: &str, what: &str| ours[who][what].as_str().unwrap_or_default().to_owned();
        let parents: Vec<&str> =
            ours["parents"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let mut found = vec![
            person("author", "name"),
            person("author", "email"),
            date(&ours["author"]["date"]),
            person("committer", "name"),
            person("committer", "email"),
            date(&ours["committer"]["date"]),
            ours["subject"].as_str().unwrap().to_owned(),
            ours["message"].as_str().unwrap().to_owned(),
            parents.join(" "),
        ];
        let mut expected = expected[..9].to_vec();
        // Tables of encodings differ in control characters.
        let is_latin = !raw.windows(6).any(|part| part == b"EUC-JP" || part == b"Shift_");
        if !is_latin && expected.iter().any(|part| part.contains(|char| ('\u{80}'..'\u{a0}').contains(&char)))
        {
            continue;
        }
        // Behind headers that a NUL ends, git reads on past the end.
        let headers = raw.split(|byte| *byte == 0).next().unwrap();
        if !headers.windows(2).any(|two| two == b"\n\n") {
            expected[6..8].fill(String::new());
        }
        for part in &mut expected {
            // What git does not find, it leaves as it is asked for.
            if part.starts_with('%') {
                part.clear();
            }
        }
        for at in [2, 5] {
            // Only git has years of more than four digits.
            if expected[at].split('-').next().unwrap().len() > 4 {
                expected[at].clear();
            }
        }
        // `%B` ends with one line end where the message has others.
        (expected[7], found[7]) = (expected[7].trim_end().to_owned(), found[7].trim_end().to_owned());
        assert_eq!(found, expected, "case {case}: {:?}", String::from_utf8_lossy(&raw));
        compared += 1;
    }
    assert!(compared > cases(150) / 2, "{compared}");
}

/// S-02: the subject of a commit, a branch and a tag is the first paragraph that has one, as one line.
#[tokio::test]
async fn a_message_may_begin_with_empty_lines() {
    let folder = Folder::new();
    folder.repository("project");
    for (message, subject) in [
        ("\n\nThe subject\n\nbody", "The subject"),
        ("\r\n \n\t\nThe\r\nsubject \n of lines\n\nbody", "The subject  of lines"),
        (" \n\n", ""),
    ] {
        folder.write("message", message);
        let words = [
            "commit",
            "-q",
            "--allow-empty",
            "--allow-empty-message",
            "--cleanup=verbatim",
            "-F",
            "../message",
        ];
        folder.git("project", &words);
        folder.git("project", &["tag", "-f", "light"]);
        let mut client = client(options(&folder));
        assert_eq!(folder.git("project", &["log", "-1", "--format=%s"]).trim_end_matches('\n'), subject);
        assert_eq!(json_at(&mut client, "git:///project/log").await["commits"][0]["subject"], subject);
        assert_eq!(json_at(&mut client, "git:///project/commit/HEAD").await["subject"], subject);
        assert_eq!(json_at(&mut client, "git:///project/branches").await["branches"][0]["subject"], subject);
        assert_eq!(json_at(&mut client, "git:///project/tags").await["tags"][0]["subject"], subject);
    }
}

/// S-02: what `git for-each-ref` says of a tag: of commits, trees, files and tags, with and without a tagger.
#[tokio::test]
async fn tags_are_those_of_git() {
    let folder = Folder::new();
    folder.repository("project");
    let id = |name: &str| folder.git("project", &["rev-parse", name]).trim().to_owned();
    let commit = id("HEAD");
    let tree = id("HEAD^{tree}");
    let blob = id("HEAD:README.md");
    let mut last = (commit.clone(), "commit");
    for (number, (target, kind)) in
        [(&*commit, "commit"), (&tree, "tree"), (&blob, "blob"), (&commit, "commit"), (&commit, "commit")]
            .iter()
            .enumerate()
    {
        for (at, (tagger, message)) in [
            (format!("tagger {GOOD}\n"), "\nSubject\n\nbody\n"),
            (String::new(), "\n\n\nSubject\nof two lines\n"),
            (
                "tagger Nobody\n".to_owned(),
                "\nSigned\n-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n",
            ),
            ("tagger A <a@b> 12 +0530\n".to_owned(), ""),
            (format!("tagger {GOOD}\n"), "\nWith\r\ntwo line ends\r\n\r\nbody\n"),
        ]
        .iter()
        .enumerate()
        {
            let (target, kind) = if number == 4 { (&*last.0, last.1) } else { (*target, *kind) };
            let name = format!("t{number}-{at}");
            let raw = format!("object {target}\ntype {kind}\ntag {name}\n{tagger}{message}");
            let tag = written(&folder, "tag", raw.as_bytes());
            folder.git("project", &["update-ref", &format!("refs/tags/{name}"), &tag]);
            last = (tag, "tag");
        }
    }
    let mut client = client(options(&folder));
    let tags = json_at(&mut client, "git:///project/tags").await;
    let mut compared = 0;
    for tag in tags["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        let format = "--format=%(objectname)%01%(subject)%01%(taggername)%01%(taggeremail:trim)%01%(taggerdate:iso-strict)%01";
        let full = format!("refs/tags/{name}");
        let Some(expected) = said(&folder, &["for-each-ref", format, &full]) else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tagger = &tag["tagger"];
        let found = [
            text(&tag["tag"]),
            text(&tag["subject"]),
            text(&tagger["name"]),
            text(&tagger["email"]),
            date(&tagger["date"]),
        ];
        // Of a tagger without an address, git shows the whole line.
        let expected: Vec<String> = expected[..5]
            .iter()
            .map(|part| if part == "Nobody" { String::new() } else { part.clone() })
            .collect();
        assert_eq!(found[..], expected[..], "{name}");
        let peeled = folder.git("project", &["rev-parse", &format!("{full}^{{}}")]);
        assert_eq!(tag["id"], peeled.trim(), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 25);
}
