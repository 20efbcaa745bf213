//! A URI in normal form, split like templates.

use std::ops::Range;

/// A URI in normal form and its sections.
#[derive(Debug)]
pub(super) struct MatchSubject<'u> {
    pub uri: &'u str,
    /// The end of the path, which starts at 0 and includes scheme and authority.
    pub path_end: usize,
    /// The query, without its `?`.
    pub query: Option<Range<usize>>,
    /// The fragment, with its `#`.
    pub fragment: Option<usize>,
}

impl<'u> MatchSubject<'u> {
    pub(super) fn new(uri: &'u str) -> Self {
        let bytes = uri.as_bytes();
        let Some(path_end) = memchr::memchr2(b'?', b'#', bytes) else {
            return Self { uri, path_end: bytes.len(), query: None, fragment: None };
        };
        if bytes[path_end] == b'#' {
            return Self { uri, path_end, query: None, fragment: Some(path_end) };
        }
        let start = path_end + 1;
        let fragment = memchr::memchr(b'#', &bytes[start..]).map(|length| start + length);
        Self { uri, path_end, query: Some(start..fragment.unwrap_or(bytes.len())), fragment }
    }

    pub(super) fn bytes(&self) -> &'u [u8] {
        self.uri.as_bytes()
    }

    /// Whether it has no query and no fragment.
    pub(super) fn is_path(&self) -> bool {
        self.path_end == self.uri.len()
    }
}
