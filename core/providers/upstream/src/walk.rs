//! The cursor of a list that walks over several servers, one after the other.
//!
//! Law: a cursor has the name of a server, never its place, so it opens after a restart with other servers. It ends a walk
//! whose server turns in a circle: no state is kept for it here (Brent's algorithm, in the cursor itself).

use xxhash_rust::xxh3::xxh3_64;

/// Most pages of one server in one walk.
const PAGES: u64 = 100_000;
/// Most times that a page is asked for which is late.
const TRIES: u64 = 3;

/// The position at which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalkCursor {
    /// The name of the server.
    pub(crate) server: String,
    /// Its own cursor, or the last name that was listed; empty for its beginning.
    pub(crate) inner: String,
    /// The number of its pages so far.
    pages: u64,
    /// A digest of an earlier cursor. Each time the number of pages doubles, it is the current one.
    mark: u64,
    /// The number of times that the page at this position was late.
    late: u64,
}

impl WalkCursor {
    /// The beginning of a server.
    pub(crate) fn begin(server: &str) -> Self {
        Self { server: server.into(), inner: String::new(), pages: 0, mark: 0, late: 0 }
    }

    /// The position after a page that ended with `next`; `None` if this server's list has no end.
    pub(crate) fn after(&self, next: &str) -> Option<Self> {
        let digest = xxh3_64(next.as_bytes());
        let pages = self.pages + 1;
        if pages > PAGES || next == self.inner || (self.pages > 0 && digest == self.mark) {
            return None;
        }
        let mark = if pages.is_power_of_two() { digest } else { self.mark };
        Some(Self { server: self.server.clone(), inner: next.into(), pages, mark, late: 0 })
    }

    /// The same position, after its page was late; `None` at the beginning of a server, or if it was late too often.
    pub(crate) fn again(&self) -> Option<Self> {
        let late = self.late + 1;
        (!self.inner.is_empty() && late < TRIES).then(|| Self { late, ..self.clone() })
    }

    /// A position within a list that is kept here: after the item `last`.
    pub(crate) fn kept(server: &str, last: &str) -> Self {
        Self { inner: last.into(), ..Self::begin(server) }
    }

    pub(crate) fn encode(&self) -> String {
        format!("{}\n{:x}\n{:x}\n{:x}\n{}", self.server, self.pages, self.mark, self.late, self.inner)
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '\n');
        let server = parts.next()?.to_owned();
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (pages, mark, late) = (number()?, number()?, number()?);
        Some(Self { server, pages, mark, late, inner: parts.next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of pages after which a walk over `cursors` ends.
    fn pages(cursors: impl Iterator<Item = String>) -> usize {
        let mut walk = WalkCursor::begin("a");
        let mut count = 0;
        for next in cursors {
            count += 1;
            match walk.after(&next).and_then(|walk| WalkCursor::decode(&walk.encode())) {
                Some(next) => walk = next,
                None => return count,
            }
        }
        count
    }

    #[test]
    fn circles_end_and_long_lists_do_not() {
        for length in 1..40 {
            let circle = (0..).map(|number| format!("c{}", number % length));
            let ends = pages(circle.take(10_000));
            assert!(ends <= 4 * length + 2, "a circle of {length} ends after {ends}");
        }
        // A tail before the circle.
        assert!(pages((0..).map(|number| format!("{}", (number as usize).min(100))).take(10_000)) < 1_000);
        assert_eq!(pages((0..10_000).map(|number| number.to_string())), 10_000);
        assert_eq!(WalkCursor::decode("a\n1"), None);
        let odd = WalkCursor::begin("a").after("x\ny").unwrap();
        assert_eq!(WalkCursor::decode(&odd.encode()), Some(odd));
    }

    #[test]
    fn a_late_page_is_asked_for_again_and_then_given_up() {
        assert_eq!(WalkCursor::begin("a").again(), None);
        let page = WalkCursor::begin("a").after("x").unwrap();
        let again = page.again().and_then(|walk| WalkCursor::decode(&walk.encode())).unwrap();
        assert_eq!((&*again.inner, again.pages), ("x", 1));
        assert_eq!(again.again().and_then(|walk| walk.again()), None);
        assert!(again.after("y").and_then(|walk| walk.again()).and_then(|walk| walk.again()).is_some());
    }
}
