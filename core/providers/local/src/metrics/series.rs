//! Series of samples in limited memory.
//!
//! Law: a push to an existing series allocates nothing, sends no notification and calls no other code: notifications
//! are sent, and refusals logged, by the threads of the provider. So any thread may push at any time, even one that
//! holds an interpreter's lock. The locks are leaves; that of the table is taken before that of a series.

use mcp_resources_provider_kit::path;
use mcp_resources_runtime::sync::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLockReadGuard};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const INDEX: &str = "metrics:///";
/// Maximum length of a series' name in bytes.
const NAME: usize = 256;
/// The years 1 to 9999, in milliseconds since 1970: what RFC 3339 can write.
pub(super) const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// In milliseconds since 1970.
    pub(super) at: i64,
    pub(super) value: f64,
}

/// Why a sample was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// The name is empty, longer than 256 bytes, or has a control character in it.
    Name,
    /// The time is no number, or not in the years 1 to 9999.
    Time,
    /// The series would be one too many.
    TooManySeries {
        /// The maximum number of series.
        limit: usize,
    },
    /// There is no memory for another series.
    Memory,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str(
                "a series has a name of 1 to 256 bytes without control characters, such as \"queue_length\"",
            ),
            Self::Time => f.write_str("the time of a sample is in the years 1 to 9999"),
            Self::TooManySeries { limit } => {
                write!(f, "there are {limit} series already; raise the option `series`, or use fewer names")
            }
            Self::Memory => f.write_str("there is no memory for another series; lower the option `samples`"),
        }
    }
}

impl std::error::Error for PushError {}

/// All series, by name.
#[derive(Debug)]
pub(super) struct SeriesTable {
    series: RwLock<HashMap<Arc<str>, Arc<Series>>>,
    limit: usize,
    samples: usize,
    refused: AtomicU64,
    /// Whether the log says that pushes are refused.
    is_logged: AtomicBool,
}

/// One series.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: Arc<str>,
    /// The name as a segment of a path, before it is percent-encoded.
    pub(super) segment: String,
    pub(super) uri: String,
    /// A description of the measured value, if known.
    pub(super) about: Option<&'static str>,
    samples: Mutex<Samples>,
}

#[derive(Debug)]
struct Samples {
    /// In the order of their times.
    samples: VecDeque<Sample>,
    limit: usize,
    /// The number of samples ever pushed.
    pushed: u64,
}

impl SeriesTable {
    pub(super) fn new(limit: usize, samples: usize) -> Self {
        Self {
            series: RwLock::default(),
            limit,
            samples,
            refused: AtomicU64::new(0),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Adds a sample to the series `name`, and creates the series if it does not exist.
    pub(super) fn push(&self, name: &str, sample: Sample) -> Result<(), PushError> {
        if !TIMES.contains(&sample.at) {
            return Err(PushError::Time);
        }
        if let Some(series) = self.read().get(name) {
            series.push(sample);
            return Ok(());
        }
        self.begin(name, None)?.push(sample);
        Ok(())
    }

    /// The series `name`; a new one without samples if it does not exist.
    pub(super) fn begin(&self, name: &str, about: Option<&'static str>) -> Result<Arc<Series>, PushError> {
        if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
            return Err(PushError::Name);
        }
        // Made before the lock is taken: the memory of a series may be large.
        let new = Series::new(name, about, self.samples)?;
        let mut table = self.series.write();
        if let Some(series) = table.get(name) {
            return Ok(series.clone());
        }
        if table.len() >= self.limit {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(PushError::TooManySeries { limit: self.limit });
        }
        let new = Arc::new(new);
        table.insert(new.name.clone(), new.clone());
        Ok(new)
    }

    /// The number of pushes refused because there were too many series.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of series, once, to the first caller after pushes were refused.
    pub(super) fn unlogged_refusal(&self) -> Option<usize> {
        let is_new = self.refused() > 0 && !self.is_logged.swap(true, Ordering::Relaxed);
        is_new.then_some(self.limit)
    }

    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    /// All series, in the order of lists.
    pub(super) fn all(&self) -> Vec<Arc<Series>> {
        let mut all: Vec<_> = self.read().values().cloned().collect();
        all.sort_by(|one, other| one.segment.cmp(&other.segment));
        all
    }

    /// The series with this segment of a path.
    pub(super) fn find(&self, segment: &str) -> Option<Arc<Series>> {
        let table = self.read();
        // Nearly all names are segments as they are.
        let same = table.get(segment).filter(|series| series.segment == segment);
        same.or_else(|| table.values().find(|series| series.segment == segment)).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Series>>> {
        self.series.read()
    }
}

impl Series {
    fn new(name: &str, about: Option<&'static str>, limit: usize) -> Result<Self, PushError> {
        let segment = path::text(name.as_bytes());
        let mut uri = String::from(INDEX);
        path::append(&mut uri, &segment);
        let mut samples = VecDeque::new();
        samples.try_reserve_exact(limit).map_err(|_| PushError::Memory)?;
        let samples = Mutex::new(Samples { samples, limit, pushed: 0 });
        Ok(Self { name: name.into(), segment, uri, about, samples })
    }

    pub(super) fn push(&self, sample: Sample) {
        self.samples.lock().push(sample);
    }

    /// The number of samples ever pushed.
    pub(super) fn pushed(&self) -> u64 {
        self.samples.lock().pushed
    }

    pub(super) fn last(&self) -> Option<Sample> {
        self.samples.lock().samples.back().copied()
    }

    /// The samples from `from` to `to`, both included, in the order of their times.
    pub(super) fn between(&self, from: i64, to: i64) -> Vec<Sample> {
        let samples = self.samples.lock();
        let first = samples.samples.partition_point(|sample| sample.at < from);
        let end = samples.samples.partition_point(|sample| sample.at <= to);
        samples.samples.range(first..end.max(first)).copied().collect()
    }
}

impl Samples {
    /// Inserts a sample in the order of times. If the samples are full, one that is older than all of them is dropped.
    fn push(&mut self, sample: Sample) {
        let is_full = self.samples.len() >= self.limit;
        if is_full && self.samples.front().is_some_and(|oldest| sample.at < oldest.at) {
            return;
        }
        if is_full {
            self.samples.pop_front();
        }
        self.pushed += 1;
        if self.samples.back().is_none_or(|newest| newest.at <= sample.at) {
            self.samples.push_back(sample);
        } else {
            let at = self.samples.partition_point(|other| other.at <= sample.at);
            self.samples.insert(at, sample);
        }
    }
}

/// A time in milliseconds since 1970.
pub(super) fn millis(at: SystemTime) -> Option<i64> {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).ok(),
        Err(before) => i64::try_from(before.duration().as_millis()).ok().map(|before| -before),
    }
}

/// The time now, in milliseconds since 1970.
pub(super) fn now() -> i64 {
    millis(SystemTime::now()).unwrap_or_default()
}

/// Logs once that pushes were refused. Not in the push itself: the log may need a lock that the pushing thread holds.
pub(super) fn log_refusals(table: &SeriesTable, log: &dyn Fn(&str)) {
    if let Some(limit) = table.unlogged_refusal() {
        log(&format!(
            "there are {limit} series, and pushes to others are refused; raise the option `series`, or use fewer names"
        ));
    }
}
