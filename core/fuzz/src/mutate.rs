//! Inputs from inputs, the same ones for the same seed.

/// Words that a random byte would take long to find.
const WORDS: &[&[u8]] = &[
    b"{\"jsonrpc\":\"2.0\",",
    b"\"id\":1,",
    b"\"method\":\"m\"",
    b"\"params\":{",
    b"\"_meta\":{",
    b"\"result\":",
    b"\"error\":",
    b"{}",
    b"[]",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u0061",
    b"\\ud800",
    b"-0",
    b"1e9",
    b"null",
    b"\n",
    b"\r\n",
    b"%2F",
    b"%41",
    b"%252e",
    b"**",
    b"/**/",
    b"*",
    b"://",
    b"..",
    b"/",
    b"?",
    b"#",
    b"&a=",
    b"{a}",
    b"{+a}",
    b"{/a*}",
    b"{?a,b}",
    b"{&c*}",
    b"{a:3}",
    b"{.a}",
    b"{;a}",
    b"{#a}",
    b"---\n",
    b"+++\n",
    b"&a ",
    b"*a",
    b": ",
    b"\n  ",
    b"\xff",
    "\u{e9}".as_bytes(),
    "\u{1f600}".as_bytes(),
];

/// Makes new inputs from a corpus by changing, cutting, doubling and joining what is there.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The same seed gives the same inputs.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next input; at most 4 KiB.
    pub fn next_input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(corpus).cloned().unwrap_or_default();
        for _ in 0..=self.below(6) {
            self.change(&mut input, corpus);
        }
        input.truncate(4096);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let to = self.below(input.len() + 1);
        let range = at.min(to)..at.max(to);
        match self.below(8) {
            0 => input.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << self.below(8)),
            1 => input.get_mut(at).into_iter().for_each(|byte| *byte = self.byte()),
            2 => input.insert(at, self.byte()),
            3 => drop(input.drain(range.start..range.end.min(range.start + 8))),
            4 => drop(input.drain(range)),
            5 => {
                let part = input[range].to_vec();
                input.splice(at..at, part);
            }
            6 => {
                let word = self.one_of(WORDS).copied().unwrap_or_default();
                input.splice(at..at, word.iter().copied());
            }
            _ => {
                let other = self.one_of(corpus).cloned().unwrap_or_default();
                let from = self.below(other.len() + 1);
                input.splice(at.., other.into_iter().skip(from));
            }
        }
    }

    fn one_of<'t, T>(&mut self, list: &'t [T]) -> Option<&'t T> {
        list.get(self.below(list.len().max(1)))
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// A number below `bound`, which is not 0 (SplitMix64; the bias does not matter here).
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}
