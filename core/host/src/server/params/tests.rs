use super::*;
use mcp_resources_template::{Lookup, UriTemplate};
use serde::Deserialize;
use std::collections::BTreeMap;

fn parse<T: DeserializeOwned>(template: &str, uri: &str) -> Result<T, ReadError> {
    match UriTemplate::parse(template).unwrap().match_uri(uri).unwrap() {
        Lookup::Match { params, .. } => read(Some(&params)),
        other => panic!("{uri} does not match {template}: {other:?}"),
    }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metric,
    Imperial,
}

#[derive(Debug, Deserialize, PartialEq)]
struct City(String);

#[derive(Debug, Deserialize, PartialEq)]
struct All {
    city: City,
    days: Option<u8>,
    #[serde(default)]
    scale: f64,
    unit: Option<Unit>,
    verbose: Option<bool>,
}

const ALL: &str = "w://{city}{?days,scale,unit,verbose}";

#[test]
fn texts_are_parsed_into_fields() {
    let all: All = parse(ALL, "w://T%C5%8Dky%C5%8D?unit=metric&days=7&scale=1.5&verbose=true").unwrap();
    let expected = All {
        city: City("Tōkyō".into()),
        days: Some(7),
        scale: 1.5,
        unit: Some(Unit::Metric),
        verbose: Some(true),
    };
    assert_eq!(all, expected);
    let few: All = parse(ALL, "w://x").unwrap();
    assert_eq!(few, All { city: City("x".into()), days: None, scale: 0.0, unit: None, verbose: None });
}

#[test]
fn lists_and_maps_have_their_types() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Lists {
        ids: Vec<u32>,
    }
    assert_eq!(parse::<Lists>("l://x{?ids*}", "l://x?ids=1&ids=2"), Ok(Lists { ids: vec![1, 2] }));
    let any: BTreeMap<String, String> = parse("l://{a}/{b}", "l://1/2").unwrap();
    assert_eq!(any, BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]));
}

/// DEC-20: `invalid_parameter` names the variable and the expected value.
#[test]
fn what_does_not_fit_is_named() {
    for (uri, parameter, expected) in [
        ("w://x?days=300", "days", "an integer from 0 to 255"),
        ("w://x?days=", "days", "an integer from 0 to 255"),
        ("w://x?scale=big", "scale", "a number"),
        ("w://x?unit=old", "unit", "one of metric, imperial"),
        ("w://x?verbose=yes", "verbose", "true or false"),
    ] {
        let error = parse::<All>(ALL, uri).unwrap_err();
        let named = ReadError::InvalidParameter { parameter: parameter.into(), expected: expected.into() };
        assert_eq!(error, named, "{uri}");
    }
}

#[test]
fn a_required_variable_that_is_undefined_is_named() {
    #[derive(Debug, Deserialize)]
    struct Required {
        #[expect(dead_code, reason = "only its absence matters")]
        days: u8,
    }
    let error = parse::<Required>(ALL, "w://x").unwrap_err();
    assert_eq!(error, ReadError::InvalidParameter { parameter: "days".into(), expected: "a value".into() });
}

/// The message of a user-defined type is not sent to the client.
#[test]
fn custom_messages_are_not_sent() {
    #[derive(Debug, Deserialize)]
    struct Address {
        #[expect(dead_code, reason = "never read")]
        city: std::net::IpAddr,
    }
    let error = parse::<Address>(ALL, "w://nowhere").unwrap_err();
    let ReadError::InvalidParameter { parameter, expected } = error else { panic!("{error:?}") };
    assert_eq!(parameter, "city");
    assert!(!expected.contains("nowhere"));
}
