use super::*;
use serde_json::Value;

const LIMITS: YamlLimits = YamlLimits { values: 1_000, bytes: 10_000, depth: 16 };

fn read(text: &str, schema: YamlSchema) -> String {
    match read_yaml(text, schema, LIMITS) {
        Ok(value) => Value::from(value).to_string(),
        Err(YamlFault { what, line, column, .. }) => format!("{line}:{column} {what}"),
    }
}

// S-04, S-07: a plain scalar is a number only if its schema says so; what is a text stays as it is written.
#[test]
fn scalars_have_the_types_of_their_schema() {
    for (text, in_1_1, in_core) in [
        ("0", "0", "0"),
        ("-0", "0", "0"),
        ("+12", "12", "12"),
        ("007", "7", "7"),
        ("08", r#""08""#, "8"),
        ("-08", r#""-08""#, "-8"),
        ("0644", "420", "644"),
        ("0o17", r#""0o17""#, "15"),
        ("0x1F", "31", "31"),
        ("-0x1F", "-31", r#""-0x1F""#),
        ("0xg", r#""0xg""#, r#""0xg""#),
        ("0b101", "5", r#""0b101""#),
        ("0b12", r#""0b12""#, r#""0b12""#),
        ("1_000", "1000", r#""1_000""#),
        ("_1", r#""_1""#, r#""_1""#),
        ("1:30", "90", r#""1:30""#),
        ("-1:30:00", "-5400", r#""-1:30:00""#),
        ("1:60", r#""1:60""#, r#""1:60""#),
        ("0:30", r#""0:30""#, r#""0:30""#),
        ("1:30.5", "90.5", r#""1:30.5""#),
        ("1.5", "1.5", "1.5"),
        ("1.", "1.0", "1.0"),
        (".5", "0.5", "0.5"),
        ("-.5", r#""-.5""#, "-0.5"),
        ("1e3", r#""1e3""#, "1000.0"),
        ("1.5e3", r#""1.5e3""#, "1500.0"),
        ("1.5e+3", "1500.0", "1500.0"),
        ("1_0.5", "10.5", r#""1_0.5""#),
        ("1.5e+1_0", r#""1.5e+1_0""#, r#""1.5e+1_0""#),
        (".inf", r#"".inf""#, r#"".inf""#),
        ("-.INF", r#""-.INF""#, r#""-.INF""#),
        (".nan", r#"".nan""#, r#"".nan""#),
        (".", r#"".""#, r#"".""#),
        ("1.0e+400", r#""1.0e+400""#, r#""1.0e+400""#),
        ("18446744073709551615", "18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", r#""18446744073709551616""#, r#""18446744073709551616""#),
        ("-9223372036854775808", "-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", r#""-9223372036854775809""#, r#""-9223372036854775809""#),
        ("2001-01-01", r#""2001-01-01""#, r#""2001-01-01""#),
        ("1.2.3", r#""1.2.3""#, r#""1.2.3""#),
        ("yes", "true", r#""yes""#),
        ("Off", "false", r#""Off""#),
        ("yEs", r#""yEs""#, r#""yEs""#),
        ("y", r#""y""#, r#""y""#),
        ("N", r#""N""#, r#""N""#),
        ("True", "true", "true"),
        ("tRUE", r#""tRUE""#, r#""tRUE""#),
        ("~", "null", "null"),
        ("Null", "null", "null"),
        ("nULL", r#""nULL""#, r#""nULL""#),
        ("=", r#""=""#, r#""=""#),
        ("'007'", r#""007""#, r#""007""#),
        ("!!str 007", r#""007""#, r#""007""#),
        ("! 12", r#""12""#, r#""12""#),
        ("!mine 12", r#""12""#, r#""12""#),
        ("!!int '3'", "3", "3"),
        ("!!int 1_0", "10", TAG),
        ("!!int x", TAG, TAG),
        ("!!float 3", "3.0", "3.0"),
        ("!!float 1e3", "1000.0", "1000.0"),
        ("!!float x", TAG, TAG),
        ("!!bool yes", "true", "true"),
        ("!!bool y", TAG, TAG),
        ("!!null x", "null", "null"),
        ("!!binary aGk=", r#""aGk=""#, r#""aGk=""#),
        ("!!timestamp 2001-01-01", r#""2001-01-01""#, r#""2001-01-01""#),
        ("!!map x", TAG, TAG),
        ("!!int [1]", TAG, TAG),
        ("!!set {a, b}", r#"{"a":null,"b":null}"#, r#"{"a":null,"b":null}"#),
        ("!!omap [a: 1, b: 2]", r#"[{"a":1},{"b":2}]"#, r#"[{"a":1},{"b":2}]"#),
        ("!<tag:yaml.org,2002:int> 3", "3", "3"),
        ("", "null", "null"),
    ] {
        for (schema, expected) in [(YamlSchema::Yaml11, in_1_1), (YamlSchema::Core, in_core)] {
            let shown = read(text, schema);
            let is_fault = expected == TAG && shown.ends_with(TAG);
            assert!(shown == expected || is_fault, "{text:?} {schema:?}: {shown}");
        }
    }
}

// S-04: keys are as written; merged members are those that YAML 1.1 says, and the object's own count most.
#[test]
fn keys_and_merges() {
    for (text, expected) in [
        ("{yes: 1, 007: 2, 1.50: 3, ~: 4, '~': 5}", r#"{"007":2,"1.50":3,"null":4,"yes":1,"~":5}"#),
        ("null: 1\n", r#"{"null":1}"#),
        (": 1\n", r#"{"null":1}"#),
        ("&k a: 1\n*k : 2\n", "2:1 a key stands twice"),
        ("a: &k b\n*k : 2\n", r#"{"a":"b","b":2}"#),
        ("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\n", r#"{"base":{"x":1,"y":2},"own":{"x":1,"y":3}}"#),
        ("own: {y: 3, <<: {x: 1, y: 2}}\n", r#"{"own":{"x":1,"y":3}}"#),
        ("<<: [{a: 1}, {a: 2, b: 2}]\n", r#"{"a":1,"b":2}"#),
        ("<<: {a: 1, b: 1}\n<<: {a: 2}\n", r#"{"a":2,"b":1}"#),
        ("a: &a {<<: {x: 1}, y: 1}\nb: {<<: *a, z: 1}\n", r#"{"a":{"x":1,"y":1},"b":{"x":1,"y":1,"z":1}}"#),
        ("'<<': 1\n", r#"{"<<":1}"#),
        ("<<: 1\n", "1:5 what is merged is no object"),
        ("<<: [1]\n", "1:6 what is merged is no object"),
        ("? [a]\n: 1\n", "1:3 a key is a list or an object"),
        ("a: 1\nb: 2\na: 3\n", "3:1 a key stands twice"),
        ("a: 1\n---\nb: 2\n", "2:1 it has more than one document; only one can be read"),
        ("---\na: 1\n...\n# end\n", r#"{"a":1}"#),
        ("a: &a [*a]\n", "1:8 an alias stands within what it names"),
        ("a: [1\n", "1:4 it is not YAML"),
        ("a: |\r  x\r  y\rb: 2\r", r#"{"a":"x\ny\n","b":2}"#),
        ("# only\n", "null"),
    ] {
        assert_eq!(read(text, YamlSchema::Yaml11), expected, "{text:?}");
    }
}

// S-04: aliases, merges, depth and length are limited, and what is too much is not said to be no YAML.
#[test]
fn what_is_too_much_is_said() {
    let mut laughs = String::from("a0: &a0 [1, 1, 1, 1, 1]\n");
    let mut merges = String::from("a0: &a0 {k0: 1}\n");
    for level in 1..20 {
        let before = vec![format!("*a{}", level - 1); 5].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        merges.push_str(&format!("a{level}: &a{level} {{<<: [{before}]}}\n"));
    }
    for (text, what) in [
        (laughs, TOO_MANY),
        (merges, TOO_MANY),
        (format!("[{}]", "1,".repeat(LIMITS.values)), TOO_MANY),
        (format!("a: &a {}\nb: [{}]", "x".repeat(1_000), "*a,".repeat(20)), TOO_LONG),
        (format!("{}{}", "[".repeat(17), "]".repeat(17)), TOO_DEEP),
        ("- ".repeat(17), TOO_DEEP),
        ("[".repeat(100_000), TOO_DEEP),
        ("- ".repeat(100_000), TOO_DEEP),
        ("a: &a [[[[[[[[[1]]]]]]]]]\nb: [[[[[[[[*a]]]]]]]]\n".to_owned(), TOO_DEEP),
    ] {
        let fault = read_yaml(&text, YamlSchema::Core, LIMITS).unwrap_err();
        assert_eq!(fault.what, what, "{} {fault:?}", text.get(..40).unwrap_or(&text));
        assert!(fault.line > 0 && fault.column > 0);
    }
    let deep = format!("{}{}", "[".repeat(16), "]".repeat(16));
    assert!(read_yaml(&deep, YamlSchema::Core, LIMITS).is_ok());
}

// S-07: a number keeps how it is written, as far as that says more.
#[test]
fn numbers_keep_how_they_are_written() {
    let written = |text: &str| match read_yaml(text, YamlSchema::Core, LIMITS).unwrap() {
        YamlValue::Number { written, .. } => written.map(String::from),
        other => panic!("{other:?}"),
    };
    assert_eq!(written("007").as_deref(), Some("007"));
    assert_eq!(written("1.10").as_deref(), Some("1.10"));
    assert_eq!(written("7"), None);
}
