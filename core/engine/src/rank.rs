//! Ranks completion values by how well they match the text typed so far.

/// The values that match `typed`, best first: values that begin with it, that begin with it ignoring case, that contain
/// it, and that begin with it except for one typing error. Within a class the order is kept.
pub fn ranked<'v, V: AsRef<str>>(values: &'v [V], typed: &str) -> Vec<&'v str> {
    let lower = typed.to_lowercase();
    let mut found: Vec<(u8, &str)> = values
        .iter()
        .map(AsRef::as_ref)
        .filter_map(|value| Some((class(value, typed, &lower)?, value)))
        .collect();
    found.sort_by_key(|(class, _)| *class);
    found.into_iter().map(|(_, value)| value).collect()
}

fn class(value: &str, typed: &str, lower: &str) -> Option<u8> {
    if value.starts_with(typed) {
        return Some(0);
    }
    let value = value.to_lowercase();
    if value.starts_with(lower) {
        return Some(1);
    }
    if value.contains(lower) {
        return Some(2);
    }
    begins_nearly(&value, lower).then_some(3)
}

/// Whether `value` begins with `typed` after one letter of `typed` was changed, left out, added or swapped with its
/// neighbour. `false` if `typed` is too short for that.
fn begins_nearly(value: &str, typed: &str) -> bool {
    let (value, typed): (Vec<char>, Vec<char>) = (value.chars().collect(), typed.chars().collect());
    if typed.len() < 3 {
        return false;
    }
    let same = value.iter().zip(&typed).take_while(|(one, other)| one == other).count();
    let value = value.get(same..).unwrap_or_default();
    let typed = typed.get(same..).unwrap_or_default();
    let rest = |skip_value: usize, skip_typed: usize| {
        let typed = typed.get(skip_typed..).unwrap_or_default();
        value.get(skip_value..).is_some_and(|value| value.starts_with(typed))
    };
    let swapped = matches!((value, typed), ([a, b, ..], [c, d, ..]) if a == d && b == c);
    rest(1, 1) || rest(1, 0) || rest(0, 1) || (swapped && rest(2, 2))
}

#[cfg(test)]
mod tests {
    use super::ranked;

    const CITIES: [&str; 5] = ["New York", "Yokohama", "Tokyo", "Kyoto", "tokushima"];

    #[test]
    fn the_expected_value_comes_first_r_111() {
        for (typed, expected) in [
            ("To", "Tokyo"),
            ("tok", "tokushima"),
            ("KYO", "Kyoto"),
            ("york", "New York"),
            ("Tokio", "Tokyo"),
            ("Yohk", "Yokohama"),
            ("Yokhama", "Yokohama"),
            ("Kyyoto", "Kyoto"),
        ] {
            assert_eq!(ranked(&CITIES, typed).first().copied(), Some(expected), "{typed}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(ranked(&CITIES, "Berlin"), Vec::<&str>::new());
        assert_eq!(ranked(&CITIES, "").len(), 5);
    }
}
