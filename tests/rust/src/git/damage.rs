//! Parts of a repository that are no files, are cut in place, or are not there.

use super::statuses::rustix_fifo as fifo;
use super::*;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a read ends with, which it must: a thread that waits for the other end of a FIFO never ends.
async fn ends(client: &mut Client, uri: &str) -> Result<String, String> {
    let read = tokio::time::timeout(Duration::from_secs(60), client.read(uri)).await;
    let read = read.unwrap_or_else(|_| panic!("{uri} was not answered"));
    read.map(|read| read.to_string())
        .map_err(|error| error.data["kind"].as_str().unwrap_or_default().to_owned())
}

const URIS: [&str; 8] = [
    "status",
    "branches",
    "tags",
    "log",
    "log?path=src/main.rs",
    "commit/HEAD",
    "blob/HEAD/README.md",
    "tree/v2/",
];

/// The project, with its references and objects packed, and some that are not.
fn packed() -> Folder {
    let (folder, _) = project();
    folder.git("project", &["gc", "-q"]);
    folder.git("project", &["commit-graph", "write", "--reachable", "--changed-paths"]);
    folder.git("project", &["multi-pack-index", "write"]);
    folder.write("project/src/later.rs", "later\n");
    folder.commit("project", "Later");
    folder.git("project", &["tag", "v3"]);
    folder
}

/// The files of a repository that are read.
fn parts(folder: &Folder) -> Vec<PathBuf> {
    let git = folder.at("project/.git");
    let mut parts: Vec<PathBuf> =
        ["HEAD", "config", "index", "packed-refs", "refs/heads/main", "refs/tags/v3"]
            .iter()
            .map(|name| git.join(name))
            .collect();
    for entry in fs::read_dir(git.join("objects/pack")).unwrap() {
        parts.push(entry.unwrap().path());
    }
    let id = folder.git("project", &["rev-parse", "HEAD"]);
    let (start, rest) = id.trim().split_at(2);
    parts.push(git.join("objects").join(start).join(rest));
    parts.push(git.join("objects/info/commit-graph"));
    parts
}

/// S-02: with a FIFO, a socket, a directory or a device in the place of any part, everything is answered, and the other
/// repositories are served. When the part is back, so is its repository.
#[tokio::test]
async fn a_part_that_is_no_file_makes_nothing_wait() {
    let folder = packed();
    folder.repository("other");
    let extra = [
        "shallow",
        "info/exclude",
        "info/attributes",
        "info/grafts",
        "objects/info/alternates",
        "commondir",
        "config.worktree",
    ];
    let extra = extra.iter().map(|name| folder.at("project/.git").join(name));
    let in_tree = [".gitignore", ".gitattributes", "src/.gitignore", "README.md"]
        .iter()
        .map(|name| folder.at("project").join(name));
    let mut client = client(options(&folder).repo("other", folder.at("other")));
    for part in parts(&folder).into_iter().chain(extra).chain(in_tree) {
        let kept = part.with_extension("kept");
        let had = fs::rename(&part, &kept).is_ok();
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        for kind in 0..4 {
            match kind {
                0 => fifo(&part),
                1 => drop(UnixListener::bind(&part).map_err(|_| fifo(&part))),
                2 => fs::create_dir(&part).unwrap(),
                _ => symlink("/dev/zero", &part).unwrap(),
            }
            for uri in URIS {
                let _ = ends(&mut client, &format!("git:///project/{uri}")).await;
            }
            assert!(ends(&mut client, "git:///other/log").await.is_ok());
            let words = || Git::new(options(&folder)).map(drop).map_err(|error| error.to_string());
            if ["HEAD", "config", "packed-refs", "index"]
                .iter()
                .any(|name| part.ends_with(format!(".git/{name}")))
            {
                let said = words().unwrap_err();
                assert!(said.contains("is no regular file") || said.contains("leads out of it"), "{said}");
            } else {
                let _ = words();
            }
            if kind == 2 { fs::remove_dir(&part).unwrap() } else { fs::remove_file(&part).unwrap() }
        }
        if had {
            fs::rename(&kept, &part).unwrap();
        }
        for uri in URIS {
            let read = ends(&mut client, &format!("git:///project/{uri}")).await;
            assert!(read.is_ok(), "{uri} after {}: {read:?}", part.display());
        }
    }
}

/// S-02: a link that appears in the place of any part, however deep, and leads out, shows nothing of what it leads to.
#[tokio::test]
async fn a_link_that_appears_later_leads_nowhere() {
    let folder = packed();
    folder.repository("secret");
    folder.write("secret/CANARY.txt", "CANARY\n");
    let secret = folder.commit("secret", "CANARY");
    folder.git("secret", &["branch", "CANARY"]);
    let tree = folder.git("secret", &["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let blob = folder.git("secret", &["rev-parse", "HEAD:CANARY.txt"]).trim().to_owned();
    folder.git("project", &["branch", "deep/er/branch"]);
    let mut client = client(options(&folder).hidden(true));
    assert!(ends(&mut client, "git:///project/log").await.is_ok());
    // Files of objects, one by one, in folders that exist already or not.
    for id in [&secret, &tree, &blob] {
        let path =
            |repository: &str| folder.at(repository).join(".git/objects").join(&id[..2]).join(&id[2..]);
        fs::create_dir_all(path("project").parent().unwrap()).unwrap();
        symlink(path("secret"), path("project")).unwrap();
    }
    symlink(folder.at("secret/.git/refs/heads/main"), folder.at("project/.git/refs/heads/deep/er/CANARY"))
        .unwrap();
    symlink(folder.at("secret/.git/refs/heads"), folder.at("project/.git/refs/heads/deep/CANARY")).unwrap();
    symlink(folder.at("secret/CANARY.txt"), folder.at("project/.gitignore")).unwrap();
    let all = URIS.iter().map(|uri| (*uri).to_owned());
    let foreign = [
        format!("commit/{secret}"),
        format!("blob/{secret}/CANARY.txt"),
        format!("tree/{tree}/"),
        format!("log/{secret}"),
    ];
    for uri in
        all.chain(foreign).chain(["log/deep~2Fer~2FCANARY".to_owned(), "log/deep~2FCANARY~2Fmain".to_owned()])
    {
        let read = ends(&mut client, &format!("git:///project/{uri}")).await.unwrap_or_default();
        assert!(!read.contains("CANARY") && !read.contains(&secret), "{uri} {read}");
    }
}

/// S-02: parts that are cut in place while they are read are errors, or are read from elsewhere; the process goes on.
#[tokio::test]
async fn parts_that_are_cut_in_place_end_nothing() {
    let folder = packed();
    for number in 0..200 {
        folder.write(format!("project/many/{number}.txt"), format!("{number}\n").repeat(200));
    }
    folder.commit("project", "Many");
    folder.git("project", &["repack", "-q", "-a", "-d"]);
    folder.git("project", &["commit-graph", "write", "--reachable"]);
    folder.git("project", &["multi-pack-index", "write"]);
    folder.git("project", &["pack-refs", "--all"]);
    let whole: Vec<(PathBuf, Vec<u8>)> = parts(&folder)
        .into_iter()
        .filter(|path| !path.ends_with("config") && path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    for (path, _) in &whole {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let cutter = std::thread::spawn({
        let whole = whole.clone();
        let is_over = is_over.clone();
        move || {
            for turn in 0_u64.. {
                for (path, bytes) in &whole {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                    file.set_len(bytes.len() as u64 * (turn % 4) / 4).unwrap();
                    std::thread::sleep(Duration::from_millis(1));
                    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
                }
            }
        }
    });
    let mut client = client(options(&folder));
    for _ in 0..cases_of_cuts() {
        for uri in URIS.iter().chain(&["blob/HEAD/many/7.txt", "diff/v1/HEAD", "tree/HEAD/many/"]) {
            let _ = ends(&mut client, &format!("git:///project/{uri}")).await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    cutter.join().unwrap();
    for (path, bytes) in &whole {
        fs::write(path, bytes).unwrap();
    }
    for uri in URIS {
        let read = ends(&mut client, &format!("git:///project/{uri}")).await;
        assert!(read.is_ok(), "{uri} {read:?}");
    }
}

fn cases_of_cuts() -> usize {
    super::commits::cases(15)
}

/// S-02: what a partial clone has not fetched is an error of reading, not absent, and the log says how to fetch it.
#[tokio::test]
async fn what_was_not_fetched_is_not_absent() {
    let (folder, ids) = project();
    let url = format!("file://{}", folder.at("project").display());
    folder.git("project", &["config", "uploadpack.allowFilter", "true"]);
    folder.git("", &["clone", "-q", "--filter=blob:none", "--no-checkout", &url, "blobless"]);
    folder.git("", &["clone", "-q", "--filter=tree:0", "--no-checkout", &url, "treeless"]);
    folder.git("", &["clone", "-q", &url, "whole"]);
    let options = GitOptions::new()
        .repo("blobless", folder.at("blobless"))
        .repo("treeless", folder.at("treeless"))
        .repo("whole", folder.at("whole"));
    let mut client = client(options);
    for repository in ["blobless", "treeless", "whole"] {
        let log = json_at(&mut client, &format!("git:///{repository}/log")).await;
        assert_eq!(each(&log, "commits", "id"), [&*ids[2], &*ids[1], &*ids[0]]);
        let unknown = "0123456789012345678901234567890123456789";
        let absent = ends(&mut client, &format!("git:///{repository}/commit/{unknown}")).await;
        assert_eq!(absent, Err("not_found".into()), "{repository}");
    }
    for uri in ["blobless/diff/HEAD~1/HEAD", "blobless/blob/HEAD/README.md", "treeless/diff/HEAD~1/HEAD"]
        .iter()
        .map(|uri| (*uri).to_owned())
        .chain(
            ["tree/HEAD/", "log?path=src", "commit/HEAD", "blob/HEAD/README.md"]
                .map(|rest| format!("treeless/{rest}")),
        )
    {
        assert_eq!(ends(&mut client, &format!("git:///{uri}")).await, Err("read_error".into()), "{uri}");
    }
    assert!(ends(&mut client, "git:///blobless/commit/HEAD").await.is_ok());
    // What is missing without a reason is an error too.
    let id = folder.git("project", &["rev-parse", "HEAD:README.md"]);
    let (start, rest) = id.trim().split_at(2);
    fs::remove_file(folder.at("project/.git/objects").join(start).join(rest)).unwrap();
    let mut client = super::client(super::options(&folder));
    assert_eq!(ends(&mut client, "git:///project/blob/HEAD/README.md").await, Err("read_error".into()));
}

/// S-02: what git refuses is refused: a repository with an extension, or of a version, that is not known.
#[test]
fn extensions_that_are_not_known() {
    for (name, value, version, is_served) in [
        ("extensions.unknown", "true", "1", false),
        ("extensions.unknown", "true", "0", true),
        ("extensions.preciousObjects", "true", "1", true),
        ("extensions.partialClone", "origin", "1", true),
        ("extensions.objectFormat", "sha1", "1", true),
        ("core.repositoryFormatVersion", "2", "2", false),
    ] {
        let folder = Folder::new();
        folder.repository("project");
        let (section, key) = name.split_once('.').unwrap();
        let config =
            format!("[core]\n\trepositoryformatversion = {version}\n[{section}]\n\t{key} = {value}\n");
        folder.write("project/.git/config", config);
        let git = Command::new("git").args(["log", "-1"]).current_dir(folder.at("project")).output().unwrap();
        assert_eq!(git.status.success(), is_served, "{name} {value} {version}");
        let ours = Git::new(options(&folder)).map(drop).map_err(|error| error.to_string());
        assert_eq!(ours.is_ok(), is_served, "{name} {value} {version}: {ours:?}");
    }
}

/// S-02: an abbreviated id that a commit and a file share names the commit, as it does for git.
#[tokio::test]
async fn an_abbreviated_id_prefers_commits() {
    let folder = Folder::new();
    folder.repository("project");
    let stream: String = (0..600)
        .map(|number| {
            let time = 1_500_000_000 + number;
            format!("commit refs/heads/many\ncommitter A <a@b> {time} +0000\ndata 1\nxM 644 inline a\ndata 3\n{number:03}\n")
        })
        .collect();
    git(&folder.at("project"), &["fast-import", "--quiet"], stream.as_bytes());
    let all = folder
        .git("project", &["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
    let mut kinds = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    for line in all.lines() {
        kinds.entry(&line[..4]).or_default().push(&line[41..]);
    }
    let shared: Vec<&str> = kinds
        .iter()
        .filter(|(_, kinds)| kinds.len() > 1 && kinds.iter().filter(|kind| **kind == "commit").count() == 1)
        .map(|(prefix, _)| *prefix)
        .collect();
    assert!(!shared.is_empty());
    let mut client = client(options(&folder));
    for prefix in shared {
        let expected = folder.git("project", &["rev-parse", &format!("{prefix}^{{commit}}")]);
        let log = json_at(&mut client, &format!("git:///project/log/{prefix}")).await;
        assert_eq!(each(&log, "commits", "id")[0], expected.trim());
    }
    let several = kinds.iter().find(|(_, kinds)| kinds.iter().filter(|kind| **kind == "commit").count() > 1);
    if let Some((prefix, _)) = several {
        let error = client.read(&format!("git:///project/log/{prefix}")).await.unwrap_err();
        assert_eq!((error.code, &error.data["parameter"]), (-32602, &json!("ref")));
    }
}
