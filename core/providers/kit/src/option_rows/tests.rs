//! A row of each kind, and units.

use super::provider_options;
use crate::options::{DAY, MIB, OptionDefault, OptionType, Size, TimeSpan};
use mcp_resources_engine::option::{FromOption, NamedOptions, OptionValue};
use std::path::PathBuf;
use std::time::Duration;

provider_options! {
    /// One option of each kind.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NoteOptions: "a name or an object of options", or title: Text or nothing {
        /// The title,
        /// in two lines.
        title: text("title") = "notes";
        /// Required words.
        words: some_texts("word");
        /// Read by a function.
        letters: custom(usize, letters, OptionType::Text("word"), OptionDefault::Text("one")) = 3;
        /// A file.
        file: file = None;
        in settings: NoteSettings {
            /// A flag.
            hidden: flag = true;
            /// A number.
            notes: count(1, 10) = 7;
            /// A time.
            poll: time(Duration::from_millis(10), DAY) = Duration::from_secs(90);
            /// A size.
            largest: size = 3 * MIB;
            /// Words.
            tags: texts("tag") = ["a", "b"];
            /// Bytes.
            bytes: bytes = None;
        }
        fields {
            patience: Duration = DAY;
        }
    }
}

fn letters(value: OptionValue) -> Result<usize, mcp_resources_engine::option::OptionError> {
    String::from_option(value).map(|text| text.len())
}

fn members<const N: usize>(members: [(&str, OptionValue); N]) -> OptionValue {
    OptionValue::Members(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

// S-01: a row is a field with its default, a setter, an option by name, and a row of the table.
#[test]
fn a_row_is_all_that_an_option_needs() {
    let by_name = NoteOptions::from_option(members([
        ("title", "t".into()),
        ("words", "w".into()),
        ("letters", "four".into()),
        ("file", "f".into()),
        ("hidden", false.into()),
        ("notes", 10_u64.into()),
        ("poll", "1min".into()),
        ("largest", "2 KiB".into()),
        ("tags", OptionValue::List(vec!["c".into()])),
        ("bytes", 5_u64.into()),
    ]));
    let mut set = NoteOptions::new()
        .title("t")
        .words(["w"])
        .file("f")
        .hidden(false)
        .notes(10)
        .poll(Duration::from_secs(60))
        .largest(2_048)
        .tags(["c"])
        .bytes(5);
    set.letters = 4;
    assert_eq!(by_name, Ok(set.clone()));
    assert_eq!((set.file, set.patience), (Some(PathBuf::from("f")), DAY));
    assert_eq!(NoteOptions::from_option("x".into()), Ok(NoteOptions::new().title("x")));
    assert_eq!(NoteOptions::from_option(OptionValue::None), Ok(NoteOptions::new()));
    assert_eq!(NoteOptions::new().settings.tags, ["a", "b"]);
    let rows: Vec<String> = NoteOptions::TABLE
        .iter()
        .map(|row| format!("{}: {} = {}; {}", row.name, row.kind, row.default, row.about))
        .collect();
    assert_eq!(
        rows,
        [
            "title: a title = notes; The title, in two lines.",
            "words: a word or a list of words = must be given; Required words.",
            "letters: a word = one; Read by a function.",
            "file: a file = null; A file.",
            "hidden: true or false = true; A flag.",
            "notes: a whole number from 1 to 10 = 7; A number.",
            "poll: a time from 10ms to 1d = 90s; A time.",
            "largest: a size such as 64 MiB = 3 MiB; A size.",
            "tags: a tag or a list of tags = [a, b]; Words.",
            "bytes: a whole number of bytes = null; Bytes.",
        ]
    );
    assert_eq!(NoteOptions::NAMES, NoteOptions::TABLE.iter().map(|row| row.name).collect::<Vec<_>>());
}

// S-01: what is wrong is named, with what would be right.
#[test]
fn a_wrong_value_says_what_would_be_right() {
    for (name, value, message) in [
        ("notse", 1_u64.into(), "unexpected option \"notse\"; did you mean \"notes\"?"),
        ("notes", 11_u64.into(), "notes is 11, expected a whole number from 1 to 10"),
        ("poll", "9ms".into(), "poll is \"9ms\", expected a time from 10ms to 1d"),
        ("tags", 5_u64.into(), "tags is 5, expected a tag or a list of tags"),
        ("tags", OptionValue::List(vec![5_u64.into()]), "tags has the item 5, expected a text"),
        ("file", true.into(), "file is true, expected the path of a file"),
        ("bytes", "5".into(), "bytes is \"5\", expected a whole number"),
    ] {
        let said = NoteOptions::from_option(members([(name, value)])).unwrap_err().to_string();
        assert_eq!(said, message);
    }
    let said = NoteOptions::from_option(5_u64.into()).unwrap_err().to_string();
    assert!(said.contains("5, expected a name or an object of options"), "{said}");
    assert!(NoteOptions::new().notes(0).check_ranges().is_err(), "a setter does not check");
}

// S-20: units are what people write; anything else is refused with its value.
#[test]
fn times_and_sizes_have_units() {
    let span = |text: &str| TimeSpan::from_option(text.into()).map(|span| span.0);
    for (text, ms) in [("200ms", 200), ("1s", 1_000), ("10 s", 10_000), ("5min", 300_000), ("1h", 3_600_000)]
    {
        assert_eq!(span(text), Ok(Duration::from_millis(ms)), "{text}");
    }
    assert_eq!(TimeSpan::from_option(250_u64.into()), Ok(TimeSpan(Duration::from_millis(250))));
    let size = |text: &str| Size::from_option(text.into()).map(|size| size.0);
    for (text, bytes) in [("64 MiB", 64 << 20), ("1KiB", 1 << 10), ("10 kB", 10_000), ("7 B", 7)] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "1", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s", "18446744073709551615h"]
    {
        assert!(span(text).is_err(), "{text}");
    }
    let refused = |value| Size::from_option(value).unwrap_err().to_string();
    assert!(refused("64 megs".into()).contains("\"64 megs\", expected a size such as \"64 MiB\""));
    assert!(refused(true.into()).contains("true, expected a size"));
    assert!(refused(OptionValue::Integer(-1)).contains("-1, expected a size"));
}
