//! Options of the metrics provider.

use mcp_resources_engine::option::{FromOption, OptionError};
use mcp_resources_provider_kit::options::{TimeSpan, option_table};
use std::ops::RangeInclusive;
use std::time::Duration;

const SERIES: RangeInclusive<usize> = 1..=10_000;
const SAMPLES: RangeInclusive<usize> = 1..=1_000_000;
/// Buckets begin at multiples of their length, so two samples may need two buckets, however long these are.
const POINTS: RangeInclusive<usize> = 2..=10_000;
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(86_400);

/// The options of [`Metrics`](super::Metrics).
///
/// ```
/// use mcp_resources_provider_local::metrics::{Metrics, MetricsOptions};
/// let metrics = Metrics::new(MetricsOptions::new().samples(600).host(true))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsOptions {
    pub(super) series: usize,
    pub(super) samples: usize,
    pub(super) points: usize,
    pub(super) interval: Duration,
    pub(super) host: bool,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self { series: 256, samples: 3_600, points: 240, interval: Duration::from_secs(1), host: false }
    }
}

impl MetricsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of series, from 1 to 10,000; a push to another one is refused. Default 256.
    #[must_use]
    pub fn series(mut self, max: usize) -> Self {
        self.series = max;
        self
    }

    /// Sets the maximum number of samples that each series keeps, from 1 to 1,000,000. The memory of a series is
    /// allocated with its first sample: 16 bytes for each sample that it may keep. Default 3,600.
    #[must_use]
    pub fn samples(mut self, max: usize) -> Self {
        self.samples = max;
        self
    }

    /// Sets the maximum number of points of a read without a `step`, from 2 to 10,000. Default 240.
    #[must_use]
    pub fn points(mut self, max: usize) -> Self {
        self.points = max;
        self
    }

    /// Sets how often this machine is measured, and the shortest time between two notifications about a series: from 10
    /// ms to a day. Default one second.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Whether the CPU, memory, disks and network of this machine are measured. Default: they are not.
    #[must_use]
    pub fn host(mut self, host: bool) -> Self {
        self.host = host;
        self
    }

    /// The same, if every number is in its range.
    pub(super) fn checked(self) -> Result<Self, OptionError> {
        for (name, given, range) in [
            ("series", self.series, SERIES),
            ("samples", self.samples, SAMPLES),
            ("points", self.points, POINTS),
        ] {
            if !range.contains(&given) {
                return Err(OptionError::sentence(format!(
                    "metrics: {name} is {given}, expected a whole number from {} to {}",
                    range.start(),
                    range.end()
                )));
            }
        }
        if !INTERVAL.contains(&self.interval) {
            let given = self.interval;
            let reason = format!("metrics: interval is {given:?}, expected a time from 10ms to 1d");
            return Err(OptionError::sentence(reason));
        }
        Ok(self)
    }
}

option_table!(MetricsOptions, "an object of options" {
    "series": "a whole number", Some("256"),
        "The maximum number of series; a push to a further one is refused." =>
        |own, value| { own.series = usize::from_option(value)?; Ok(()) };
    "samples": "a whole number", Some("3600"),
        "How many samples each series keeps; a new one replaces the oldest." =>
        |own, value| { own.samples = usize::from_option(value)?; Ok(()) };
    "points": "a whole number", Some("240"),
        "The maximum number of points in a read without a `step`." =>
        |own, value| { own.points = usize::from_option(value)?; Ok(()) };
    "interval": "a time", Some("1s"),
        "How often this machine is measured, and the shortest time between two notifications of a series." =>
        |own, value| { own.interval = TimeSpan::from_option(value)?.0; Ok(()) };
    "host": "true or false", Some("false"),
        "Whether the CPU, memory, disks and network of this machine are measured." =>
        |own, value| { own.host = bool::from_option(value)?; Ok(()) };
});
