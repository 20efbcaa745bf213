//! The normal form of a template's literals, so that they compare with URIs in normal form byte by byte.

use super::parse::{Literal, Operator, SyntaxFault, TemplatePart};
use crate::uri::{UNRESERVED, folds_authority, hex_pair, is_in, push_encoded, scheme_len};

/// Normalizes the literals of `parts`.
///
/// Fails if the template only expands to relative references, which no URI matches.
pub(super) fn normalize(parts: &mut [TemplatePart]) -> Result<(), SyntaxFault> {
    check_start(parts)?;
    let mut place = UriPart::Start;
    let mut folds = false;
    for (at, part) in parts.iter_mut().enumerate() {
        match part {
            TemplatePart::Literal(literal) if at == 0 => {
                let scheme = scheme_len(literal.text.as_bytes()).unwrap_or_default();
                folds = folds_authority(&literal.text.as_bytes()[..scheme]);
                let (scheme, rest) = literal.text.split_at(scheme);
                literal.text = scheme.to_ascii_lowercase() + &normal_form(rest, &mut place, folds);
            }
            TemplatePart::Literal(literal) => literal.text = normal_form(&literal.text, &mut place, folds),
            TemplatePart::Expression(expression) => {
                if matches!(expression.operator, Operator::Path | Operator::Query | Operator::Fragment) {
                    place = UriPart::Rest;
                }
            }
        }
    }
    Ok(())
}

/// The normal form of a name in a query or of a path parameter.
pub(super) fn normal_name(name: &str) -> String {
    normal_form(name, &mut UriPart::Rest, false)
}

/// The part of a URI that contains a literal, for the rules about brackets and case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UriPart {
    /// Before `://`, or where it would be.
    Start,
    Authority,
    Rest,
}

fn check_start(parts: &[TemplatePart]) -> Result<(), SyntaxFault> {
    let is_absent = |part: &&TemplatePart| matches!(part, TemplatePart::Expression(first) if first.operator.is_optional());
    match parts.iter().find(|part| !is_absent(part)) {
        Some(TemplatePart::Literal(Literal { text, offset })) if scheme_len(text.as_bytes()).is_none() => {
            Err(SyntaxFault::new(
                *offset,
                "it does not begin with a scheme (like note:) or a variable that may hold one",
            ))
        }
        None => Err(SyntaxFault::new(0, "it can only expand to a relative reference, which is not a URI")),
        Some(_) => Ok(()),
    }
}

fn normal_form(text: &str, place: &mut UriPart, folds: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if *place == UriPart::Start && bytes[at..].starts_with(b"://") {
            *place = UriPart::Authority;
            out.push_str("://");
            at += 3;
            continue;
        }
        if matches!(byte, b'/' | b'?' | b'#') || *place == UriPart::Start && byte == b':' {
            *place = UriPart::Rest;
        }
        let folds = folds && *place == UriPart::Authority;
        let fold = |byte: u8| char::from(if folds { byte.to_ascii_lowercase() } else { byte });
        let triplet = if byte == b'%' { hex_pair(&bytes[at + 1..]) } else { None };
        at += if triplet.is_some() { 3 } else { 1 };
        match (triplet, byte) {
            (Some(value), _) if is_in(value, UNRESERVED) => out.push(fold(value)),
            (Some(value), _) => push_encoded(&mut out, value),
            (None, 0x80..) => push_encoded(&mut out, byte),
            (None, b'[' | b']') if *place != UriPart::Authority => push_encoded(&mut out, byte),
            (None, _) => out.push(fold(byte)),
        }
    }
    out
}
