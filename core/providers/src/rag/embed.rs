//! Vectors of chunks, if the program has something that makes them; and how two orders become one.

use std::collections::HashMap;
use std::fmt;

/// The most chunks that are compared with a query one by one.
pub(super) const VECTORS: usize = 100_000;
/// The constant of reciprocal-rank fusion.
const K: f64 = 60.0;

/// Makes a vector of a text, so that texts of like meaning have like vectors. Called on a thread of the provider's, where it may
/// block.
pub trait Embedder: fmt::Debug + Send + Sync + 'static {
    /// One vector for each text, all of one length.
    ///
    /// # Errors
    /// Why there are none, for the log.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String>;
}

/// The cosine of the angle between two vectors; 0 if one is empty or they have another length.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    let (mut dot, mut left, mut right) = (0.0, 0.0, 0.0);
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

    /// S-03: what two orders agree on comes first.
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
