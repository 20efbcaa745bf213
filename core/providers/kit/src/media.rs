//! Media types and importance of files, by their names and contents: the same on a disk, in a commit and in a skill.
//!
//! ```text
//!   by_name(path)          what the name alone says; nothing if it says nothing, or two things
//!   mime_type(path, bytes) text stays text whatever its name says, and bytes are never called text
//!   text_type, bytes_type  the same where it is known whether they are UTF-8
//! ```
//!
//! Law: the table of media types is used where a name has one meaning. It takes `go.mod` for a video and `notes.org`
//! for an office document; for such names, their meaning in a program's tree wins.

/// The media type of a directory.
pub const DIRECTORY: &str = "inode/directory";
const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";
/// Maximum number of children of a directory that are read, the first ones by name.
pub const CHILDREN: usize = 1_000;
/// In `_meta` of the last child, if there are more.
pub const MORE: &str = r#"{"io.github.mcp-resources/more":true}"#;

/// Extensions with one meaning that is not `text/*`: of these, the table is believed.
#[rustfmt::skip]
const BELIEVED: &[&str] = &[
    "7z", "aac", "aif", "aiff", "apk", "apng", "atom", "avi", "avif", "bmp", "bz2", "cab", "cjs", "csh", "cur", "deb",
    "dmg", "doc", "docx", "dtd", "ear", "eot", "epub", "flac", "flv", "geojson", "gif", "gpx", "gz", "heic", "heif",
    "ico", "iso", "jar", "jfif", "jpe", "jpeg", "jpg", "js", "json", "json5", "jsonld", "jxl", "kml", "latex", "m4a",
    "m4v", "map", "mathml", "mid", "midi", "mjs", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "odg", "odp",
    "ods", "odt", "oga", "ogg", "ogv", "opus", "otf", "pdf", "php", "png", "ppt", "pptx", "psd", "rar", "rdf", "rpm",
    "rss", "rtf", "sh", "sql", "svg", "svgz", "swf", "tar", "tex", "tgz", "tif", "tiff", "topojson", "ttc", "ttf",
    "war", "wasm", "wav", "weba", "webm", "webmanifest", "webp", "wmv", "woff", "woff2", "wsdl", "xhtml", "xls",
    "xlsx", "xml", "xsd", "xsl", "xslt", "xz", "zip", "zst",
];

/// Extensions of texts that the table does not know, or knows as something else.
#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "ac", "ada", "adb", "adoc", "ads", "agda", "al", "am", "applescript", "arb", "as", "asc", "asciidoc", "asm",
    "astro", "avdl", "avsc", "awk", "babelrc", "bash", "bashrc", "bat", "bats", "bazel", "bib", "bicep", "bzl",
    "cairo", "cfg", "cl", "clj", "cljc", "cljs", "cls", "cmake", "cmd", "cnf", "cob", "coffee", "cr", "cs", "csproj",
    "cu", "cue", "cuh", "cypher", "d", "dart", "dhall", "do", "dockerfile", "dockerignore", "dot", "editorconfig",
    "edn", "ejs", "el", "elm", "env", "erb", "erl", "eslintrc", "ex", "exs", "fish", "fnl", "fs", "fsi", "fsproj",
    "fsx", "gd", "gemspec", "gitattributes", "gitignore", "gitmodules", "gleam", "glsl", "go", "gql", "gradle",
    "graphql", "graphqls", "groovy", "gv", "haml", "hbs", "hcl", "heex", "hlsl", "hrl", "hs", "http", "hx", "idl",
    "idr", "inl", "ino", "ipp", "ixx", "j2", "jade", "java", "jinja", "jinja2", "jl", "jsonc", "jsonl", "jsonnet",
    "jsx", "just", "k", "ksh", "kt", "kts", "lagda", "lean", "leex", "less", "lhs", "libsonnet", "liquid", "lisp",
    "lock", "log", "ls", "lsp", "lua", "m", "m4", "mak", "makefile", "mdx", "meson", "metal", "mk", "ml", "mli",
    "mll", "mly", "mm", "mmd", "mod", "mojo", "move", "mustache", "ndjson", "nim", "nimble", "ninja", "nix", "njk",
    "nomad", "npmrc", "nu", "odin", "opam", "org", "pas", "patch", "pegjs", "php3", "php4", "php5", "phps", "pl",
    "plist", "pm", "po", "pot", "pp", "prettierrc", "pri", "prisma", "pro", "proj", "prolog", "properties", "props",
    "proto", "ps1", "psd1", "psm1", "pub", "pug", "puml", "purs", "pxd", "pxi", "pyi", "pyx", "qml", "r", "rake",
    "raku", "rakumod", "razor", "rb", "re", "rego", "rei", "res", "resx", "rkt", "rmd", "rnw", "ron", "rst", "ru",
    "sass", "sbt", "sc", "scala", "scd", "scm", "scss", "service", "sln", "smali", "sml", "snap", "sol", "sparql",
    "spec", "srt", "ss", "st", "star", "styl", "sum", "sv", "svelte", "svh", "swift", "t", "targets", "tcl", "tcsh",
    "template", "tf", "tfvars", "thrift", "tla", "tmpl", "toml", "tpl", "twig", "typ", "v", "vala", "vb", "vbproj",
    "vbs", "vcxproj", "verilog", "vert", "vh", "vhd", "vhdl", "vim", "vue", "vy", "wat", "wgsl", "wit", "work", "wxs",
    "x", "xaml", "xq", "xquery", "yara", "yy", "z3", "zig", "zsh", "zshrc",
];

/// Names of texts without an extension.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "AUTHORS", "BUILD", "Brewfile", "CHANGELOG", "CHANGES", "CODEOWNERS", "CONTRIBUTING", "CONTRIBUTORS", "COPYING",
    "Caddyfile", "Containerfile", "Dockerfile", "Earthfile", "Fastfile", "GNUmakefile", "Gemfile", "Guardfile",
    "HISTORY", "INSTALL", "Jenkinsfile", "Justfile", "LICENCE", "LICENSE", "MAINTAINERS", "Makefile", "NEWS",
    "NOTICE", "Podfile", "Procfile", "README", "Rakefile", "SConscript", "SConstruct", "SECURITY", "THANKS",
    "Tiltfile", "VERSION", "Vagrantfile", "WORKSPACE", "configure", "gradlew", "justfile", "makefile",
];

/// The media type by the name alone; `None` if the name is unknown or ambiguous.
pub fn by_name(path: &[u8]) -> Option<&'static str> {
    let name = String::from_utf8_lossy(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let Some((_, extension)) = name.rsplit_once('.') else {
        return NAMES.binary_search(&&*name).is_ok().then_some(TEXT);
    };
    let extension = extension.to_ascii_lowercase();
    match &*extension {
        "ts" | "mts" | "cts" | "tsx" => Some("text/x-typescript"),
        "diff" | "patch" => Some("text/x-diff"),
        "ipynb" => Some("application/x-ipynb+json"),
        known if TEXTS.binary_search(&known).is_ok() => {
            Some(guess(known).filter(|guess| guess.starts_with("text/")).unwrap_or(TEXT))
        }
        other => {
            guess(other).filter(|guess| guess.starts_with("text/") || BELIEVED.binary_search(&other).is_ok())
        }
    }
}

/// The media type of a file that was read.
pub fn mime_type(path: &[u8], bytes: &[u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text_type(path, text),
        Err(_) => bytes_type(path, bytes),
    }
}

/// The media type of a file that was read and is UTF-8.
pub fn text_type(path: &[u8], text: &str) -> &'static str {
    let bytes = text.as_bytes();
    if memchr::memchr(0, bytes).is_some() {
        return bytes_type(path, bytes);
    }
    // The first letters of a text may look like those of another format.
    let is_sure = |found: &&str| is_textual(found) || *found == "application/pdf";
    let textual = by_name(path).filter(|named| is_textual(named));
    textual.or_else(|| found_type(bytes).filter(is_sure)).unwrap_or(TEXT)
}

/// The media type of a file that was read, and is not UTF-8 or has a NUL.
pub fn bytes_type(path: &[u8], bytes: &[u8]) -> &'static str {
    let named = by_name(path);
    if let Some(named) = named.filter(|named| !is_textual(named)) {
        return named;
    }
    let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    // A text may be in another encoding.
    let encoded = named.filter(|_| is_wide || memchr::memchr(0, bytes).is_none());
    found_type(bytes).filter(|found| !is_textual(found)).or(encoded).unwrap_or(BYTES)
}

/// The media type by the first bytes of a file.
fn found_type(bytes: &[u8]) -> Option<&'static str> {
    infer::get(bytes).map(|kind| kind.mime_type())
}

/// The media type from the table of extensions.
fn guess(extension: &str) -> Option<&'static str> {
    mime_guess::from_ext(extension).first_raw().filter(|guess| *guess != BYTES)
}

/// Whether contents of this type are text.
fn is_textual(mime_type: &str) -> bool {
    const TEXTUAL: &[&str] = &[
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/json5",
        "application/rtf",
        "application/sql",
        "application/x-csh",
        "application/x-httpd-php",
        "application/x-javascript",
        "application/x-latex",
        "application/x-php",
        "application/x-sh",
        "application/x-sql",
        "application/x-tex",
        "application/xml",
        "application/xml-dtd",
    ];
    mime_type.starts_with("text/")
        || mime_type.ends_with("+xml")
        || mime_type.ends_with("+json")
        || TEXTUAL.contains(&mime_type)
}

/// The importance of a file: files that introduce or describe their directory come first.
pub fn priority(path: &[u8]) -> Option<f64> {
    const MANIFESTS: [&str; 12] = [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "composer.json",
        "Gemfile",
        "CMakeLists.txt",
        "Makefile",
        "Dockerfile",
        "AGENTS.md",
    ];
    let depth = path.iter().filter(|byte| **byte == b'/').count();
    let name = std::str::from_utf8(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).ok()?;
    let is_introduction = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("readme"));
    match (is_introduction, MANIFESTS.contains(&name)) {
        (true, _) => Some(if depth == 0 { 0.9 } else { 0.7 }),
        (_, true) => Some(if depth == 0 { 0.8 } else { 0.6 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-01: by name, by contents, and neither.
    #[test]
    fn media_types() {
        for (path, bytes, expected) in [
            (&b"a/main.rs"[..], &b"fn"[..], "text/x-rust"),
            (b"x.md", b"", "text/markdown"),
            (b"x.ts", b"", "text/x-typescript"),
            (b"x.ts", b"\x47\x40\x00\x10\0\0", "application/octet-stream"),
            (b"picture", b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"picture.png", b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"picture.png", b"to be drawn", "text/plain"),
            (b"picture.svg", b"<svg/>", "image/svg+xml"),
            (b"paper.pdf", b"%PDF-1.4\n", "application/pdf"),
            (b"LICENSE", b"text", "text/plain"),
            (b"LICENSE", b"BM is how a bitmap begins", "text/plain"),
            (b"data", b"\xff\x00", "application/octet-stream"),
            (b"data.json", b"{}", "application/json"),
            (b"latin.txt", b"caf\xe9", "text/plain"),
            (b"key.pub", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "application/octet-stream"),
            (b"Main.class", b"\xca\xfe\xba\xbe\0\0\0\x34", "application/java-vm"),
            (b"archive.tar", b"name\0\0\0", "application/x-tar"),
        ] {
            let found = mime_type(path, bytes);
            // Of some bytes, what the library calls them does not matter here.
            let is_bytes = expected == BYTES || expected == "application/java-vm";
            let shown = String::from_utf8_lossy(path);
            assert!(found == expected || is_bytes && !is_textual(found), "{shown}: {found}");
        }
    }

    // S-01: whatever the extension, a text is called a text, and the name alone calls nothing text that the table calls
    // something else, unless a program has such files.
    #[test]
    fn no_text_is_called_a_video() {
        let extensions = (1..=4).flat_map(all_of);
        let mut known = 0;
        for extension in extensions.chain(TEXTS.iter().chain(BELIEVED).map(|own| (*own).to_owned())) {
            let Some(guess) = guess(&extension) else { continue };
            known += 1;
            let path = format!("dir/name.{extension}");
            let read = mime_type(path.as_bytes(), b"plain words\n");
            assert!(is_textual(read), "{path} is read as {read}");
            let listed = by_name(path.as_bytes());
            assert_ne!(listed, Some(BYTES), "{path}");
            let is_kept = listed.is_none_or(|listed| listed == guess || is_textual(listed));
            assert!(is_kept, "{path} is listed as {listed:?}");
        }
        assert!(known > 800, "{known}");
    }

    // S-01: what is searched is in order.
    #[test]
    fn the_lists_are_sorted() {
        for list in [BELIEVED, TEXTS, NAMES] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    // S-01: the files of programs are texts by name, or have no type by name.
    #[test]
    fn files_of_programs() {
        for name in [
            "go.mod",
            "notes.org",
            "graph.dot",
            "messages.pot",
            "queries.scm",
            "configure.ac",
            "guide.asc",
            "id.pub",
            "a.st",
            "a.sc",
            "a.tpl",
            "a.vhd",
            "a.cu",
            "a.z3",
            "a.mmd",
            "a.bat",
            "Main.java",
            "main.go",
            "a.rb",
            "a.kt",
            "a.swift",
            "a.scala",
            "a.clj",
            "a.jl",
            "a.graphql",
            "a.proto",
            "a.diff",
            "a.patch",
            "a.vue",
            "a.svelte",
            "a.tf",
            "a.hs",
            "a.ex",
            "a.mdx",
            "a.ipynb",
            "a.jsonc",
            "Makefile",
            "GO.MOD",
        ] {
            assert!(
                by_name(name.as_bytes()).is_some_and(is_textual),
                "{name}: {:?}",
                by_name(name.as_bytes())
            );
        }
        for name in ["a.bin", "a.dat", "a.class", "a.exe", "a.o", "program", "a.unknown", "a.res2"] {
            assert_eq!(by_name(name.as_bytes()), None, "{name}");
        }
        for name in ["a.png", "a.PNG", "a.mp4", "a.mp3", "a.woff2", "a.docx", "a.zip"] {
            assert!(by_name(name.as_bytes()).is_some_and(|found| !is_textual(found)), "{name}");
        }
    }

    /// All texts of this length that may be extensions.
    fn all_of(length: u32) -> impl Iterator<Item = String> {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let all = LETTERS.len();
        (0..all.pow(length)).map(move |number| {
            let letter = |at| char::from(LETTERS[number / all.pow(at) % all]);
            (0..length).map(letter).collect()
        })
    }
}
