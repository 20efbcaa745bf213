//! Decides by their names alone which paths are served: the options `include`, `exclude` and `hidden`, the same for
//! files and git.
//!
//! Law: a path is judged with all its parents: nothing under a hidden or excluded directory is served.

use crate::uri_path::components;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use mcp_resources_engine::option::{OptionError, PathStep};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The compiled options.
#[derive(Debug)]
pub struct Selection {
    hidden: bool,
    exclude: GlobSet,
    include: Option<Include>,
}

/// The included files, and the directories that lead to them.
#[derive(Debug)]
struct Include {
    files: GlobSet,
    directories: GlobSet,
}

impl Selection {
    /// `kind` is the provider's, for errors.
    ///
    /// # Errors
    /// A glob cannot be read.
    pub fn new(
        kind: &str,
        hidden: bool,
        include: &[String],
        exclude: &[String],
    ) -> Result<Self, OptionError> {
        let include = match include {
            [] => None,
            globs => Some(Include {
                files: set(kind, "include", globs.iter().flat_map(|glob| with_descendants(glob)))?,
                directories: set(kind, "include", globs.iter().flat_map(|glob| leading(glob)))?,
            }),
        };
        let exclude = exclude.iter().map(|glob| glob.trim_end_matches('/').to_owned());
        Ok(Self { hidden, exclude: set(kind, "exclude", exclude)?, include })
    }

    /// Whether the entry at `path` is served, judged with the directories above it.
    pub fn admits(&self, path: &[u8], is_dir: bool) -> bool {
        let mut end = 0;
        components(path).all(|name| {
            end += name.len();
            let is_whole = end >= path.len();
            let admitted = self.admits_entry(path.get(..end).unwrap_or_default(), is_dir || !is_whole);
            end += 1;
            admitted
        })
    }

    /// Whether an entry of a directory that is served is served. `path` is the whole one.
    pub fn admits_entry(&self, path: &[u8], is_dir: bool) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if name.starts_with(b".") && !self.hidden {
            return false;
        }
        let own = Path::new(OsStr::from_bytes(path));
        if self.exclude.is_match(own) {
            return false;
        }
        match &self.include {
            None => true,
            Some(include) if is_dir => include.directories.is_match(own) || include.files.is_match(own),
            Some(include) => include.files.is_match(own),
        }
    }
}

fn set(
    kind: &str,
    option: &'static str,
    globs: impl Iterator<Item = String>,
) -> Result<GlobSet, OptionError> {
    let mut builder = GlobSetBuilder::new();
    for text in globs {
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
        builder.add(glob.map_err(|error| {
            let reason =
                format!("{kind}: {option} has the glob {text:?}, which cannot be read: {}", error.kind());
            OptionError::sentence(reason).under(PathStep::Name(option.into()))
        })?);
    }
    builder
        .build()
        .map_err(|_| OptionError::sentence(format!("{kind}: the globs of {option} are too large together")))
}

/// The glob, and one for everything under it if it is the plain name of a directory.
fn with_descendants(glob: &str) -> Vec<String> {
    let plain = glob.trim_end_matches('/');
    let is_plain = !plain.contains(['*', '?', '[', '{', '\\']);
    if is_plain || plain != glob {
        vec![plain.to_owned(), format!("{plain}/**")]
    } else {
        vec![plain.to_owned()]
    }
}

/// The globs of the directories that lead to the matches of a glob.
fn leading(glob: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut so_far = String::new();
    let segments: Vec<&str> = glob.trim_end_matches('/').split('/').collect();
    for (at, segment) in segments.iter().enumerate() {
        if segment.contains("**") || segment.contains(['{', '[']) {
            // What may hold a slash is not taken apart.
            found.push(format!("{so_far}**"));
            return found;
        }
        if at + 1 < segments.len() {
            so_far.push_str(segment);
            found.push(so_far.clone());
            so_far.push('/');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-01, S-02: what is under something hidden or excluded is not served, whatever includes it.
    #[test]
    fn paths_are_judged_with_their_parents() {
        let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        let selection =
            Selection::new("git", false, &globs(&["src/**", "README.md"]), &globs(&["src/private/"]))
                .unwrap();
        for (path, is_dir, expected) in [
            ("src/a/b.rs", false, true),
            ("README.md", false, true),
            ("src", true, true),
            ("src/.env", false, false),
            ("src/.git/config", false, false),
            ("src/private/x", false, false),
            ("LICENSE", false, false),
            ("", true, true),
        ] {
            assert_eq!(selection.admits(path.as_bytes(), is_dir), expected, "{path}");
        }
        let wrong = Selection::new("git", false, &globs(&["a[b"]), &[]).unwrap_err().to_string();
        assert!(wrong.contains("git: include has the glob \"a[b\""), "{wrong}");
    }
}
