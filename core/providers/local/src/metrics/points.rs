//! Converts samples to points: each sample as it is, or buckets of one length.
//!
//! Law: a bucket has the minimum and the maximum of its samples, so a spike of one sample is in every answer. Buckets
//! begin at multiples of their length, not at the beginning of the range, so a later answer has the same buckets.

use super::series::Sample;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The possible lengths of a bucket if none is chosen, in milliseconds. Above a day they double.
const STEPS: [i64; 27] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
];

/// One sample, or the summary of the samples in one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// The time of the sample, or of the beginning of the bucket, in milliseconds since 1970.
    pub(super) at: i64,
    /// The mean of the samples that are numbers; not a number if there are none.
    pub(super) mean: f64,
    /// The minimum.
    pub(super) min: f64,
    /// The maximum.
    pub(super) max: f64,
    /// The number of samples, including those that are not numbers.
    pub(super) count: usize,
}

/// The points of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Points {
    /// The length of a bucket in milliseconds. `None`: each point is a sample.
    pub(super) step: Option<i64>,
    pub(super) points: Vec<Point>,
}

impl Points {
    /// The points of `samples`, which are in the order of their times. Without a `step` there are at most `max`, which is at
    /// least 2.
    pub(super) fn from_samples(samples: &[Sample], step: Option<i64>, max: usize) -> Self {
        let step = step.or_else(|| (samples.len() > max).then(|| step_for(samples, max)));
        let points = match step {
            None => samples.iter().map(|sample| point(sample.at, std::slice::from_ref(sample))).collect(),
            Some(step) => samples
                .chunk_by(|one, other| one.at.div_euclid(step) == other.at.div_euclid(step))
                .filter_map(|bucket| Some(point(begin(bucket.first()?.at, step), bucket)))
                .collect(),
        };
        Self { step, points }
    }
}

/// The shortest step that cuts `samples` into at most `max` buckets.
fn step_for(samples: &[Sample], max: usize) -> i64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return DAY };
    let fits = |step: &i64| {
        let buckets = last.at.div_euclid(*step) - first.at.div_euclid(*step) + 1;
        usize::try_from(buckets).is_ok_and(|buckets| buckets <= max)
    };
    let longer = std::iter::successors(Some(2 * DAY), |step| step.checked_mul(2));
    STEPS.into_iter().chain(longer).find(fits).unwrap_or(i64::MAX)
}

/// When the bucket begins that has a sample at `at`.
fn begin(at: i64, step: i64) -> i64 {
    at.div_euclid(step).saturating_mul(step)
}

fn point(at: i64, samples: &[Sample]) -> Point {
    let numbers = || samples.iter().map(|sample| sample.value).filter(|value| !value.is_nan());
    // Of nothing, and of values that are not numbers, both are not a number.
    let min = numbers().fold(f64::NAN, f64::min);
    let max = numbers().fold(f64::NAN, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "far fewer samples than a number can count")]
    let count = numbers().count() as f64;
    let mut mean = numbers().sum::<f64>() / count;
    if mean.is_infinite() && min.is_finite() && max.is_finite() {
        // The sum is too great for a number, the mean is not.
        mean = numbers().map(|value| value / count).sum();
    }
    if min <= max {
        // Rounding moves a mean a bit beyond the least or the greatest.
        mean = mean.clamp(min, max);
    }
    Point { at, mean, min, max, count: samples.len() }
}
