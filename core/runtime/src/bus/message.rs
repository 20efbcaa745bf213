//! Messages of the bus: some changes of one process as JSON, sealed for the processes that share its keys and name.
//!
//! Law: a message never exceeds its limit. One that opens but is not understood, as from a later version, counts as a loss.

use super::MESSAGE_BYTES;
use super::queue::WaitingChanges;
use mcp_resources_engine::engine::SharedChange;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::seal::{Seal, SealKey};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const PURPOSE: &str = "bus";
/// Maximum size of a message before it is sealed: sealing adds 28 bytes, and then a third.
const PLAIN: usize = MESSAGE_BYTES / 4 * 3 - 64;
/// Room for the members around the changes.
const HEAD: usize = 256;
/// Maximum number of changes in a message that is opened: one of this version cannot have more.
const CHANGES: usize = PLAIN / 8;

/// The random number of a process, as text.
pub(super) type Origin = Box<str>;

/// Seals and opens the messages of one server.
pub(super) struct MessageSeal {
    seal: Seal,
    server: Box<str>,
}

/// A message that was opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenedMessage {
    pub(super) origin: Origin,
    /// Counts the messages of its origin, from 1.
    pub(super) sequence: u64,
    /// When it was sealed, in ms since 1970.
    pub(super) unix: Millis,
    /// Whether its origin has dropped changes, or it has some that are unknown here.
    pub(super) has_lost: bool,
    pub(super) changes: Vec<SharedChange>,
}

#[derive(Serialize, Deserialize)]
struct MessageText<'m> {
    #[serde(borrow)]
    origin: Cow<'m, str>,
    sequence: u64,
    unix: u64,
    lost: bool,
    #[serde(borrow)]
    changes: Vec<ChangeText<'m>>,
}

#[derive(Serialize, Deserialize)]
struct ChangeText<'m> {
    #[serde(borrow)]
    kind: Cow<'m, str>,
    /// The URI, the names of lists, or the principal.
    #[serde(borrow)]
    of: Cow<'m, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    principal: Option<Cow<'m, str>>,
}

impl MessageSeal {
    /// `None` without a key.
    pub(super) fn new(keys: &[SealKey], server: &str) -> Option<Self> {
        let (first, older) = keys.split_first()?;
        Some(Self { seal: Seal::new(first, older), server: server.into() })
    }

    /// Seals all changes, in as many messages as they need, numbered from `sequence` on.
    pub(super) fn seal(
        &self,
        origin: &str,
        sequence: u64,
        unix: Millis,
        waiting: &WaitingChanges,
    ) -> Vec<String> {
        let mut batches = vec![Vec::new()];
        let mut size = HEAD;
        let mut lost = waiting.has_lost;
        for change in &waiting.changes {
            let text = ChangeText::from_change(change);
            let length = serde_json::to_vec(&text).map_or(usize::MAX, |text| text.len() + 1);
            if length > PLAIN - HEAD {
                // A URI of nearly 48 KiB: the others announce everything instead.
                lost = true;
                continue;
            }
            if size + length > PLAIN {
                batches.push(Vec::new());
                size = HEAD;
            }
            size += length;
            if let Some(batch) = batches.last_mut() {
                batch.push(text);
            }
        }
        let numbered = batches.into_iter().zip(sequence..);
        let sealed = numbered.filter_map(|(changes, sequence)| {
            let message = MessageText { origin: origin.into(), sequence, unix, lost, changes };
            let plain = serde_json::to_vec(&message).ok()?;
            self.seal.seal(PURPOSE, &[self.server.as_bytes()], &plain).ok()
        });
        sealed.collect()
    }

    /// Opens a message. `None` for everything that no process with these keys and this name has sealed.
    pub(super) fn open(&self, message: &[u8]) -> Option<OpenedMessage> {
        let text = std::str::from_utf8(message).ok().filter(|text| text.len() <= MESSAGE_BYTES)?;
        let plain = self.seal.open(PURPOSE, &[self.server.as_bytes()], text)?;
        let message: MessageText<'_> = serde_json::from_slice(&plain).ok()?;
        let given = message.changes.len();
        let changes: Vec<_> =
            message.changes.into_iter().take(CHANGES).filter_map(ChangeText::into_change).collect();
        Some(OpenedMessage {
            origin: message.origin.into(),
            sequence: message.sequence,
            unix: message.unix,
            has_lost: message.lost || changes.len() < given,
            changes,
        })
    }
}

impl<'m> ChangeText<'m> {
    fn from_change(change: &'m SharedChange) -> Self {
        let (kind, of, principal): (_, Cow<'m, str>, _) = match change {
            SharedChange::Updated { uri, principal } => ("updated", (&**uri).into(), principal.as_deref()),
            SharedChange::Lists { kinds, principal } => {
                ("lists", kinds.words().collect::<Vec<_>>().join(" ").into(), principal.as_deref())
            }
            SharedChange::Revoked { principal } => ("revoked", (&**principal).into(), None),
            SharedChange::Regranted { principal } => ("regranted", (&**principal).into(), None),
            // A kind that is added to the engine needs a line here; until then the others announce everything.
            _ => ("unknown", "".into(), None),
        };
        Self { kind: kind.into(), of, principal: principal.map(Into::into) }
    }

    /// `None` for a kind that this version does not know.
    fn into_change(self) -> Option<SharedChange> {
        let principal = self.principal.map(Into::into);
        match &*self.kind {
            "updated" => Some(SharedChange::Updated { uri: self.of.into(), principal }),
            "lists" => {
                let mut words = self.of.split(' ').map(ListKinds::parse);
                let kinds = words.try_fold(ListKinds::NONE, |all, kind| Some(all | kind?))?;
                Some(SharedChange::Lists { kinds, principal })
            }
            "revoked" => Some(SharedChange::Revoked { principal: self.of.into() }),
            "regranted" => Some(SharedChange::Regranted { principal: self.of.into() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(secret: &str, server: &str) -> MessageSeal {
        MessageSeal::new(&[SealKey::from_secret(secret.as_bytes()).unwrap()], server).unwrap()
    }

    fn waiting(changes: impl IntoIterator<Item = SharedChange>) -> WaitingChanges {
        WaitingChanges { changes: changes.into_iter().collect(), has_lost: false }
    }

    fn updated(uri: String) -> SharedChange {
        SharedChange::Updated { uri: uri.into(), principal: None }
    }

    #[test]
    fn every_change_comes_back() {
        let ours = seal("a secret of sixteen", "notes");
        let changes = [
            updated("note://\u{e4}\"\\".into()),
            SharedChange::Updated { uri: "note://b".into(), principal: Some("ada".into()) },
            SharedChange::Lists { kinds: ListKinds::RESOURCES | ListKinds::PROMPTS, principal: None },
            SharedChange::Revoked { principal: "eve".into() },
            SharedChange::Regranted { principal: "eve".into() },
        ];
        let sealed = ours.seal("me", 7, 99, &waiting(changes.clone()));
        assert_eq!(sealed.len(), 1);
        let opened = ours.open(sealed[0].as_bytes()).unwrap();
        assert_eq!((&*opened.origin, opened.sequence, opened.unix, opened.has_lost), ("me", 7, 99, false));
        assert_eq!(opened.changes.into_iter().collect::<std::collections::HashSet<_>>(), changes.into());
        assert!(!sealed[0].contains("note"));
    }

    /// Another server, another key, a changed or foreign entry: nothing opens. An older key still does.
    #[test]
    fn only_our_messages_open() {
        let ours = seal("a secret of sixteen", "notes");
        let text = ours.seal("me", 1, 0, &waiting([updated("note://a".into())])).remove(0);
        assert!(seal("a secret of sixteen", "other").open(text.as_bytes()).is_none());
        assert!(seal("another secret of sixteen", "notes").open(text.as_bytes()).is_none());
        let keys = ["a new secret of ours", "a secret of sixteen"]
            .map(|key| SealKey::from_secret(key.as_bytes()).unwrap());
        assert!(MessageSeal::new(&keys, "notes").unwrap().open(text.as_bytes()).is_some());
        for foreign in ["", "v1.", "PING", "{\"origin\":\"x\"}", &text[..text.len() - 1]] {
            assert!(ours.open(foreign.as_bytes()).is_none(), "{foreign}");
        }
        assert!(ours.open(b"\xff\xfe").is_none());
        assert!(ours.open(&vec![b'A'; 1 << 20]).is_none());
        assert!(MessageSeal::new(&[], "notes").is_none());
    }

    #[test]
    fn many_changes_need_several_messages_and_each_has_its_size() {
        let ours = seal("a secret of sixteen", "notes");
        let uris: Vec<String> =
            (0..5_000).map(|number| format!("note://{number}/{}", "x".repeat(60))).collect();
        let sealed = ours.seal("me", 3, 0, &waiting(uris.iter().cloned().map(updated)));
        assert!(sealed.len() > 5 && sealed.iter().all(|text| text.len() <= MESSAGE_BYTES));
        let opened: Vec<_> = sealed.iter().map(|text| ours.open(text.as_bytes()).unwrap()).collect();
        assert!(
            opened
                .iter()
                .zip(3..)
                .all(|(message, sequence)| message.sequence == sequence && !message.has_lost)
        );
        assert_eq!(opened.iter().map(|message| message.changes.len()).sum::<usize>(), uris.len());
        let huge = ours.seal("me", 1, 0, &waiting([updated(format!("note://{}", "x".repeat(60_000)))]));
        assert!(ours.open(huge[0].as_bytes()).unwrap().has_lost);
    }

    /// A change of a later version is a loss, not an error.
    #[test]
    fn an_unknown_change_is_a_loss() {
        let ours = seal("a secret of sixteen", "notes");
        let plain = br#"{"origin":"o","sequence":1,"unix":5,"lost":false,"more":1,"changes":[{"kind":"later","of":"x"}]}"#;
        let text = ours.seal.seal(PURPOSE, &[b"notes"], plain).unwrap();
        let opened = ours.open(text.as_bytes()).unwrap();
        assert!(opened.has_lost && opened.changes.is_empty());
        let text = ours.seal.seal(PURPOSE, &[b"notes"], b"[]").unwrap();
        assert!(ours.open(text.as_bytes()).is_none());
    }
}
