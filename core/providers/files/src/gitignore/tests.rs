//! Tests that compare the decisions of rules with git's.

use super::super::tests::Folder;
use super::IgnoreRules;
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// The number of random rule files that are compared. More with `MCP_RESOURCES_RULES`, as in `make soak`.
const FILES: usize = 1_000;

/// Whether a path is ignored, judged with its directories.
fn is_ignored(rules: &IgnoreRules, path: &[u8]) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.map(|at| rules.decide(&path[..at], true)).any(|verdict| verdict == Some(true))
        || rules.decide(path, false) == Some(true)
}

/// Asks git whether each of the paths is ignored, with a `.gitignore` in each of their directories.
fn asked_of_git(rules: &[Vec<u8>], paths: &[Vec<Vec<u8>>], folds: bool) -> Vec<Vec<bool>> {
    let folder = Folder::new();
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["config", "core.ignorecase", if folds { "true" } else { "false" }]);
    let mut asked = Vec::new();
    for (at, (rules, paths)) in rules.iter().zip(paths).enumerate() {
        folder.write(format!("{at}/.gitignore"), rules);
        for path in paths {
            asked.extend_from_slice(format!("{at}/").as_bytes());
            asked.extend_from_slice(path);
            asked.push(0);
        }
    }
    let mut command = Command::new("git");
    command.args(["-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]);
    command.current_dir(&folder.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("git is needed");
    let mut stdin = child.stdin.take().unwrap();
    let feeds = std::thread::spawn(move || stdin.write_all(&asked).unwrap());
    let output = child.wait_with_output().unwrap();
    feeds.join().unwrap();
    let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    let mut said = HashMap::new();
    // The file, the line, the pattern, and the path.
    for entry in fields.chunks_exact(4) {
        said.insert(entry[3], !entry[0].is_empty() && !entry[2].starts_with(b"!"));
    }
    let answer = |at: usize, path: &[u8]| said[&*[format!("{at}/").as_bytes(), path].concat()];
    paths.iter().enumerate().map(|(at, paths)| paths.iter().map(|path| answer(at, path)).collect()).collect()
}

fn git(folder: &Folder, arguments: &[&str]) {
    assert!(Command::new("git").args(arguments).current_dir(&folder.0).status().unwrap().success());
}

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one<'a>(&mut self, words: &[&'a [u8]]) -> &'a [u8] {
        words[self.below(words.len())]
    }
}

const PARTS: &[&[u8]] = &[
    b"a",
    b"b",
    b"A",
    b"B",
    b"Z",
    b"5",
    b"ab",
    b".o",
    b".",
    b"-",
    b"!",
    b"^",
    b"#",
    b"$",
    b"{",
    b"}",
    b"{a,b}",
    b",",
    b"*",
    b"*",
    b"**",
    b"***",
    b"/",
    b"/",
    b"**/",
    b"/**",
    b"/**/",
    b"?",
    b"[",
    b"]",
    b"\\",
    b"\\\\",
    b"\\*",
    b"\\?",
    b"\\[",
    b"\\/",
    b"\\ ",
    b"\\!",
    b"\\#",
    b"\\a",
    b"\\A",
    b"[ab]",
    b"[!ab]",
    b"[^a]",
    b"[a-c]",
    b"[c-a]",
    b"[A-C]",
    b"[]]",
    b"[]a]",
    b"[!]]",
    b"[a\\]b]",
    b"[\\a-c]",
    b"[a-\\c]",
    b"[a-]",
    b"[-a]",
    b"[--0]",
    b"[[]",
    b"[a",
    b"[!",
    b"[\\",
    b"[[:digit:]]",
    b"[![:digit:]]",
    b"[[:upper:]]",
    b"[[:lower:]]",
    b"[[:alpha:]-z]",
    b"[[:space:]]",
    b"[[:alnum:]_]",
    b"[[:punct:]]",
    b"[[:graph:]]",
    b"[[:print:]]",
    b"[[:cntrl:]]",
    b"[[:xdigit:]]",
    b"[[:blank:]]",
    b"[[:bogus:]]",
    b"[[::]]",
    b"[[:]",
    b"[[:digit]",
    b"[[:digit:",
    b"[a/b]",
    b"[!/]",
    b"[*]",
    b"[?]",
    b"[\x80-\xff]",
    b" ",
    b"  ",
    b"\t",
    b"\r",
    b"\x0b",
    b"\x0c",
    b"\xc2\xa0",
    b"\xe3\x80\x80",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3\xa9",
    b"\0",
    b"\x7f",
];
const ENDS: &[&[u8]] =
    &[b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\\ \n", b"/\n", b"\t\n", b"\r\r\n", b" \r\n"];
const BYTES: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"z",
    b"A",
    b"B",
    b"5",
    b"0",
    b"_",
    b".",
    b".o",
    b"-",
    b"!",
    b"^",
    b"#",
    b"$",
    b"{",
    b"}",
    b",",
    b"*",
    b"?",
    b"[",
    b"]",
    b"\\",
    b" ",
    b"\t",
    b"\r",
    b"\x0b",
    b"\x0c",
    b"\xc2\xa0",
    b"\xe3\x80\x80",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3\xa9",
    b"\x7f",
    b"\n",
];

fn line(random: &mut Random) -> Vec<u8> {
    let mut line = Vec::new();
    if random.below(6) == 0 {
        line.extend_from_slice(random.one(&[b"!", b"#", b"\\!", b"\\#", b"/", b"!/"]));
    }
    for _ in 0..random.below(6) {
        line.extend_from_slice(random.one(PARTS));
    }
    line
}

/// A path that a line may match: its special parts are replaced by possible matches.
fn path_like(line: &[u8], random: &mut Random) -> Vec<u8> {
    let mut path = Vec::new();
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' => (0..random.below(3)).for_each(|_| path.extend_from_slice(random.one(BYTES))),
            b'[' if random.below(2) == 0 => {
                bytes.find(|byte| *byte == b']');
                path.extend_from_slice(random.one(BYTES));
            }
            b'\\' if random.below(3) > 0 => path.extend(bytes.next()),
            b'/' if random.below(4) == 0 => path.extend_from_slice(b"/b/"),
            b'a'..=b'z' | b'A'..=b'Z' if random.below(6) == 0 => path.push(byte ^ 0x20),
            _ => path.push(byte),
        }
    }
    if random.below(3) == 0 {
        path.extend_from_slice(b"/");
        path.extend_from_slice(random.one(BYTES));
    }
    path
}

/// Without what git takes for another path, or for none.
fn as_path(path: &[u8]) -> Option<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"." | b".."));
    let names: Vec<_> =
        names.filter(|name| !name.contains(&0) && !name.eq_ignore_ascii_case(b".git")).collect();
    (!names.is_empty()).then(|| names.join(&b'/'))
}

fn random_case(random: &mut Random) -> (Vec<u8>, Vec<Vec<u8>>) {
    let lines: Vec<_> = (0..=random.below(5)).map(|_| line(random)).collect();
    let mut rules = if random.below(20) == 0 { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
    for line in &lines {
        rules.extend_from_slice(line);
        rules.extend_from_slice(random.one(ENDS));
    }
    if random.below(8) == 0 {
        rules.pop();
    }
    let mut paths = Vec::new();
    for _ in 0..20 {
        let at = random.below(lines.len());
        let path = path_like(&lines[at], random);
        paths.extend(as_path(&path));
    }
    paths.sort();
    paths.dedup();
    (rules, paths)
}

// S-01: the verdict about every path is git's, whatever the rules have in them, with and without `core.ignorecase`.
#[test]
fn random_rules_decide_as_git_does() {
    let files =
        std::env::var("MCP_RESOURCES_RULES").ok().and_then(|files| files.parse().ok()).unwrap_or(FILES);
    for (seed, folds) in [(1, false), (2, true)] {
        let mut random = Random(seed);
        let (rules, paths): (Vec<_>, Vec<_>) = (0..files / 2).map(|_| random_case(&mut random)).unzip();
        let said = asked_of_git(&rules, &paths, folds);
        let mut ignored = 0;
        for (at, bytes) in rules.iter().enumerate() {
            let own = IgnoreRules::parse(bytes, folds);
            for (path, expected) in paths[at].iter().zip(&said[at]) {
                let found = is_ignored(&own, path);
                let shown = (bytes.escape_ascii().to_string(), path.escape_ascii().to_string());
                assert_eq!(found, *expected, "{shown:?} folds={folds}");
                ignored += usize::from(*expected);
            }
        }
        assert!(ignored > files / 3, "only {ignored} paths are ignored: the cases say little");
    }
}

// S-01: each kind of line, by its own path and by one that it must not name.
#[test]
fn lines_decide_as_git_does() {
    let cases: &[(&[u8], &[&[u8]])] = &[
        (b"*.py{}\n{f}\n", &[b"test.py", b"test.py{}", b"{f}", b"f"]),
        (b"[[:digit:]].log\n", &[b"5.log", b"a.log"]),
        (
            b"[![:digit:]]x\n[[:upper:]]y*\na[[:space:]]b\n[[:alnum:]_]z\n",
            &[b"5x", b"ax", b"Ay1", b"ay1", b"a b", b"a\x0bb", b"_z", b"-z"],
        ),
        (b"trail\t\nx\xe3\x80\x80\n", &[b"trail", b"trail\t", b"x", b"x\xe3\x80\x80"]),
        (b"tail\\  \n", &[b"tail ", b"tail", b"tail  "]),
        (b"foo**/bar\n", &[b"foo/bar", b"foo/x/bar", b"foox/bar", b"foox/y/bar"]),
        (b"a/**\n!a/keep\n", &[b"a/b", b"a/keep", b"a"]),
        (b"a\n!a/keep\n", &[b"a/keep", b"b/a/keep"]),
        (b"**\\/x\n", &[b"x", b"a/x", b"a/b/x"]),
        (b"one\r\ntwo\r", &[b"one", b"one\r", b"two", b"two\r"]),
        (b"cut\0off\n", &[b"cut", b"cutoff"]),
        (b"\t\n\x0b\n", &[b"\t", b"\x0b", b" "]),
        (b"\\\n", &[b"\\"]),
        (b"\xff\xfe*\n", &[b"\xff\xfea", b"a"]),
        (b"\xfe\xffx\n", &[b"x", b"\xfe\xffx"]),
        (b"$a\n\\$b\n!$c\n", &[b"$a", b"a", b"$b", b"b", b"$c"]),
        (b"/\n//\n!\n!/\n", &[b"a", b"a/b"]),
    ];
    let rules: Vec<Vec<u8>> = cases.iter().map(|(rules, _)| rules.to_vec()).collect();
    let paths: Vec<Vec<Vec<u8>>> =
        cases.iter().map(|(_, paths)| paths.iter().map(|path| path.to_vec()).collect()).collect();
    let said = asked_of_git(&rules, &paths, false);
    for (at, bytes) in rules.iter().enumerate() {
        let own = IgnoreRules::parse(bytes, false);
        let found: Vec<bool> = paths[at].iter().map(|path| is_ignored(&own, path)).collect();
        assert_eq!(found, said[at], "{} {:?}", bytes.escape_ascii(), cases[at].1);
    }
}

// S-12: no pattern makes a match expensive, nor is one too long to be read.
#[test]
fn no_pattern_is_expensive() {
    let stars = b"*a".repeat(2_000);
    let deep = b"**/".repeat(2_000);
    for pattern in
        [stars.clone(), [&*stars, b"b"].concat(), [&*deep, b"x*y"].concat(), b"[a-z]*".repeat(2_000)]
    {
        let rules = IgnoreRules::parse(&pattern, false);
        rules.decide(&b"a".repeat(4_000), false);
        rules.decide(&b"a/".repeat(2_000)[..3_999], false);
    }
    let seventy = [b"*a".repeat(70), b"z".to_vec()].concat();
    assert_eq!(
        IgnoreRules::parse(&seventy, false).decide(&[b"a".repeat(70), b"z".to_vec()].concat(), false),
        Some(true)
    );
    let huge = b"name\n".repeat(100_000);
    assert_eq!(IgnoreRules::parse(&huge, false).decide(b"name", false), Some(true));
}
