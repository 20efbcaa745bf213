//! Points as text: JSON, CSV, and the text form of OpenMetrics 1.0.

use super::points::{Point, Points};
use super::query::{MetricsQuery, SeriesFormat};
use super::series::Series;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use mcp_resources_engine::json_text;
use std::fmt::Write;

/// A time is written in milliseconds.
const TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

impl SeriesFormat {
    pub(super) fn write(self, series: &Series, query: &MetricsQuery, points: &Points) -> String {
        let mut out = String::with_capacity(self.least(points.points.len()).saturating_mul(2));
        match self {
            Self::Json => write_json(&mut out, series, query, points),
            Self::Csv => write_csv(&mut out, points),
            Self::OpenMetrics => write_open_metrics(&mut out, series, points),
        }
        out
    }
}

fn write_json(out: &mut String, series: &Series, query: &MetricsQuery, points: &Points) {
    out.push_str("{\"name\":");
    push_json(out, &series.name);
    out.push_str(",\"from\":");
    push_json(out, &time(query.from));
    out.push_str(",\"to\":");
    push_json(out, &time(query.to));
    out.push_str(",\"step\":");
    match points.step {
        Some(step) => push_json(out, &span(step)),
        None => out.push_str("null"),
    }
    out.push_str(",\"points\":[");
    for (at, point) in points.points.iter().enumerate() {
        let Point { mean, min, max, count, .. } = *point;
        let comma = if at == 0 { "" } else { "," };
        // Writing to a text never fails.
        let _ = write!(
            out,
            "{comma}{{\"time\":\"{}\",\"value\":{},\"min\":{},\"max\":{},\"count\":{count}}}",
            time(point.at),
            JsonFormat(mean),
            JsonFormat(min),
            JsonFormat(max)
        );
    }
    out.push_str("]}");
}

fn write_csv(out: &mut String, points: &Points) {
    out.push_str("time,value,min,max,count\n");
    for point in &points.points {
        let Point { at, mean, min, max, count } = *point;
        let _ = writeln!(
            out,
            "{},{},{},{},{count}",
            time(at),
            PlainNumber(mean),
            PlainNumber(min),
            PlainNumber(max)
        );
    }
}

/// One gauge of the means; where samples are combined, one of the least and one of the greatest values too.
fn write_open_metrics(out: &mut String, series: &Series, points: &Points) {
    let name = metric_name(&series.name);
    let about = match series.about {
        Some(about) => about.to_owned(),
        None => format!("The series \"{}\".", series.name),
    };
    let mut family = |suffix: &str, what: &str, value: fn(&Point) -> f64| {
        let _ = writeln!(out, "# HELP {name}{suffix} {}{what}", escaped(&about));
        let _ = writeln!(out, "# TYPE {name}{suffix} gauge");
        for point in &points.points {
            let _ = writeln!(out, "{name}{suffix} {} {}", PlainNumber(value(point)), seconds(point.at));
        }
    };
    match points.step {
        None => family("", "", |point| point.mean),
        Some(step) => {
            let each = span(step);
            family("", &format!(" The mean of each {each}."), |point| point.mean);
            family("_min", &format!(" The least of each {each}."), |point| point.min);
            family("_max", &format!(" The greatest of each {each}."), |point| point.max);
        }
    }
    out.push_str("# EOF\n");
}

/// A number in JSON, which has neither infinity nor not-a-number.
pub(super) struct JsonFormat(pub(super) f64);

impl std::fmt::Display for JsonFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_finite() { write!(f, "{:?}", self.0) } else { f.write_str("null") }
    }
}

/// A number as Prometheus writes it.
struct PlainNumber(f64);

impl std::fmt::Display for PlainNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            value if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => write!(f, "{value:?}"),
        }
    }
}

/// A time in RFC 3339 form.
pub(super) fn time(at: i64) -> String {
    Timestamp::from_millisecond(at).map(|at| TIMES.timestamp_to_string(&at)).unwrap_or_default()
}

/// A time in seconds since 1970.
fn seconds(at: i64) -> String {
    let sign = if at < 0 { "-" } else { "" };
    let at = at.unsigned_abs();
    format!("{sign}{}.{:03}", at / 1_000, at % 1_000)
}

/// A length of time as `step` takes it.
fn span(step: i64) -> String {
    if step % 1_000 == 0 { format!("{}s", step / 1_000) } else { format!("{step}ms") }
}

/// The nearest name that a metric may have.
fn metric_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        match c {
            '0'..='9' if at == 0 => out.extend(['_', c]),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | ':' => out.push(c),
            _ => out.push('_'),
        }
    }
    out
}

/// A text after `# HELP`.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Appends a text as a JSON string.
pub(super) fn push_json(out: &mut String, text: &str) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    json_text::escape_into(text, &mut bytes);
    out.push_str(&String::from_utf8_lossy(&bytes));
}
