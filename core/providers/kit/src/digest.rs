//! The digest of contents by which changes are found.
//!
//! Law: XXH3 with 64 bits. Files hold these digests, so the algorithm stays the same with every compiler; a change of it needs
//! another `VERSION` in the files that hold them (`search/index.rs`). It tells changes, it proves nothing: a content that must
//! not be forged needs SHA-256.

pub use xxhash_rust::xxh3::Xxh3Default as Digester;
pub use xxhash_rust::xxh3::xxh3_64 as digest;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    // S-07: an index is read by processes that another compiler has built.
    #[test]
    fn the_algorithm_is_xxh3() {
        assert_eq!(digest(b""), 0x2d06_8005_38d3_94c2);
        let mut parts = Digester::new();
        parts.write(b"pag");
        parts.write(b"es");
        assert_eq!(parts.finish(), digest(b"pages"));
    }
}
