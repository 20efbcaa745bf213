//! Refusals at the start, of URIs and by size; and no program of a repository is ever run.

use super::*;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_runtime::testing::ServerError;

fn refused(directory: PathBuf) -> String {
    Git::new(GitOptions::new().repo("r", directory)).unwrap_err().to_string()
}

/// S-02: what leads out of the directory that was declared is not served; a worktree that git made is.
#[test]
fn what_leads_out_is_refused() {
    let folder = Folder::new();
    folder.repository("other");
    folder.repository("project");
    // A .git file that somebody wrote, to a repository and to a worktree of one.
    folder.git("other", &["worktree", "add", "-q", "-b", "own", "../own"]);
    assert!(Git::new(GitOptions::new().repo("own", folder.at("own"))).is_ok());
    for to in ["../other/.git", "../other/.git/worktrees/own", "/", "../none", "", "../other/.git/worktrees"]
    {
        folder.write("forged/.git", format!("gitdir: {to}\n"));
        let said = refused(folder.at("forged"));
        assert!(said.contains("forged has a .git file that "), "{said}");
    }
    // Its own directory beside the working tree.
    fs::create_dir_all(folder.at("beside")).unwrap();
    folder.git("beside", &["init", "-q", "--separate-git-dir", "../apart"]);
    assert!(refused(folder.at("beside")).contains("leads out of it"));
    // Objects of another repository.
    folder.git("", &["clone", "-q", "--shared", "other", "shared"]);
    let said = refused(folder.at("shared"));
    assert!(said.contains("borrows objects from outside") && said.contains("git repack"), "{said}");
    folder.git("shared", &["repack", "-q", "-a", "-d"]);
    fs::remove_file(folder.at("shared/.git/objects/info/alternates")).unwrap();
    assert!(Git::new(GitOptions::new().repo("shared", folder.at("shared"))).is_ok());
    // Links in the place of its parts.
    for part in ["objects", "refs", "HEAD", "config"] {
        let own = folder.at("project/.git").join(part);
        let moved = folder.at(part);
        fs::rename(&own, &moved).unwrap();
        symlink(&moved, &own).unwrap();
        assert!(refused(folder.at("project")).contains(&format!("has a link, {part}, that leads out of it")));
        fs::remove_file(&own).unwrap();
        fs::rename(&moved, &own).unwrap();
    }
    fs::create_dir_all(folder.at("linked")).unwrap();
    symlink(folder.at("other/.git"), folder.at("linked/.git")).unwrap();
    assert!(refused(folder.at("linked")).contains("has a link, .git, that leads out of it"));
    assert!(refused(folder.at("other/.git/worktrees/own")).contains("is not the root of a git repository"));
    assert!(Git::new(GitOptions::new().repo("p", folder.at("project"))).is_ok());
}

/// S-02: no file within a `.git` directory leads out of it, and no link in the place of an object or a reference does.
#[tokio::test]
async fn nothing_under_dot_git_leads_out() {
    let folder = Folder::new();
    folder.repository("other");
    folder.repository("project");
    let own = folder.at("project/.git");
    let other = folder.at("other/.git");
    let id = folder.git("other", &["rev-parse", "HEAD"]).trim().to_owned();
    let (fan, rest) = id.split_at(2);
    let links = [
        ("commondir", other.join("HEAD"), ".git/commondir"),
        ("objects/zz", other.join("objects").join(fan), "has a link, zz, that leads out"),
        (&*format!("objects/yy/{rest}"), other.join("objects").join(fan).join(rest), "that leads out"),
        ("objects/pack/pack-0.pack", other.join("HEAD"), "has a link, pack-0.pack, that leads out"),
        ("refs/heads/theirs", other.join("refs/heads/main"), "has a link, theirs, that leads out"),
        ("refs/heads/of/theirs", other.join("refs/heads"), "has a link, theirs, that leads out"),
        ("sharedindex.0", other.join("index"), "has a link, sharedindex.0, that leads out"),
    ];
    let mut client = client(options(&folder));
    for (at, to, message) in links {
        let at = own.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, &at).unwrap();
        let said = refused(folder.at("project"));
        assert!(said.contains(message), "{said}");
        fs::remove_file(&at).unwrap();
    }
    assert!(client.read("git:///project/log").await.is_ok());
    // Links that are not read, and links within.
    symlink("/", own.join("lfs")).unwrap();
    symlink("main", own.join("refs/heads/same")).unwrap();
    symlink(".", own.join("objects/around")).unwrap();
    assert_eq!(client.read_text("git:///project/blob/same/README.md").await.unwrap(), "# Project\n");

    // While it is served.
    fs::write(own.join("commondir"), format!("{}\n", other.display())).unwrap();
    assert!(refused(folder.at("project")).contains(".git/commondir, which leads to another repository"));
    assert_eq!(client.read("git:///project/log").await.unwrap_err().data["kind"], "read_error");
    fs::remove_file(own.join("commondir")).unwrap();
    symlink(other.join("objects").join(fan), own.join("objects/zz")).unwrap();
    assert_eq!(client.read("git:///project/log").await.unwrap_err().data["kind"], "read_error");
    fs::remove_file(own.join("objects/zz")).unwrap();
    assert!(client.read("git:///project/log").await.is_ok());
}

/// S-02: a directory that git does not serve by itself is refused with what to name, or to run.
#[test]
fn relatives_of_repositories() {
    let folder = Folder::new();
    folder.repository("module");
    folder.repository("project");
    folder.git("project", &["submodule", "--quiet", "add", "../module", "lib"]);
    let said = refused(folder.at("project/lib"));
    let modules = folder.at("project/.git/modules/lib");
    assert!(said.contains(&format!("to serve the submodule, name {}", modules.display())), "{said}");
    assert!(Git::new(GitOptions::new().repo("lib", modules)).is_ok());
    folder.git("module", &["worktree", "add", "-q", "-b", "own", "../own"]);
    fs::rename(folder.at("module"), folder.at("moved")).unwrap();
    let said = refused(folder.at("own"));
    assert!(said.contains("if one of them was moved, run `git worktree repair`"), "{said}");
    folder.git("moved", &["worktree", "repair", "../own"]);
    assert!(Git::new(GitOptions::new().repo("own", folder.at("own"))).is_ok());
}

/// S-02: what is wrong at the start is named with the fix.
#[test]
fn mistakes_at_the_start() {
    let folder = Folder::new();
    folder.repository("project");
    fs::create_dir_all(folder.at("plain/sub")).unwrap();
    folder.git("project", &["init", "-q", "--object-format=sha256", "../sha256"]);
    folder.git("project", &["init", "-q", "--ref-format=reftable", "../reftable"]);
    let path = |path: &str| OptionValue::from(folder.at(path).display().to_string());
    let members = |members: Vec<(&str, OptionValue)>| {
        OptionValue::Members(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let with = |name, value| members(vec![("repos", path("project")), (name, value)]);
    for (value, message) in [
        (members(vec![]), "git: there is no repository; name one"),
        (path("plain"), "plain is not the root of a git repository; name the directory that has .git"),
        (path("none"), "does not exist; create it"),
        (path("~/none"), "does not exist; `~` is not expanded here"),
        (path("sha256"), "sha256 has other ids than SHA-1, which are not supported"),
        (with("refs", OptionValue::List(vec!["refs/heads".into()])), "refs has \"refs/heads\""),
        (path("reftable"), "reftable, which is not supported"),
        (with("log_max", 0_u64.into()), "log_max is 0, expected a whole number from 1"),
        (with("log", 5_u64.into()), "unexpected option \"log\""),
        (with("diff_bytes", "much".into()), "diff_bytes is \"much\", expected a size"),
        (with("refs", OptionValue::List(vec!["../x".into()])), "\"../x\", which is no folder of refs"),
        (with("exclude", OptionValue::List(vec!["a[".into()])), "exclude has the glob \"a[\""),
        (
            OptionValue::List(vec![path("project"), path("project")]),
            "two repositories have the name \"project\"",
        ),
    ] {
        let said = GitOptions::from_option(value).and_then(Git::new).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

/// S-02: nothing else of git's syntax is a value, and the answer names the variable.
#[tokio::test]
async fn values_that_make_no_sense() {
    let (folder, _) = project();
    let mut client = client(options(&folder).log_max(50));
    for (uri, variable) in [
        ("log/--output=x", "ref"),
        ("log/@%7B-1%7D", "ref"),
        ("log/%3A%2Fx", "ref"),
        ("log/a..b", "ref"),
        ("log/HEAD%5E%7B%2Fx%7D", "ref"),
        ("log/HEAD~x", "ref"),
        ("log/HEAD~2f", "ref"),
        ("blob/--output=x/README.md", "ref"),
        ("tree/@/", "ref"),
        ("commit/-x", "id"),
        ("diff/HEAD/--stat", "to"),
        ("diff/a...b/HEAD", "from"),
        ("log?n=0", "n"),
        ("log?n=51", "n"),
        ("log?n=-1", "n"),
        ("log?n=many", "n"),
        ("log?n=99999999999999999999", "n"),
    ] {
        let uri = format!("git:///project/{uri}");
        let Err(ServerError { code, message, data, .. }) = client.read(&uri).await else { panic!("{uri}") };
        // A URI that the guard always hides, such as one with an encoded slash, is not found.
        if !uri.contains("%2F") {
            assert_eq!((code, &data["parameter"]), (-32602, &json!(variable)), "{uri} {message}");
        }
    }
    assert!(!folder.at("project/x").exists() && !Path::new("x").exists());
}

/// S-02, R-145: what is too large is an error that says so, before it is made.
#[tokio::test]
async fn sizes_are_bounded() {
    let folder = Folder::new();
    folder.repository("project");
    folder.write("project/large.txt", "line\n".repeat(100_000));
    folder.write("project/large.bin", vec![0; 20 << 20]);
    folder.commit("project", "Large");
    for turn in 0..30 {
        folder.commit("project", &format!("Turn {turn}"));
    }
    let mut client = client(options(&folder).diff_bytes(10_000).log_max(20));
    for uri in ["diff/HEAD~31/HEAD", "blob/HEAD/large.bin"] {
        let error = client.read(&format!("git:///project/{uri}")).await.unwrap_err();
        assert_eq!(error.data["kind"], "size_exceeded", "{uri} {error:?}");
    }
    let log = json_at(&mut client, "git:///project/log").await;
    assert_eq!((each(&log, "commits", "id").len(), &log["more"]), (20, &json!(true)));
}

/// S-02, S-11: with a program behind everything that git could run, no URI runs one.
#[tokio::test]
async fn nothing_of_a_repository_is_run() {
    let (folder, ids) = project();
    folder.write("marker", format!("#!/bin/sh\ntouch {}\ncat\n", folder.at("ran").display()));
    let marker = folder.at("marker");
    fs::set_permissions(&marker, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(folder.at("hooks")).unwrap();
    for hook in ["post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"] {
        fs::copy(&marker, folder.at("hooks").join(hook)).unwrap();
    }
    folder.write("elsewhere/CANARY", "CANARY");
    let settings = [
        ("filter.mark.clean", "MARKER"),
        ("filter.mark.smudge", "MARKER"),
        ("filter.mark.process", "MARKER"),
        ("filter.mark.required", "true"),
        ("diff.mark.textconv", "MARKER"),
        ("diff.mark.command", "MARKER"),
        ("diff.external", "MARKER"),
        ("merge.mark.driver", "MARKER"),
        ("core.fsmonitor", "MARKER"),
        ("core.hooksPath", "HOOKS"),
        ("core.pager", "MARKER"),
        ("core.editor", "MARKER"),
        ("core.sshCommand", "MARKER"),
        ("core.gitProxy", "MARKER"),
        ("core.askPass", "MARKER"),
        ("core.alternateRefsCommand", "MARKER"),
        ("credential.helper", "MARKER"),
        ("gpg.program", "MARKER"),
        ("uploadpack.packObjectsHook", "MARKER"),
        ("include.path", "INCLUDED"),
        ("core.worktree", "ELSEWHERE"),
    ];
    folder.write("included", format!("[filter \"mark\"]\n\tclean = {}\n", marker.display()));
    folder.write("project/.git/info/attributes", "* filter=mark diff=mark merge=mark\n");
    folder.write("project/.gitattributes", "* filter=mark diff=mark merge=mark text eol=crlf\n");
    let mut config = fs::read_to_string(folder.at("project/.git/config")).unwrap();
    for (name, value) in settings {
        let (section, key) = name.rsplit_once('.').unwrap();
        let header =
            section.split_once('.').map_or(format!("[{section}]"), |(a, b)| format!("[{a} \"{b}\"]"));
        let value = value
            .replace("MARKER", &marker.display().to_string())
            .replace("HOOKS", &folder.at("hooks").display().to_string())
            .replace("INCLUDED", &folder.at("included").display().to_string())
            .replace("ELSEWHERE", &folder.at("elsewhere").display().to_string());
        config.push_str(&format!("{header}\n\t{key} = {value}\n"));
    }
    folder.write("project/.git/config", config);
    // So that status must look into files.
    folder.write("project/README.md", "# Changed\n");
    folder.write("project/src/main.rs", fs::read(folder.at("project/src/main.rs")).unwrap());
    let mut client = client(options(&folder).hidden(true));
    let mut uris = listed(&mut client).await;
    for rest in
        ["commit/HEAD", "diff/v1/HEAD", "tree/HEAD/src/", "blob/HEAD/src/main.rs", "log?path=src/main.rs"]
    {
        uris.push(format!("git:///project/{rest}"));
    }
    uris.push(format!("git:///project/blob/{}/README.md", ids[0]));
    let listen = client.listen(&uris.iter().map(String::as_str).collect::<Vec<_>>(), true).await.unwrap();
    let mut seen = String::new();
    for uri in &uris {
        seen.push_str(&client.read(uri).await.expect(uri).to_string());
    }
    for variable in ["ref", "path"] {
        client.complete("git:///{repo}/blob/{ref}/{+path}", variable, "", &[]).await.unwrap();
    }
    // Until the thread that watches has looked too.
    folder.write("project/more.txt", "more");
    while client.next(&listen).await.unwrap().params["uri"] != "git:///project/status" {}
    assert!(!seen.contains("CANARY\""), "{seen}");
    assert!(!folder.at("ran").exists(), "a program was run");
    // git itself runs them.
    let status = Command::new("git").args(["diff", "HEAD"]).current_dir(folder.at("project")).output();
    assert!(status.is_ok() && folder.at("ran").exists(), "the markers do not work");
}

/// S-02: what becomes dangerous while it is served is not served any longer, and comes back when it is put right.
#[tokio::test]
async fn a_repository_that_changes_is_judged_again() {
    let (folder, _) = project();
    folder.repository("other");
    let secret = folder.git("other", &["rev-parse", "HEAD"]).trim().to_owned();
    folder.write("other/CANARY", "CANARY");
    let secret = if secret.is_empty() { secret } else { folder.commit("other", "Secret") };
    let mut client = client(options(&folder));
    let own = "git:///project/blob/main/README.md";
    let foreign = format!("git:///project/blob/{secret}/CANARY");
    assert!(client.read(own).await.is_ok());
    let alternates = "project/.git/objects/info/alternates";
    folder.write(alternates, format!("{}\n", folder.at("other/.git/objects").display()));
    for uri in [own, &foreign] {
        assert_eq!(client.read(uri).await.unwrap_err().data["kind"], "read_error");
    }
    fs::remove_file(folder.at(alternates)).unwrap();
    assert!(client.read(own).await.is_ok());
    assert_eq!(client.read(&foreign).await.unwrap_err().data["kind"], "not_found");
    // Away, and back as another repository.
    fs::rename(folder.at("project"), folder.at("away")).unwrap();
    let error = client.read(own).await.unwrap_err();
    assert!(!format!("{error:?}").contains("mcp-git"), "{error:?}");
    folder.repository("project");
    assert_eq!(client.read_text(own).await.unwrap(), "# Project\n");
    assert!(client.read("git:///project/log/v1").await.is_err());
}
