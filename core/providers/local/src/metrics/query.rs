//! Parses the query of a read: `from`, `to`, `step` and `format`.

use super::series::TIMES;
use jiff::Timestamp;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::FromOption;
use mcp_resources_provider_kit::options::TimeSpan;

/// The range of a read without `from`, in milliseconds: the hour before `to`.
const HOUR: i64 = 3_600_000;

/// The format of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeriesFormat {
    Json,
    Csv,
    OpenMetrics,
}

impl SeriesFormat {
    /// Their names.
    pub(super) const NAMES: [&str; 3] = ["json", "csv", "openmetrics"];

    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "openmetrics" => Some(Self::OpenMetrics),
            _ => None,
        }
    }

    pub(super) fn mime_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The minimum size of the text of this many points, in bytes.
    pub(super) const fn least(self, points: usize) -> usize {
        let each = match self {
            Self::Json => r#"{"time":"2026-11-23T08:00:00.000Z","value":1,"min":1,"max":1,"count":1},"#.len(),
            Self::Csv => "2026-11-23T08:00:00.000Z,1,1,1,1\n".len(),
            Self::OpenMetrics => "a 1 1.5\n".len(),
        };
        each.saturating_mul(points)
    }
}

/// The parts of a series that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetricsQuery {
    /// In milliseconds since 1970.
    pub(super) from: i64,
    /// The last millisecond that is read.
    pub(super) to: i64,
    /// The length of a bucket in milliseconds. `None`: as long as the limit of points needs.
    pub(super) step: Option<i64>,
    pub(super) format: SeriesFormat,
}

impl MetricsQuery {
    /// Reads the variables of a URI. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// [`ReadError::InvalidParameter`] names the variable that is malformed or out of range.
    pub(super) fn parse<'a>(variable: impl Fn(&str) -> Option<&'a str>, now: i64) -> Result<Self, ReadError> {
        let time = |name: &'static str| variable(name).map(|text| time(name, text, now)).transpose();
        let to = time("to")?.unwrap_or(now);
        let from = time("from")?.unwrap_or_else(|| to.saturating_sub(HOUR));
        if from > to {
            return Err(wrong("from", "a time that is not after `to`"));
        }
        let step = variable("step").map(step).transpose()?;
        let format = match variable("format") {
            Some(word) => {
                SeriesFormat::parse(word).ok_or_else(|| wrong("format", "json, csv or openmetrics"))?
            }
            None => SeriesFormat::Json,
        };
        Ok(Self { from, to, step, format })
    }
}

/// A time in RFC 3339 form, or one before now.
fn time(name: &'static str, text: &str, now: i64) -> Result<i64, ReadError> {
    let at = match text.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        Some(before) => span(before).map(|before| now.saturating_sub(before).max(*TIMES.start())),
        None => text.parse().ok().map(Timestamp::as_millisecond).filter(|at| TIMES.contains(at)),
    };
    at.ok_or_else(|| {
        wrong(name, "a time such as 2026-11-23T08:00:00Z, or one before now such as -30s, -5m or -1h")
    })
}

fn step(text: &str) -> Result<i64, ReadError> {
    span(text)
        .filter(|step| (1..=*TIMES.end()).contains(step))
        .ok_or_else(|| wrong("step", "a length of time from 1ms on, such as 10s, 5m or 1h"))
}

/// A length of time in milliseconds.
fn span(text: &str) -> Option<i64> {
    let span = TimeSpan::from_option(text.into()).ok()?;
    i64::try_from(span.0.as_millis()).ok()
}

fn wrong(parameter: &str, expected: &str) -> ReadError {
    ReadError::InvalidParameter { parameter: parameter.into(), expected: expected.into() }
}
