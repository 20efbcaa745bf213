//! Lists, page by page to their end: W4, and the walks of W10, W19 and W24.

use crate::client::{self, Answer, ListMethod, Page};
use crate::figures::{Figures, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
use std::error::Error;
use std::time::{Duration, Instant};

/// Starts the server and walks its list until as many walks are done or the time is over; one walk at least.
pub(crate) fn measure(launch: &Launch, listed: u32, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut walker = Walker::new(Server::start(launch, None)?, ListMethod::Resources, setting.modern)?;
    let number_of = |uri: &str| uri.strip_prefix("bench://r/").and_then(|number| number.parse().ok());
    for _ in 0..setting.warm {
        walker.walk(listed, number_of)?;
    }
    walker.resources = 0;
    walker.pages = 0;
    let cpu = walker.server.cpu_ns()?;
    let start = Instant::now();
    for _ in 0..setting.requests {
        walker.walk(listed, number_of)?;
        if start.elapsed() > setting.time {
            break;
        }
    }
    let cpu = walker.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::default()
        .with("rate", 1.0 / per(wall.as_secs_f64(), walker.resources))
        .with("cpu_us_item", per(micros(cpu), walker.resources))
        .with("cpu_us_page", per(micros(cpu), walker.pages)))
}

/// Starts the server and walks one of its lists until as many walks are done or the time is over; one walk at least.
pub(crate) fn measure_lists(
    launch: &Launch,
    method: ListMethod,
    listed: u32,
    number_of: impl Fn(&str) -> Option<usize> + Copy,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    let mut walker = Walker::new(Server::start(launch, None)?, method, setting.modern)?;
    for _ in 0..setting.warm {
        walker.walk(listed, number_of)?;
    }
    let cpu = walker.server.cpu_ns()?;
    let start = Instant::now();
    let mut walks = 0;
    while walks == 0 || (walks < setting.requests && start.elapsed() < setting.time) {
        walker.walk(listed, number_of)?;
        walks += 1;
    }
    let cpu = walker.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::default()
        .with("rate", 1.0 / per(wall.as_secs_f64(), walks))
        .with("cpu_us", per(micros(cpu), walks)))
}

/// A client that lists.
pub(crate) struct Walker {
    pub(crate) server: Server,
    method: ListMethod,
    modern: bool,
    next: u64,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
    /// How many resources were listed so far.
    pub(crate) resources: u64,
    pages: u64,
}

/// How long the server took for a page, and the cursor of the next.
pub(crate) type Turned = (Duration, Option<String>);

impl Walker {
    /// A client of this server, which is ready to be asked.
    pub(crate) fn new(server: Server, method: ListMethod, modern: bool) -> Result<Self, Box<dyn Error>> {
        let incoming = Vec::new();
        let chunk = vec![0; 1 << 18];
        let mut walker = Self { server, method, modern, next: 1, incoming, chunk, resources: 0, pages: 0 };
        if !modern {
            walker.server.write(client::INITIALIZE)?;
            walker.line()?;
            walker.server.write(client::INITIALIZED)?;
        }
        Ok(walker)
    }

    /// One walk; of the entries that have a number every one below `listed` must come exactly once. Returns how long the
    /// first page took.
    pub(crate) fn walk(
        &mut self,
        listed: u32,
        number_of: impl Fn(&str) -> Option<usize>,
    ) -> Result<Duration, Box<dyn Error>> {
        let mut seen = vec![false; usize::try_from(listed)?];
        let mut see = |uri: &str| {
            let Some(number) = number_of(uri) else { return Ok(()) };
            let place = seen.get_mut(number).ok_or("a resource that is none")?;
            if std::mem::replace(place, true) { Err(format!("{uri} is listed twice").into()) } else { Ok(()) }
        };
        let (first, mut cursor) = self.page(None, &mut see)?;
        while cursor.is_some() {
            cursor = self.page(cursor.as_deref(), &mut see)?.1;
        }
        let missing = seen.iter().filter(|seen| !**seen).count();
        if missing > 0 { Err(format!("{missing} resources were not listed").into()) } else { Ok(first) }
    }

    /// One page, of which `see` gets each URI, or each name of a tool.
    pub(crate) fn page(
        &mut self,
        cursor: Option<&str>,
        mut see: impl FnMut(&str) -> Result<(), Box<dyn Error>>,
    ) -> Result<Turned, Box<dyn Error>> {
        let mut request = Vec::new();
        client::list(&mut request, self.next, self.method, cursor, self.modern)?;
        self.next += 1;
        let start = Instant::now();
        self.server.write(&request)?;
        loop {
            let line = self.line()?;
            let took = start.elapsed();
            let answer = Answer::parse(&line)?;
            if answer.is_notification() {
                continue;
            }
            let Page { resources, tools, next } = answer.page()?;
            for resource in resources {
                see(&resource.uri)?;
            }
            for tool in tools {
                see(&tool.name)?;
            }
            self.resources += u64::try_from(resources.len())?;
            self.pages += 1;
            return Ok((took, next.map(String::from)));
        }
    }

    /// Reads one line.
    fn line(&mut self) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.incoming[searched..]) {
                let rest = self.incoming.split_off(searched + at + 1);
                return Ok(std::mem::replace(&mut self.incoming, rest));
            }
            searched = self.incoming.len();
            let read = self.server.read(&mut self.chunk)?;
            self.incoming.extend_from_slice(&self.chunk[..read]);
        }
    }
}
