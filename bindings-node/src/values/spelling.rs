//! Names and numbers as JavaScript writes them.

/// A name of the core as JavaScript spells it.
pub(crate) fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '_' => camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase())),
            letter => camel.push(letter),
        }
    }
    camel
}

/// A name of JavaScript as the core spells it. An underscore is doubled, so that it is no name of the core, and messages
/// have the name as it was given.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() || letter == '_' {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// A count or a time, for JavaScript.
#[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}

/// A whole number of JavaScript; one that is negative or no number is 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made from a whole number")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
