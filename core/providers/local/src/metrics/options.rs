//! Options of the metrics provider.

use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::DAY;
use std::time::Duration;

provider_options! {
    /// The options of [`Metrics`](super::Metrics).
    ///
    /// ```
    /// use mcp_resources_provider_local::metrics::{Metrics, MetricsOptions};
    /// let metrics = Metrics::new(MetricsOptions::new().samples(600).host(true))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MetricsOptions: "an object of options" {
        /// The maximum number of series; a push to a further one is refused.
        series: count(1, 10_000) = 256;
        /// The samples that each series keeps; a new sample replaces the oldest. The first sample of a series reserves 16
        /// bytes for each.
        samples: count(1, 1_000_000) = 3_600;
        // Buckets begin at multiples of their length, so two samples may need two buckets, however long these are.
        /// The maximum number of points of a read without a `step`.
        points: count(2, 10_000) = 240;
        /// The interval at which this machine is measured, and the shortest time between two notifications about a series.
        interval: time(Duration::from_millis(10), DAY) = Duration::from_secs(1);
        /// Whether the CPU, memory, disks and network of this machine are measured.
        host: flag = false;
    }
}

impl MetricsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}
