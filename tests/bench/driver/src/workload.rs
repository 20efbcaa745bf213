//! The workloads: which URI a request reads, and what its answer must hold.

use crate::client::Contents;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The text behind `bench://static`: 96 bytes.
pub(crate) const STATIC_TEXT: &str = include_str!("../../servers/static.txt");

/// The number of bytes of `bench://text1m` and `bench://blob1m`.
const LARGE: usize = 1 << 20;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// W1: `bench://static`, one at a time.
    Static,
    /// W1 over `bench://inline`.
    Inline,
    /// W1 over `bench://const`.
    Constant,
    /// W2: `bench://item/{id}`, 64 in flight.
    Item,
    /// W2 over `bench://aitem/{id}`.
    AsyncItem,
    /// W2 over `bench://iitem/{id}`.
    InlineItem,
    /// W3: `bench://text1m`.
    Text,
    /// W3: `bench://blob1m`.
    Blob,
    /// W6: one subscriber of 10,000 resources, one update of each.
    Updates,
    /// W6: 1,000 subscribers of one resource, over HTTP.
    Subscribers,
    /// W7: `bench://item/{id}` over 8 HTTP connections.
    Http8,
    /// W7: the same over 64.
    Http64,
    /// W7 over `bench://const`, 64 connections.
    HttpConstant,
    /// W9: listeners that wait, then one update.
    Listeners,
}

impl Workload {
    const ALL: [(&'static str, Self); 14] = [
        ("W1", Self::Static),
        ("W1-inline", Self::Inline),
        ("W1-const", Self::Constant),
        ("W2", Self::Item),
        ("W2-async", Self::AsyncItem),
        ("W2-inline", Self::InlineItem),
        ("W3-text", Self::Text),
        ("W3-blob", Self::Blob),
        ("W6", Self::Updates),
        ("W6-many", Self::Subscribers),
        ("W7-8", Self::Http8),
        ("W7-64", Self::Http64),
        ("W7-const", Self::HttpConstant),
        ("W9", Self::Listeners),
    ];

    /// The workload with this name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(other, _)| *other == name);
        found.map(|(_, workload)| *workload).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("no workload {name}; there are {}", names.join(", "))
        })
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, other)| *other == self).map_or("", |(name, _)| name)
    }

    /// One line about it, for the table's heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Static => "read `bench://static`, one at a time",
            Self::Inline => "read `bench://inline`, one at a time",
            Self::Constant => "read `bench://const`, one at a time",
            Self::Item => "read `bench://item/{id}`, 64 in flight",
            Self::AsyncItem => "read `bench://aitem/{id}`, 64 in flight",
            Self::InlineItem => "read `bench://iitem/{id}`, 64 in flight",
            Self::Text => "read `bench://text1m`, one at a time",
            Self::Blob => "read `bench://blob1m`, one at a time",
            Self::Updates => "one subscriber of 10,000 resources, one update of each, one at a time",
            Self::Subscribers => "one update told to 1,000 HTTP listeners",
            Self::Http8 => "read `bench://item/{id}` over 8 HTTP connections",
            Self::Http64 => "read `bench://item/{id}` over 64 HTTP connections",
            Self::HttpConstant => "read `bench://const` over 64 HTTP connections",
            Self::Listeners => "one update told to 10,000 HTTP listeners",
        }
    }

    /// Whether it goes over HTTP.
    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Subscribers | Self::Http8 | Self::Http64 | Self::HttpConstant | Self::Listeners)
    }

    /// Requests in flight; over HTTP, connections.
    pub(crate) fn in_flight(self) -> u64 {
        match self {
            Self::Item | Self::AsyncItem | Self::InlineItem | Self::Http64 | Self::HttpConstant => 64,
            Self::Http8 => 8,
            _ => 1,
        }
    }

    /// Requests of one measurement, or listeners.
    pub(crate) fn requests(self, quick: bool) -> u64 {
        let full = match self {
            Self::Static | Self::Inline | Self::Constant => 20_000,
            Self::Item | Self::AsyncItem | Self::InlineItem => 100_000,
            Self::Text | Self::Blob => 500,
            Self::Http8 | Self::Http64 | Self::HttpConstant => 50_000,
            Self::Updates | Self::Listeners => 10_000,
            Self::Subscribers => 1_000,
        };
        if quick { full / 5 } else { full }
    }

    /// Requests before counting, for a server that needs `warm` of the small ones.
    pub(crate) fn warm(self, warm: u64, quick: bool) -> u64 {
        let warm = if quick { warm / 4 } else { warm };
        if matches!(self, Self::Text | Self::Blob) { 20 } else { warm }
    }

    /// The URI that request number `id` reads.
    pub(crate) fn uri(self, id: u64) -> String {
        match self {
            Self::Static => "bench://static".into(),
            Self::Inline => "bench://inline".into(),
            Self::Constant | Self::HttpConstant => "bench://const".into(),
            Self::Updates | Self::Subscribers | Self::Listeners => "bench://sub/1".into(),
            Self::Item | Self::Http8 | Self::Http64 => format!("bench://item/{id}"),
            Self::AsyncItem => format!("bench://aitem/{id}"),
            Self::InlineItem => format!("bench://iitem/{id}"),
            Self::Text => "bench://text1m".into(),
            Self::Blob => "bench://blob1m".into(),
        }
    }

    /// Whether `contents` is what request number `id` must be answered with.
    pub(crate) fn accepts(self, id: u64, contents: &Contents<'_>) -> bool {
        match self {
            Self::Static | Self::Inline | Self::Constant | Self::HttpConstant => {
                contents.text() == Some(STATIC_TEXT)
            }
            Self::Updates | Self::Subscribers | Self::Listeners => false,
            Self::Item | Self::AsyncItem | Self::InlineItem | Self::Http8 | Self::Http64 => {
                let number = contents.text().and_then(|text| text.strip_prefix("item "));
                number.and_then(|digits| digits.parse().ok()) == Some(id)
            }
            Self::Text => contents.text().is_some_and(|text| Sha256::digest(text) == *TEXT_DIGEST),
            Self::Blob => contents.blob().is_some_and(|blob| blob == *BLOB),
        }
    }
}

static TEXT_DIGEST: LazyLock<sha2::digest::Output<Sha256>> = LazyLock::new(|| Sha256::digest(large_text()));

static BLOB: LazyLock<String> = LazyLock::new(|| {
    let bytes: Vec<u8> = (0..LARGE).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect();
    STANDARD.encode(bytes)
});

/// One character in twenty is a line end, which JSON escapes.
fn large_text() -> String {
    let mut text = "resource contents 1\n".repeat(LARGE / 20 + 1);
    text.truncate(LARGE);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_text_is_96_bytes() {
        assert_eq!(STATIC_TEXT.len(), 96);
    }

    #[test]
    fn names_find_their_workloads() {
        for (name, workload) in Workload::ALL {
            assert_eq!(Workload::parse(name), Ok(workload));
            assert_eq!(workload.name(), name);
        }
    }

    #[test]
    fn only_the_right_item_is_accepted() {
        let contents = Contents::of_text("item 7");
        assert!(Workload::Item.accepts(7, &contents));
        assert!(!Workload::Item.accepts(8, &contents));
        assert!(!Workload::Static.accepts(7, &contents));
    }
}
