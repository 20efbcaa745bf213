//! Replaces variables in the strings of a configuration: environment variables, names of folders, and files of
//! variables.

use mcp_resources_runtime::transport::document_text;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The sources of variables.
pub struct ExpandScope<'s> {
    folder: &'s Path,
    variable: &'s dyn Fn(&str) -> Option<String>,
}

impl<'s> ExpandScope<'s> {
    /// `folder` is the base of relative paths; `variable` looks up an environment variable.
    pub fn new(folder: &'s Path, variable: &'s dyn Fn(&str) -> Option<String>) -> Self {
        Self { folder, variable }
    }

    /// Replaces each `${…}`. Replacements are not expanded again; `$NAME`, and `${…}` with an invalid name, stay
    /// unchanged.
    ///
    /// # Errors
    /// A sentence with `key` and the name of a variable that is not set.
    pub fn expand(&self, text: &str, key: &str) -> Result<String, String> {
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            whole.push_str(before);
            let Some((inner, behind)) = after.split_once('}') else {
                whole.push_str("${");
                rest = after;
                continue;
            };
            match self.value(inner).map_err(|reason| format!("{key}: {reason}"))? {
                Some(value) => whole.push_str(&value),
                None => whole.extend(["${", inner, "}"]),
            }
            rest = behind;
        }
        whole.push_str(rest);
        match whole.contains('\0') {
            true => Err(format!("{key} contains a zero character, which no process can be given")),
            false => Ok(whole),
        }
    }

    /// The value of `${inner}`; `None` if it is not a valid name.
    fn value(&self, inner: &str) -> Result<Option<String>, String> {
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, text)| (name, Some(text)));
        let project = || {
            let is_hidden = |name: &std::ffi::OsStr| matches!(name.to_str(), Some(".vscode" | ".cursor"));
            match self.folder.file_name().is_some_and(is_hidden) {
                true => self.folder.parent().unwrap_or(self.folder),
                false => self.folder,
            }
        };
        let base =
            || project().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = match name {
            "workspaceFolder" => return Ok(Some(project().display().to_string())),
            "workspaceFolderBasename" => return Ok(Some(base())),
            "pathSeparator" | "/" => return Ok(Some(std::path::MAIN_SEPARATOR.into())),
            "userHome" => "HOME",
            _ => name.strip_prefix("env:").unwrap_or(name),
        };
        if let Some((what @ ("input" | "command" | "config"), _)) = name.split_once(':') {
            return Err(format!(
                "${{{what}:…}} works only in an editor; use an environment variable: ${{NAME}}"
            ));
        }
        if !is_name(name) {
            return Ok(None);
        }
        let value = (self.variable)(name).or_else(|| default.map(str::to_owned));
        let missing = || format!("the variable {name} is not set; set it, or write ${{{name}:-default}}");
        value.map(Some).ok_or_else(missing)
    }

    /// Resolves a path, relative to the configuration's folder.
    pub(super) fn path(&self, text: &str, key: &str) -> Result<PathBuf, String> {
        let text = self.expand(text, key)?;
        match text.strip_prefix("~/").zip((self.variable)("HOME")) {
            Some((rest, home)) => Ok(Path::new(&home).join(rest)),
            None => Ok(self.folder.join(text)),
        }
    }

    /// Reads the variables of a file with lines `NAME=value`. Skips empty lines and those that begin with `#`; removes
    /// `export`, and quotes around a value.
    ///
    /// # Errors
    /// A sentence with `key` if the file cannot be read, or with the number of an invalid line.
    pub(super) fn env_file(&self, path: &str, key: &str) -> Result<BTreeMap<String, String>, String> {
        let path = self.path(path, key)?;
        let text = document_text(&path)
            .map_err(|reason| format!("{key}: {} cannot be read: {reason}", path.display()))?;
        let mut variables = BTreeMap::new();
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.strip_prefix("export ").unwrap_or(line).split_once('=');
            let pair = pair.map(|(name, value)| (name.trim(), unquoted(value.trim())));
            let Some((name, value)) = pair.filter(|(name, value)| is_name(name) && !value.contains('\0'))
            else {
                return Err(format!("{key}: line {number} of {} must be NAME=value", path.display()));
            };
            variables.insert(name.to_owned(), value.to_owned());
        }
        Ok(variables)
    }
}

/// A value without surrounding quotes.
fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Whether a text is a valid name of a variable.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
