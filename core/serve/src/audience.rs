//! `for` of the entries: sources that exist for some people only, as rules of the policy.
//!
//! Law: a principal that `for` of an entry does not name sees none of the entry's URIs. If all entries of a kind are for
//! others, it does not see the indexes of that kind either. The rules are those of the guard, so lists, templates, reads,
//! completion, subscriptions and tools follow.

use crate::document::ServeDocument;
use mcp_resources_engine::guard::{Policy, ScopeList};
use mcp_resources_providers::registry::DeclaredUris;

/// The policy of a document with the rules for its sources: each kind, with the URIs of its entries.
///
/// # Errors
/// One sentence that names the file and the entry.
pub(crate) fn policy<'s>(
    document: &ServeDocument,
    mut policy: Policy,
    sources: impl Iterator<Item = (&'s str, &'s [DeclaredUris])>,
) -> Result<Policy, String> {
    for (kind, uris) in sources {
        let audiences = document.audiences(kind);
        let Some(first) = audiences.iter().position(Option::is_some) else { continue };
        let mut require = |number: usize, glob: String, groups: Vec<String>| match policy
            .groups
            .insert(glob.clone(), ScopeList(groups))
        {
            None => Ok(()),
            Some(_) => Err(document.named_entry(
                kind,
                number,
                format!(".for: guard.groups has {glob:?} too; write the groups in one of the two places"),
            )),
        };
        // The indexes of a kind are for everybody who may know one of its entries.
        let all: Option<Vec<&[String]>> = audiences.iter().copied().collect();
        if let Some(all) = all {
            let mut groups = all.concat();
            groups.sort_unstable();
            groups.dedup();
            let mut schemes: Vec<&String> = uris.iter().flat_map(|uris| &uris.schemes).collect();
            schemes.sort_unstable();
            schemes.dedup();
            if schemes.is_empty() {
                let reason = format!(
                    ".for: the URIs of {kind} are not known before its servers are asked; write rules in guard.groups"
                );
                return Err(document.named_entry(kind, first, reason));
            }
            for scheme in schemes {
                require(first, format!("{scheme}:**"), groups.clone())?;
            }
        }
        if audiences.windows(2).all(|pair| pair[0] == pair[1]) {
            continue;
        }
        for (number, (audience, uris)) in audiences.iter().zip(uris).enumerate() {
            let Some(groups) = audience else { continue };
            if uris.places.is_empty() {
                let reason = format!(
                    ".for: the URIs of entries of {kind} cannot be told apart; give all of them the same for"
                );
                return Err(document.named_entry(kind, number, reason));
            }
            for place in &uris.places {
                let place = escaped(place);
                require(number, format!("{place}/**"), groups.to_vec())?;
                require(number, place, groups.to_vec())?;
            }
        }
    }
    Ok(policy)
}

/// A URI as a glob that matches it alone.
fn escaped(uri: &str) -> String {
    uri.replace('*', "\\*").replace('?', "\\?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn groups(providers: Value) -> Result<Value, String> {
        let document = ServeDocument::parse(json!({ "providers": providers }), "test")?;
        let uris = |kind: &str| -> Vec<DeclaredUris> {
            let entries = document.declared().filter(|(own, _)| *own == kind).enumerate();
            let uris = |number: usize| DeclaredUris {
                places: if kind == "clock" { Vec::new() } else { vec![format!("{kind}:///{number}*")] },
                schemes: vec![kind.into()],
            };
            entries.map(|(number, _)| uris(number)).collect()
        };
        let kinds = ["git", "clock"].map(|kind| (kind, uris(kind)));
        let policy =
            policy(&document, Policy::default(), kinds.iter().map(|(kind, uris)| (*kind, uris.as_slice())))?;
        let rules = policy.groups.into_iter().map(|(glob, groups)| (glob, groups.0.into()));
        Ok(Value::Object(rules.collect()))
    }

    // S-20: one audience covers the kind, several cover their own URIs, and the kind if all entries have one.
    #[test]
    fn sources_are_for_those_of_their_entries() {
        let entry = |kind: &str, audience: Value| match audience {
            Value::Null => json!({ kind: {} }),
            audience => json!({ kind: {}, "for": audience }),
        };
        let none = Value::Null;
        assert_eq!(groups(json!([entry("git", none.clone())])), Ok(json!({})));
        assert_eq!(groups(json!([entry("git", "a".into())])), Ok(json!({"git:**": ["a"]})));
        assert_eq!(
            groups(json!([entry("git", json!(["a", "b"])), entry("git", none)])),
            Ok(json!({"git:///0\\*": ["a", "b"], "git:///0\\*/**": ["a", "b"]}))
        );
        assert_eq!(
            groups(json!([entry("git", json!("b")), entry("git", json!("a"))])),
            Ok(json!({
                "git:**": ["a", "b"], "git:///0\\*": ["b"], "git:///0\\*/**": ["b"], "git:///1\\*": ["a"],
                "git:///1\\*/**": ["a"],
            }))
        );
        let mixed = groups(json!([entry("clock", json!("a")), entry("clock", Value::Null)])).unwrap_err();
        assert!(mixed.contains("give all of them the same for"), "{mixed}");
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (value, said) in [
            (json!([]), "providers[0].for is empty, so nobody would know the source"),
            (json!(7), "providers[0].for is 7, expected a list of scopes or groups, such as [engineering]"),
            (json!([""]), "providers[0].for is \"\", expected"),
            (json!({"a": 1}), "providers[0].for is an object, expected"),
        ] {
            let error = groups(json!([{"git": {}, "for": value}])).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
