//! The metrics provider: `metrics:///{name}` is the last hour of a series, and `{?from,to,step,format}` selects another
//! part of it.
//!
//! ```text
//!   push ──▶ Table of Series: rings of samples ──read──▶ Query ──▶ Points: samples, or buckets of them ──▶ Format
//!                 ▲    └─ Notifier: a thread compares counts while somebody watches
//!                 └─ Collector, with the option `host`: a thread measures this machine while somebody looks
//! ```
//!
//! Law: memory is limited by series × samples. A push sends no notification itself.

mod format;
mod host;
mod notify;
mod options;
mod points;
mod query;
mod series;
#[cfg(test)]
mod tests;

pub use options::MetricsOptions;
pub use series::PushError;

use format::{JsonFormat, push_json};
use host::Collector;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, Responder,
};
use notify::Notifier;
use points::Points;
use query::{MetricsQuery, SeriesFormat};
use series::{INDEX, Sample, Series, SeriesTable, log_refusals};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

const SERIES: &str = "metrics:///{name}";
const RANGES: &str = "metrics:///{name}{?from,to,step,format}";

routes! {
    /// The resources and templates of the provider.
    enum MetricRoute {
        Index,
        Series,
        Ranges,
    }
}

const JSON: &str = "application/json";

/// Series of numbers in memory: a program pushes samples, clients read, list and watch them. Its clones are the same
/// series. It is in one server at a time.
///
/// ```
/// use mcp_resources_provider_local::metrics::{Metrics, MetricsOptions};
/// let metrics = Metrics::new(MetricsOptions::new())?;
/// // server.mount(metrics.clone())
/// metrics.push("queue_length", 17.0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metrics {
    shared: Arc<MetricsState>,
}

#[derive(Debug)]
struct MetricsState {
    options: MetricsOptions,
    table: Arc<SeriesTable>,
    host: Option<Arc<Collector>>,
    notifier: Arc<Notifier>,
    own: OwnWatch,
}

impl Metrics {
    /// No series yet, but those of this machine if `options` say so.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn new(options: MetricsOptions) -> Result<Self, OptionError> {
        options.check_ranges().map_err(|error| error.under(PathStep::Name("metrics".into())))?;
        let table = Arc::new(SeriesTable::new(options.series, options.samples));
        let collector = || Collector::new(&table, options.interval).map(Arc::new);
        let host = options.host.then(collector).transpose()?;
        let shared =
            MetricsState { options, table, host, notifier: Arc::default(), own: OwnWatch::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Adds a sample with the time of now to the series `name`, from any thread, before, during and after a mount. The series
    /// begins with its first sample. A value that is not a number is kept, and is `null` in JSON.
    ///
    /// # Errors
    /// The name is empty, too long or has control characters; or there are too many series.
    pub fn push(&self, name: &str, value: f64) -> Result<(), PushError> {
        self.shared.table.push(name, Sample { at: series::now(), value })
    }

    /// Adds a sample with the time `at`. One that is older than all that a full series keeps is dropped.
    ///
    /// # Errors
    /// As [`Metrics::push`]; or the time is not in the years 1 to 9999.
    pub fn push_at(&self, name: &str, value: f64, at: SystemTime) -> Result<(), PushError> {
        let at = series::millis(at).ok_or(PushError::Time)?;
        self.shared.table.push(name, Sample { at, value })
    }

    /// [`Metrics::push_at`] with a time in milliseconds since 1970, as other languages count it.
    ///
    /// # Errors
    /// As [`Metrics::push_at`].
    #[doc(hidden)]
    pub fn push_at_millis(&self, name: &str, value: f64, at: f64) -> Result<(), PushError> {
        if !at.is_finite() {
            return Err(PushError::Time);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a time beyond the years is refused in any case")]
        let at = at.floor() as i64;
        self.shared.table.push(name, Sample { at, value })
    }

    /// The number of pushes refused because there were too many series.
    pub fn refused(&self) -> u64 {
        self.shared.table.refused()
    }
}

impl Declare for Metrics {
    const KIND: OptionKind = OptionKind {
        name: "metrics",
        about: "Series of numbers, such as CPU and memory of this machine, as metrics:///NAME.",
        options: MetricsOptions::TABLE,
    };

    fn declare(options: OptionValue, _folder: &Path) -> Result<Self, OptionError> {
        match options {
            OptionValue::None => Self::new(MetricsOptions::new()),
            options => Self::new(declared::read("metrics", options)?),
        }
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        if self.shared.options == other.shared.options {
            return Ok(());
        }
        let reason = "metrics: it is declared twice with different options; declare it once";
        Err(OptionError::sentence(reason))
    }

    /// Nothing: this machine is measured.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        match rest {
            "" => Ok(OptionValue::Members(vec![("host".into(), true.into())])),
            _ => Err(OptionError::sentence(format!(
                "\"metrics:\" takes nothing, not {rest:?}; leave it out, or write options into a file for --config"
            ))),
        }
    }
}

impl Provider for Metrics {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        let shared = &self.shared;
        shared.own.mount("metrics", feed)?;
        shared.notifier.begin_anew();
        if let Some(host) = &shared.host {
            host.begin_anew();
        }
        let index = Resource::new(INDEX)
            .name("metrics")
            .title("All series with their last values")
            .mime_type(JSON)
            .priority(1.0);
        let series = Template::new(SERIES)
            .title("The last hour of a series")
            .mime_type(JSON)
            .completes("name")
            .list(ListSource { pages: true });
        let ranges = Template::new(RANGES)
            .title("Another part of a series, or in another form")
            .description(
                "from and to: a time such as 2026-11-23T08:00:00Z, or one before now such as -15m. step: the length of a bucket, \
                 such as 10s. format: json, csv or openmetrics.",
            )
            .completes("name")
            .completes("from")
            .completes("to")
            .completes("step")
            .completes("format");
        let mount = Mount::new("metrics").resource(MetricRoute::Index, index);
        Ok(mount.template(MetricRoute::Series, series).template(MetricRoute::Ranges, ranges).workers(2, 256))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = self.answer(&request, &reply);
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        self.requested(&|what| reply.log(what));
        let all = self.shared.table.all();
        let after = request.cursor().unwrap_or_default();
        let rest =
            all.iter().filter(|series| series.segment.as_str() > after && request.permits(&series.uri));
        reply.send(Ok(page(request.limit(), rest, |series| series.segment.clone(), |series| item(series))));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        self.requested(&|what| reply.log(what));
        let typed = request.value();
        let words: &[&str] = match request.variable() {
            "name" => {
                let typed = typed.to_lowercase();
                let all = self.shared.table.all();
                let fits = all.iter().filter(|series| {
                    series.segment.to_lowercase().contains(&typed) && request.permits(&series.uri)
                });
                let mut fits: Vec<String> = fits.map(|series| series.segment.clone()).collect();
                // What begins so comes first.
                fits.sort_by_key(|segment| !segment.to_lowercase().starts_with(&typed));
                return reply.send(Ok(completion(fits)));
            }
            "from" => &["-5m", "-15m", "-30m", "-1h"],
            "to" => &["-5m", "-15m", "-30m"],
            "step" => &["1s", "10s", "1m", "5m"],
            "format" => &SeriesFormat::NAMES,
            _ => &[],
        };
        let fits = words.iter().filter(|word| word.starts_with(typed));
        reply.send(Ok(completion(fits.map(|word| (*word).to_owned()))));
    }

    fn interest(&self, change: InterestChange<'_>) {
        let shared = &self.shared;
        if let Some(host) = &shared.host {
            let (InterestChange::Uri { on, .. } | InterestChange::Lists { on }) = change;
            host.interest(on, shared.own.feed().as_ref());
        }
        shared.notifier.interest(change, shared.own.feed(), &shared.table, shared.options.interval);
    }
}

impl Metrics {
    fn answer(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let shared = &self.shared;
        log_refusals(&shared.table, &|what| reply.log(what));
        if let Some(host) = &shared.host {
            host.request_now(shared.own.feed().as_ref());
        }
        if MetricRoute::parse(request.route()) == Some(MetricRoute::Index) {
            let text = self.index(&|uri| request.permits(uri));
            reply.facts(text.len() as u64)?;
            return Ok(Contents::text(text).with_mime_type(JSON).into());
        }
        let name = request.param("name").unwrap_or_default();
        let series = shared.table.find(name).ok_or(ReadError::NotFound)?;
        let query = MetricsQuery::parse(|variable| request.param(variable), series::now())?;
        let samples = series.between(query.from, query.to);
        let points = Points::from_samples(&samples, query.step, shared.options.points);
        reply.facts(query.format.least(points.points.len()) as u64)?;
        let text = query.format.write(&series, &query, &points);
        reply.facts(text.len() as u64)?;
        Ok(Contents::text(text).with_mime_type(query.format.mime_type()).into())
    }

    /// The series that the client may see, each with its last sample.
    fn index(&self, permits: &dyn Fn(&str) -> bool) -> String {
        let mut out = String::from("{\"series\":[");
        for series in self.shared.table.all().iter().filter(|series| permits(&series.uri)) {
            if !out.ends_with('[') {
                out.push(',');
            }
            out.push_str("{\"name\":");
            push_json(&mut out, &series.name);
            out.push_str(",\"uri\":");
            push_json(&mut out, &series.uri);
            if let Some(Sample { at, value }) = series.last() {
                out.push_str(&format!(",\"time\":\"{}\",\"value\":{}", format::time(at), JsonFormat(value)));
            }
            out.push('}');
        }
        out.push_str("]}");
        out
    }

    /// Records a request, which keeps this machine measured.
    fn requested(&self, log: &dyn Fn(&str)) {
        log_refusals(&self.shared.table, log);
        if let Some(host) = &self.shared.host {
            host.request(self.shared.own.feed().as_ref());
        }
    }
}

/// The list entry of a series.
fn item(series: &Series) -> Resource {
    let listed = Resource::new(&*series.uri).name(&*series.name).mime_type(JSON).priority(0.5);
    let listed = match series.about {
        Some(about) => listed.description(about),
        None => listed,
    };
    match series.last() {
        Some(sample) => listed.last_modified(format::time(sample.at)),
        None => listed,
    }
}
