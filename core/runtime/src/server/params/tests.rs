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

// DEC-20: `invalid_parameter` names the variable and the expected value.
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

/// Each number has one spelling, so no URI avoids a rule about another one.
#[test]
fn another_spelling_of_a_number_is_refused() {
    use serde::de::DeserializeOwned;

    fn reads<T: DeserializeOwned>(text: &str) -> bool {
        let field = ParamField { name: "x", value: Shape::Text(text) };
        T::deserialize(field).is_ok()
    }
    for good in ["0", "7", "120"] {
        assert!(
            reads::<u8>(good) && reads::<i64>(good) && reads::<f64>(good) && reads::<f32>(good),
            "{good}"
        );
    }
    assert!(reads::<i64>("-7") && reads::<f64>("1.5") && reads::<f32>("0.1") && reads::<f64>("1e+21"));
    for bad in ["07", "+7", "-0", " 7", "7.0", "0_7", "7e0", "\u{ff17}"] {
        assert!(
            !reads::<u8>(bad) && !reads::<i128>(bad) && !reads::<f64>(bad) && !reads::<f32>(bad),
            "{bad}"
        );
    }
    for bad in ["inf", "NaN", "1e21", "0.10000000149011612"] {
        assert!(!reads::<f32>(bad), "{bad}");
    }
    assert!(reads::<bool>("true") && !reads::<bool>("True") && !reads::<bool>("1"));
}
