//! Tests of series, points, formats and queries, without a server.

use super::points::{Point, Points};
use super::query::MetricsQuery;
use super::query::SeriesFormat;
use super::series::{Sample, SeriesTable};
use super::*;
use mcp_resources_engine::option::FromOption;
use std::time::Duration;

/// A time of the tests: 2026-11-23T08:00:00Z.
const NOW: i64 = 1_795_420_800_000;

fn table(samples: usize) -> SeriesTable {
    SeriesTable::new(4, samples)
}

fn pushed(table: &SeriesTable, name: &str, samples: impl IntoIterator<Item = (i64, f64)>) -> Arc<Series> {
    for (at, value) in samples {
        table.push(name, Sample { at, value }).unwrap();
    }
    table.begin(name, None).unwrap()
}

fn query(variables: &[(&str, &'static str)]) -> Result<MetricsQuery, ReadError> {
    let found = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    MetricsQuery::parse(found, NOW)
}

// S-05: a ring has the newest samples in the order of their times, whatever order they come in.
#[test]
fn a_ring_is_bounded_and_sorted() {
    let table = table(5);
    let series = pushed(&table, "a", [10, 40, 20, 50, 30, 60, 5, 45, 60].map(|at| (at, at as f64)));
    let times: Vec<i64> = series.between(i64::MIN, i64::MAX).iter().map(|sample| sample.at).collect();
    assert_eq!(times, [40, 45, 50, 60, 60]);
    assert_eq!(series.between(41, 50).len(), 2);
    assert_eq!((series.between(50, 41).len(), series.between(61, 99).len()), (0, 0));
    // That of 5 was older than all that were kept.
    assert_eq!(series.pushed(), 8);
}

// S-05: against a list that is sorted each time, over random histories.
#[test]
fn a_ring_agrees_with_a_naive_one() {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for limit in [1, 2, 7, 64] {
        let table = table(limit);
        let mut naive = Vec::<(i64, u64)>::new();
        for order in 0..2_000_u64 {
            let at = i64::try_from(next() % 50 + order / 10).unwrap();
            table.push("a", Sample { at, value: order as f64 }).unwrap();
            if naive.len() == limit {
                if at < naive[0].0 {
                    continue;
                }
                naive.remove(0);
            }
            naive.push((at, order));
            naive.sort_unstable();
        }
        let samples = table.find("a").unwrap().between(i64::MIN, i64::MAX);
        let own: Vec<_> = samples.iter().map(|sample| (sample.at, sample.value as u64)).collect();
        assert_eq!(own, naive, "{limit}");
    }
}

// S-05: a series too many is refused, and counted; what has no name or no time too.
#[test]
fn what_has_no_room_is_refused() {
    let metrics = Metrics::new(MetricsOptions::new().series(2)).unwrap();
    metrics.push("a", 1.0).unwrap();
    metrics.push("b", 1.0).unwrap();
    for _ in 0..3 {
        assert_eq!(metrics.push("c", 1.0), Err(PushError::TooManySeries { limit: 2 }));
    }
    metrics.push("a", 2.0).unwrap();
    assert_eq!(metrics.refused(), 3);
    assert_eq!(metrics.shared.table.unlogged_refusal(), Some(2));
    assert_eq!(metrics.shared.table.unlogged_refusal(), None);
    let metrics = Metrics::new(MetricsOptions::new()).unwrap();
    for name in ["", "a\nb", "\u{7f}", &"x".repeat(257)] {
        assert_eq!(metrics.push(name, 1.0), Err(PushError::Name), "{name:?}");
    }
    metrics.push(&"é".repeat(128), 1.0).unwrap();
    for at in [f64::NAN, f64::INFINITY, -1e300, 1e18] {
        assert_eq!(metrics.push_at_millis("a", 1.0, at), Err(PushError::Time), "{at}");
    }
    metrics.push_at_millis("a", 1.0, -1.5).unwrap();
    assert_eq!(metrics.shared.table.find("a").unwrap().last(), Some(Sample { at: -2, value: 1.0 }));
    assert_eq!((metrics.refused(), metrics.shared.table.len()), (0, 2));
}

// S-05: a spike of one sample, up or down, survives every down-sampling.
#[test]
fn a_spike_survives() {
    for (count, spacing) in [(241, 1), (1_000, 7), (3_600, 1_000), (3_600, 999), (3_600, 86_400_000)] {
        for spike in [0, 1, count / 2, count - 1] {
            let table = table(3_600);
            let value = |at: i64| if at == spike { 1e9 } else { (at % 10) as f64 };
            let series = pushed(&table, "a", (0..count).map(|at| (NOW + at * spacing, value(at))));
            let samples = series.between(i64::MIN, i64::MAX);
            for step in [None, Some(1), Some(1_000), Some(60_000), Some(i64::MAX / 2)] {
                for max in [2, 3, 240] {
                    let points = Points::from_samples(&samples, step, max).points;
                    assert!(step.is_some() || points.len() <= max, "{} of {max}", points.len());
                    assert!(points.iter().any(|point| point.max == 1e9), "{count} {spike} {step:?}");
                    assert_eq!(points.iter().map(|point| point.count).sum::<usize>(), samples.len());
                    assert!(points.is_sorted_by(|one, other| one.at < other.at));
                }
            }
        }
    }
}

// S-05: buckets begin at multiples of their length, also before 1970; without a need each sample is a point.
#[test]
fn buckets_are_aligned() {
    let sample = |at: i64, value: f64| Sample { at, value };
    let samples = [sample(-1, 3.0), sample(0, 1.0), sample(9, 2.0), sample(10, f64::NAN)];
    let raw = Points::from_samples(&samples, None, 240);
    assert_eq!((raw.step, raw.points.len(), raw.points[1].count), (None, 4, 1));
    let points = Points::from_samples(&samples, Some(10), 240).points;
    let times: Vec<i64> = points.iter().map(|point| point.at).collect();
    assert_eq!(times, [-10, 0, 10]);
    assert_eq!(points[1], Point { at: 0, mean: 1.5, min: 1.0, max: 2.0, count: 2 });
    assert!(points[2].mean.is_nan() && points[2].min.is_nan() && points[2].max.is_nan());
    assert_eq!(Points::from_samples(&[], None, 2).points, []);
    // The sum is beyond what a number can be; the mean is not.
    let great = [sample(0, f64::MAX), sample(1, f64::MAX)];
    assert_eq!(Points::from_samples(&great, Some(10), 240).points[0].mean, f64::MAX);
    let endless = [sample(0, f64::INFINITY), sample(1, 1.0)];
    assert_eq!(Points::from_samples(&endless, Some(10), 240).points[0].min, 1.0);
}

// S-05: times are RFC 3339 or relative; what is malformed or out of range names its variable.
#[test]
fn queries_have_bounds() {
    let hour = 3_600_000;
    let read = |variables: &[(&str, &'static str)]| query(variables).map(|query| (query.from, query.to));
    assert_eq!(read(&[]), Ok((NOW - hour, NOW)));
    assert_eq!(read(&[("from", "-30s")]), Ok((NOW - 30_000, NOW)));
    assert_eq!(read(&[("to", "-1h")]), Ok((NOW - 2 * hour, NOW - hour)));
    assert_eq!(read(&[("from", "2026-11-23T17:00:00+09:00")]), Ok((NOW, NOW)));
    assert_eq!(read(&[("from", "1969-12-31T23:59:59.5Z")]), Ok((-500, NOW)));
    assert!(read(&[("from", "-99999999999d")]).is_ok());
    assert_eq!(query(&[("step", "10s"), ("format", "csv")]).unwrap().step, Some(10_000));
    for (name, value) in [
        ("from", ""),
        ("from", "-"),
        ("from", "1h"),
        ("from", "--1h"),
        ("from", "-1"),
        ("from", "-1.5h"),
        ("from", "-1 fortnight"),
        ("from", "-999999999999999999999s"),
        ("from", "yesterday"),
        ("from", "2026-13-01T00:00:00Z"),
        ("from", "2026-11-23T08:00:00"),
        ("from", "-009999-01-01T00:00:00Z"),
        ("from", "2026-11-23T08:00:01Z"),
        ("to", "+1h"),
        ("step", ""),
        ("step", "0s"),
        ("step", "-1s"),
        ("step", "10"),
        ("step", "NaN"),
        ("format", ""),
        ("format", "xml"),
        ("format", "JSON"),
    ] {
        let error = query(&[(name, value)]).unwrap_err();
        let ReadError::InvalidParameter { parameter, .. } = &error else { panic!("{value}: {error}") };
        assert_eq!(parameter, name, "{value}");
    }
}

// S-05: the three forms, with what is not a number.
#[test]
fn forms() {
    let table = table(10);
    let values = [1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300];
    let samples = values.iter().enumerate().map(|(at, value)| (NOW + at as i64 * 1_500, *value));
    let series = pushed(&table, "2nd \"série\\", samples);
    let query = MetricsQuery { from: NOW, to: NOW + 10_000, step: None, format: SeriesFormat::Json };
    let written = |format: SeriesFormat, step: Option<i64>| {
        let samples = series.between(query.from, query.to);
        let points = Points::from_samples(&samples, step, 240);
        let text = format.write(&series, &query, &points);
        assert!(text.len() >= format.least(points.points.len()), "{text}");
        text
    };
    let json = written(SeriesFormat::Json, None);
    let begin = r#"{"name":"2nd \"série\\","from":"2026-11-23T08:00:00.000Z","to":"2026-11-23T08:00:10.000Z","step":null,"points":[{"time":"2026-11-23T08:00:00.000Z","value":1.0,"min":1.0,"max":1.0,"count":1},{"time":"2026-11-23T08:00:01.500Z","value":null,"min":null,"max":null,"count":1},"#;
    assert!(json.starts_with(begin), "{json}");
    assert!(json.ends_with(r#""value":1e300,"min":1e300,"max":1e300,"count":1}]}"#), "{json}");
    let json = written(SeriesFormat::Json, Some(2_000));
    assert!(json.contains(r#""step":"2s","points":[{"time":"2026-11-23T08:00:00.000Z","value":1.0,"min":1.0,"max":1.0,"count":2}"#), "{json}");
    let csv = written(SeriesFormat::Csv, None);
    assert_eq!(csv.lines().next(), Some("time,value,min,max,count"));
    assert_eq!(csv.lines().nth(2), Some("2026-11-23T08:00:01.500Z,NaN,NaN,NaN,1"));
    assert_eq!(csv.lines().nth(4), Some("2026-11-23T08:00:04.500Z,-Inf,-Inf,-Inf,1"));
    let text = written(SeriesFormat::OpenMetrics, None);
    let head = "# HELP _2nd__s_rie_ The series \\\"2nd \\\"série\\\\\\\".\n# TYPE _2nd__s_rie_ gauge\n_2nd__s_rie_ 1.0 1795420800.000\n_2nd__s_rie_ NaN 1795420801.500\n_2nd__s_rie_ +Inf 1795420803.000\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with("\n# EOF\n"));
    let text = written(SeriesFormat::OpenMetrics, Some(500));
    for line in
        ["# TYPE _2nd__s_rie__min gauge\n", "_2nd__s_rie__max 1e300 1795420806.000\n", "each 500ms.\n"]
    {
        assert!(text.contains(line), "{text}");
    }
}

// S-05: options have the types and the ranges that the table says; the host's series have room.
#[test]
fn options_are_checked() {
    let members = |name: &str, value: OptionValue| OptionValue::Members(vec![(name.to_owned(), value)]);
    let made = |options| Metrics::declare(options, Path::new(""));
    assert!(made(OptionValue::None).is_ok());
    assert!(made(members("interval", "10ms".into())).is_ok());
    for (name, value, message) in [
        ("sampels", OptionValue::None, "unexpected option \"sampels\"; did you mean \"samples\"?"),
        ("series", OptionValue::Integer(0), "metrics.series is 0, expected a whole number from 1 to 10000"),
        ("samples", OptionValue::Integer(1_000_001), "metrics.samples is 1000001, expected"),
        ("points", OptionValue::Integer(1), "metrics.points is 1, expected a whole number from 2"),
        ("interval", "9ms".into(), "metrics.interval is \"9ms\", expected a time from 10ms to 1d"),
        ("interval", "1 fortnight".into(), "interval is \"1 fortnight\", expected a time such as"),
        ("host", "yes".into(), "host is \"yes\", expected true or false"),
    ] {
        let said = made(members(name, value)).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
    let few = Metrics::new(MetricsOptions::new().series(3).host(true)).unwrap_err().to_string();
    assert!(few.contains("`host` needs 11 series"), "{few}");
    let said = Metrics::parse_shorthand("interval=1s").unwrap_err().to_string();
    assert!(said.contains("takes nothing, not \"interval=1s\""), "{said}");
    let host: MetricsOptions = declared::read("metrics", Metrics::parse_shorthand("").unwrap()).unwrap();
    assert_eq!(host, MetricsOptions::new().host(true));
    let mut one = Metrics::new(MetricsOptions::new()).unwrap();
    assert!(one.merge(Metrics::new(MetricsOptions::new()).unwrap()).is_ok());
    assert!(
        one.merge(Metrics::new(MetricsOptions::new().interval(Duration::from_secs(2))).unwrap()).is_err()
    );
    assert!(MetricsOptions::from_option(5_u64.into()).is_err());
}
