//! Scores how well a text fits a query.
//!
//! Law: the formula is BM25 without the rarity of words. All words of a query must occur, so rarity would only weigh
//! them against each other, and it would reveal the contents of texts that a client may not see.

/// Weights of an occurrence in a title, and in a heading.
pub(super) const TITLE: f64 = 8.0;
pub(super) const HEADING: f64 = 3.0;
/// BM25's constants, and a usual length of a text in tokens.
const K1: f64 = 1.2;
const B: f64 = 0.75;
const USUAL: f64 = 400.0;

/// The score of a text of `length` tokens with these numbers of occurrences, by title, headings and body.
pub fn score(title: &[usize], headings: &[usize], body: &[usize], length: usize) -> f64 {
    let count = |counts: &[usize], at: usize| counts.get(at).copied().unwrap_or_default() as f64;
    let norm = K1 * (1.0 - B + B * length as f64 / USUAL);
    let sum: f64 = (0..body.len())
        .map(|at| {
            let often = TITLE * count(title, at) + HEADING * count(headings, at) + count(body, at);
            often * (K1 + 1.0) / (often + norm)
        })
        .sum();
    (sum * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::score;

    // S-07: the title counts most, more is better with a limit, and a long text needs more.
    #[test]
    fn what_counts() {
        let plain = score(&[0], &[0], &[1], 400);
        assert!((plain - 1.0).abs() < 1e-9);
        assert!(score(&[1], &[0], &[1], 400) > score(&[0], &[1], &[1], 400));
        assert!(score(&[0], &[1], &[1], 400) > plain);
        assert!(score(&[0], &[0], &[1_000], 400) < 2.2);
        assert!(score(&[0], &[0], &[1], 4_000) < plain);
        assert!(score(&[], &[], &[], 0) < 1e-9);
    }
}
