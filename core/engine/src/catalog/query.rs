//! One order for the query of a URI, whatever order a client has written it in.
//!
//! Law: two queries that give a template the same values have the same form, except for the order of a list's items.

/// Orders the query of `uri`, a URI in normal form, as the template with the text `template` has its names. Names that
/// it does not have are left out, unless `any` name is a variable's. `None` if the URI has that form already.
pub(super) fn ordered(template: &str, any: bool, uri: &str) -> Option<String> {
    let (path, rest) = uri.split_once('?')?;
    let (query, fragment) = rest.split_once('#').map_or((rest, None), |(query, rest)| (query, Some(rest)));
    let names = names(template);
    let mut pairs: Vec<(usize, &str, &str)> = query
        .split('&')
        .filter(|piece| !piece.is_empty())
        .filter_map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let place = names.iter().position(|own| *own == name);
            (any || place.is_some()).then(|| (place.unwrap_or(names.len()), name, value))
        })
        .collect();
    // Stable: the items of a list stay in their order. Names of a map have none.
    pairs.sort_by_key(|(place, name, _)| (*place, if *place == names.len() { *name } else { "" }));
    let pairs: Vec<String> = pairs.into_iter().map(|(_, name, value)| format!("{name}={value}")).collect();
    let mut ordered = path.to_owned();
    if !pairs.is_empty() {
        ordered.push('?');
        ordered.push_str(&pairs.join("&"));
    }
    if let Some(fragment) = fragment {
        ordered.push('#');
        ordered.push_str(fragment);
    }
    Some(ordered).filter(|ordered| ordered != uri)
}

/// The names in the query of a template's text, fixed ones and variables, in its order.
fn names(template: &str) -> Vec<&str> {
    let query = template.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once("{#").map_or(query, |(query, _)| query);
    let pieces = query.split(['&', '{', '}', ',', '?']);
    let names = pieces.map(|piece| &piece[..piece.find(['=', '*', ':', '#']).unwrap_or(piece.len())]);
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_template() {
        for (template, uri, expected) in [
            ("x://a{?q,r}", "x://a?q=1&r=2", None),
            ("x://a{?q,r}", "x://a?r=2&q=1", Some("x://a?q=1&r=2")),
            ("x://a{?q,r}", "x://a?zz=1&q=1", Some("x://a?q=1")),
            ("x://a{?q,r}", "x://a?q=1&&", Some("x://a?q=1")),
            ("x://a{?q,r}", "x://a?q", Some("x://a?q=")),
            ("x://a{?q,r}", "x://a?zz=1", Some("x://a")),
            ("x://a{?q*}", "x://a?q=2&q=1", None),
            ("x://a{?q*,r}", "x://a?q=2&r=0&q=1", Some("x://a?q=2&q=1&r=0")),
            ("x://a?v=1{&q,r:3}", "x://a?r=2&q=1&v=1", Some("x://a?v=1&q=1&r=2")),
            ("x://a{?q,r}{#part}", "x://a?r=2&q=1#p", Some("x://a?q=1&r=2#p")),
            ("x://a?v={q}", "x://a?n=1&v=1", Some("x://a?v=1")),
        ] {
            assert_eq!(ordered(template, false, uri).as_deref(), expected, "{template} {uri}");
        }
        assert_eq!(ordered("x://a{?q,m*}", true, "x://a?z=1&b=2&q=3").as_deref(), Some("x://a?q=3&b=2&z=1"));
    }
}
