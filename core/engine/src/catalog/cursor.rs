//! The opaque cursor that says where the next page of a list begins.
//!
//! Law: a cursor holds a key, never an offset, and the server keeps no state for it. It opens in any process that has
//! the same key, also after a restart, and only for the list, server and principal it was made for.

use crate::catalog::sources::SourceKey;
use crate::seal::{Seal, SealError, SealKey};

/// The position in a list at which a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The list it belongs to.
    pub list: ListKind,
    /// The part of the list that it continues.
    pub position: CursorPosition,
    /// The key of the last item examined in that part: a canonical URI, the text of a template, or a name. Empty at the
    /// beginning of the part.
    pub after: String,
    /// Whether clients may share the pages of this walk; all of them then show only what every principal may see
    ///.
    pub shared: bool,
}

/// A list that has pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorPosition {
    /// The registered resources and templates.
    Catalog,
    /// The items that a list source returns.
    Source {
        /// The source.
        source: SourceKey,
        /// The source's own cursor. `None` at the beginning, or if the source has no pages.
        cursor: Option<String>,
    },
}

/// The context that a cursor is bound to. The cursor does not contain it.
#[derive(Clone, Copy, Debug)]
pub struct CursorScope<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The identity of the principal.
    pub principal: &'a str,
}

impl Cursor {
    /// Maximum length of a key in bytes. Registration refuses longer keys, because no cursor could continue after them.
    pub const MAX_KEY: usize = 32 * 1024;

    const PURPOSE: &str = "cursor";
    const VERSION: u8 = 1;

    /// Flag in the byte that encodes the part of the list: the walk is shared.
    const SHARED: u8 = 0x10;
    /// Flag in the same byte: the source has no template.
    const WITHOUT_TEMPLATE: u8 = 0x20;

    /// The key for cursors where the runtime has neither a key nor randomness. It protects a cursor against corruption
    /// only: it hides nothing and proves no origin.
    pub fn derived_key(server: &str) -> SealKey {
        SealKey::derived(&format!("cursor {server}"))
    }

    /// Returns the text for `nextCursor`. Deterministic: the same cursor gives the same text.
    ///
    /// # Errors
    /// [`SealError::TooLong`] if the cursor returned by a list source is too long.
    pub fn seal(&self, seal: &Seal, scope: CursorScope<'_>) -> Result<String, SealError> {
        scope.with_context(self.list, |context| seal.seal(Self::PURPOSE, context, &self.encode()))
    }

    /// Opens the text of a `cursor` param. `None` if it was not made for this list in this scope.
    pub fn open(text: &str, list: ListKind, seal: &Seal, scope: CursorScope<'_>) -> Option<Self> {
        let plain = scope.with_context(list, |context| seal.open(Self::PURPOSE, context, text))?;
        Self::decode(list, &plain)
    }

    fn encode(&self) -> Vec<u8> {
        let mut plain = vec![Self::VERSION];
        let shared = if self.shared { Self::SHARED } else { 0 };
        match &self.position {
            CursorPosition::Catalog => plain.push(shared),
            CursorPosition::Source { source, cursor } => {
                let (kind, name) = match source {
                    SourceKey::Template(text) => (0, text),
                    SourceKey::Key(key) => (Self::WITHOUT_TEMPLATE, key),
                };
                plain.push(kind | if cursor.is_some() { 2 } else { 1 } | shared);
                put(name, &mut plain);
                cursor.iter().for_each(|cursor| put(cursor, &mut plain));
            }
        }
        plain.extend_from_slice(self.after.as_bytes());
        plain
    }

    fn decode(list: ListKind, plain: &[u8]) -> Option<Self> {
        let [Self::VERSION, position, rest @ ..] = plain else { return None };
        let mut rest = rest;
        let shared = position & Self::SHARED != 0;
        let has_cursor = match position & !(Self::SHARED | Self::WITHOUT_TEMPLATE) {
            0 => None,
            1 => Some(false),
            2 => Some(true),
            _ => return None,
        };
        let position = match has_cursor {
            None => CursorPosition::Catalog,
            Some(has_cursor) => {
                let is_key = position & Self::WITHOUT_TEMPLATE != 0;
                let name = take(&mut rest)?;
                let source = if is_key { SourceKey::Key(name) } else { SourceKey::Template(name) };
                let cursor = if has_cursor { Some(take(&mut rest)?) } else { None };
                CursorPosition::Source { source, cursor }
            }
        };
        Some(Self { list, position, after: text(rest)?, shared })
    }
}

impl CursorScope<'_> {
    /// Calls `with` with the authenticated context that a cursor is sealed and opened in.
    fn with_context<T>(self, list: ListKind, with: impl FnOnce(&[&[u8]]) -> T) -> T {
        let list: &[u8] = match list {
            ListKind::Resources => b"resources",
            ListKind::Templates => b"templates",
            ListKind::Tools => b"tools",
            ListKind::Prompts => b"prompts",
        };
        with(&[list, self.server.as_bytes(), self.principal.as_bytes()])
    }
}

/// Appends `text` with its length in front. Lengths beyond four bytes exceed by far the size that can be sealed.
fn put(text: &str, plain: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    plain.extend_from_slice(&length.to_be_bytes());
    plain.extend_from_slice(text.as_bytes());
}

fn take(rest: &mut &[u8]) -> Option<String> {
    let (length, tail) = rest.split_first_chunk()?;
    let (head, tail) = tail.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    *rest = tail;
    text(head)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCOPE: CursorScope<'_> = CursorScope { server: "docs", principal: "" };

    fn seal() -> Seal {
        Seal::new(&Cursor::derived_key("docs"), &[])
    }

    fn beginning(after: String) -> Cursor {
        Cursor { list: ListKind::Resources, position: CursorPosition::Catalog, after, shared: false }
    }

    fn sealed(cursor: &Cursor) -> String {
        cursor.seal(&seal(), SCOPE).unwrap()
    }

    fn any_cursor() -> impl Strategy<Value = Cursor> {
        let list = prop_oneof![
            Just(ListKind::Resources),
            Just(ListKind::Templates),
            Just(ListKind::Tools),
            Just(ListKind::Prompts)
        ];
        let source = ("\\PC*", proptest::option::of("\\PC*"));
        let position = prop_oneof![
            Just(CursorPosition::Catalog),
            (any::<bool>(), source).prop_map(|(is_key, (name, cursor))| {
                let source = if is_key { SourceKey::Key(name) } else { SourceKey::Template(name) };
                CursorPosition::Source { source, cursor }
            }),
        ];
        (list, position, "\\PC*", any::<bool>()).prop_map(|(list, position, after, shared)| Cursor {
            list,
            position,
            after,
            shared,
        })
    }

    proptest! {
        // what is sealed opens after a restart with the same key.
        #[test]
        fn sealed_cursors_open(cursor in any_cursor()) {
            let text = sealed(&cursor);
            prop_assert_eq!(Cursor::open(&text, cursor.list, &seal(), SCOPE), Some(cursor));
        }

        // a payload that opens may still be malformed.
        #[test]
        fn any_payload_is_a_cursor_or_none(plain in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(cursor) = Cursor::decode(ListKind::Resources, &plain) {
                prop_assert_eq!(cursor.encode(), plain);
            }
        }
    }

    // truncated, altered, empty, of another list.
    #[test]
    fn other_texts_do_not_open() {
        let cursor = beginning("a:b".into());
        let text = sealed(&cursor);
        assert_eq!(Cursor::open(&text, ListKind::Templates, &seal(), SCOPE), None);
        for end in 0..text.len() {
            assert_eq!(Cursor::open(&text[..end], ListKind::Resources, &seal(), SCOPE), None, "{end}");
        }
        for garbage in ["garbage", "eyJvIjoxMDB9", "v1."] {
            assert_eq!(Cursor::open(garbage, ListKind::Resources, &seal(), SCOPE), None);
        }
    }

    // the cursor of one principal does not open for another, nor on another server.
    #[test]
    fn a_cursor_is_bound_to_principal_and_server() {
        let cursor = beginning("a:b".into());
        let alice = CursorScope { principal: "alice", ..SCOPE };
        let text = cursor.seal(&seal(), alice).unwrap();
        assert_eq!(Cursor::open(&text, ListKind::Resources, &seal(), alice), Some(cursor));
        for other in
            [CursorScope { principal: "bob", ..SCOPE }, SCOPE, CursorScope { server: "other", ..alice }]
        {
            assert_eq!(Cursor::open(&text, ListKind::Resources, &seal(), other), None);
        }
        let other_key = Seal::new(&Cursor::derived_key("other"), &[]);
        assert_eq!(Cursor::open(&text, ListKind::Resources, &other_key, alice), None);
    }

    #[test]
    fn the_longest_key_can_be_sealed() {
        let source = SourceKey::Template("x".repeat(8 << 10));
        let position = CursorPosition::Source { source, cursor: None };
        let cursor = Cursor { position, ..beginning("y".repeat(Cursor::MAX_KEY)) };
        assert_eq!(Cursor::open(&sealed(&cursor), ListKind::Resources, &seal(), SCOPE), Some(cursor));
    }
}
