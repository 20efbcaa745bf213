//! What the hot paths cost in instructions: `instructions NAME COUNT` does one piece of work that many times, for
//! callgrind to count (`tests/checks/instructions.py`). Without a name it lists the pieces.
//!
//! Nothing here looks at a clock: the same arguments do the same work.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measuring program is told what to do by its arguments, and stops at its own mistakes"
)]

mod http;
mod hub;
mod pipe;
mod requests;

/// Work that can be repeated. Each call is checked: what does not answer is not counted.
type Work = Box<dyn FnMut()>;

/// Its name in the budget, and how it is set up.
type Piece = (&'static str, fn() -> Work);

fn main() {
    let pieces: Vec<Piece> = [requests::PIECES, http::PIECES, hub::PIECES, pipe::PIECES].concat();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count] = arguments.as_slice() else {
        pieces.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let (_, set_up) = pieces.iter().find(|(own, _)| own == name).expect("the name of a piece");
    let count: usize = count.parse().expect("a count");
    let mut work = set_up();
    (0..count).for_each(|_| work());
}
