//! Vectors of chunks, if the program has an embedding function, and the combination of both rankings.

use std::collections::HashMap;
use std::fmt;

/// The most chunks that are compared with a query one by one.
pub(super) const VECTORS: usize = 100_000;
/// The constant of reciprocal-rank fusion.
const K: f64 = 60.0;

/// Makes a vector of a text, so that texts of like meaning have like vectors. Called on a thread of the provider, where
/// it may block.
pub trait Embedder: fmt::Debug + Send + Sync + 'static {
    /// One vector for each text, all of one length.
    ///
    /// # Errors
    /// Why there are none, for the log.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String>;
}

/// The vectors of some texts. `length` is that of the vectors that there are already.
///
/// # Errors
/// There are none, or they cannot be compared.
pub(super) fn vectors(
    embedder: &dyn Embedder,
    texts: &[&str],
    length: Option<usize>,
) -> Result<Vec<Vec<f32>>, String> {
    let vectors = embedder.embed(texts)?;
    fault(&vectors, texts.len(), length).map_or(Ok(vectors), Err)
}

fn fault(vectors: &[Vec<f32>], texts: usize, length: Option<usize>) -> Option<String> {
    if vectors.len() != texts {
        return Some(format!("{} for {texts} texts", vectors.len()));
    }
    let length = length.or_else(|| vectors.first().map(Vec::len)).unwrap_or_default();
    vectors.iter().find_map(|vector| match vector.len() {
        0 => Some("a vector is empty".to_owned()),
        own if own != length => Some(format!("a vector has {own} numbers, and others have {length}")),
        _ if vector.iter().all(|number| number.is_finite()) => None,
        _ => Some("a vector has a number that is not finite".to_owned()),
    })
}

/// The cosine of the angle between two vectors; 0 if one is empty or they have another length.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    let mut dot = 0.0;
    let mut left = 0.0;
    let mut right = 0.0;
    for (a, b) in one.iter().zip(other) {
        dot += a * b;
        left += a * a;
        right += b * b;
    }
    let length = f32::sqrt(left) * f32::sqrt(right);
    if length > 0.0 && dot.is_finite() { dot / length } else { 0.0 }
}

/// The keys of several orders, best first, with the score of reciprocal-rank fusion.
pub(super) fn fuse(orders: &[Vec<String>]) -> Vec<(String, f64)> {
    let mut scores: HashMap<&str, f64> = HashMap::new();
    for order in orders {
        for (rank, key) in order.iter().enumerate() {
            *scores.entry(key).or_default() += 1.0 / (K + rank as f64 + 1.0);
        }
    }
    let mut fused: Vec<_> = scores.into_iter().map(|(key, score)| (key.to_owned(), score)).collect();
    fused.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-03: vectors that cannot be compared are refused.
    #[test]
    fn vectors_are_checked() {
        let of = |vectors: &[&[f32]], texts, length| {
            let vectors: Vec<_> = vectors.iter().map(|vector| vector.to_vec()).collect();
            fault(&vectors, texts, length).unwrap_or_default()
        };
        assert_eq!(of(&[&[1.0, 0.0], &[0.0, 0.0]], 2, Some(2)), "");
        assert_eq!(of(&[], 0, None), "");
        assert_eq!(of(&[&[1.0]], 2, None), "1 for 2 texts");
        assert_eq!(of(&[&[1.0], &[]], 2, None), "a vector is empty");
        assert_eq!(of(&[&[1.0]], 1, Some(3)), "a vector has 1 numbers, and others have 3");
        assert_eq!(of(&[&[1.0], &[1.0, 2.0]], 2, None), "a vector has 2 numbers, and others have 1");
        assert_eq!(of(&[&[f32::NAN]], 1, None), "a vector has a number that is not finite");
    }

    // S-03: what two orders agree on comes first.
    #[test]
    fn orders_are_fused() {
        let order = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let fused = fuse(&[order(&["a", "b", "c"]), order(&["c", "b", "d"])]);
        let keys: Vec<_> = fused.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["c", "b", "a", "d"]);
        assert!((fused[0].1 - (1.0 / 61.0 + 1.0 / 63.0)).abs() < 1e-12);
        assert!((cosine(&[1.0, 0.0], &[2.0, 0.0]) - 1.0).abs() < 1e-6);
        assert!(cosine(&[1.0], &[1.0, 2.0]).abs() < 1e-6 && cosine(&[0.0], &[1.0]).abs() < 1e-6);
    }
}
