//! W4: `resources/list`, page by page to its end.

use crate::client::{self, Answer};
use crate::figures::{Figures, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
use std::error::Error;
use std::time::Instant;

/// Starts the server and walks its list until as many walks are done or the time is over; one walk at least.
pub(crate) fn measure(launch: &Launch, listed: u32, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut walker = Walker::new(Server::start(launch, None)?, setting.modern)?;
    for _ in 0..setting.warm {
        walker.walk(listed)?;
    }
    (walker.resources, walker.pages) = (0, 0);
    let (cpu, start) = (walker.server.cpu_ns()?, Instant::now());
    for _ in 0..setting.requests {
        walker.walk(listed)?;
        if start.elapsed() > setting.time {
            break;
        }
    }
    let (cpu, wall) = (walker.server.cpu_ns()? - cpu, start.elapsed());
    Ok(Figures::default()
        .with("rate", 1.0 / per(wall.as_secs_f64(), walker.resources))
        .with("cpu_us_item", per(micros(cpu), walker.resources))
        .with("cpu_us_page", per(micros(cpu), walker.pages)))
}

struct Walker {
    server: Server,
    modern: bool,
    next: u64,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
    resources: u64,
    pages: u64,
}

impl Walker {
    fn new(server: Server, modern: bool) -> Result<Self, Box<dyn Error>> {
        let (incoming, chunk) = (Vec::new(), vec![0; 1 << 18]);
        let mut walker = Self { server, modern, next: 1, incoming, chunk, resources: 0, pages: 0 };
        if !modern {
            walker.server.write(client::INITIALIZE)?;
            walker.line()?;
            walker.incoming.clear();
            walker.server.write(client::INITIALIZED)?;
        }
        Ok(walker)
    }

    /// One walk; every `bench://r/{n}` must come exactly once.
    fn walk(&mut self, listed: u32) -> Result<(), Box<dyn Error>> {
        let mut seen = vec![false; usize::try_from(listed)?];
        let mut cursor: Option<String> = None;
        loop {
            let mut request = Vec::new();
            client::list(&mut request, self.next, cursor.as_deref(), self.modern)?;
            self.next += 1;
            self.server.write(&request)?;
            self.line()?;
            let answer = Answer::parse(self.incoming.trim_ascii_end())?;
            let (page, next) = answer.page()?;
            for resource in page {
                let number = resource.uri.strip_prefix("bench://r/").map(str::parse::<usize>);
                if let Some(number) = number.transpose()? {
                    let place = seen.get_mut(number).ok_or("a resource that is none")?;
                    if std::mem::replace(place, true) {
                        return Err(format!("{} is listed twice", resource.uri).into());
                    }
                }
            }
            self.resources += u64::try_from(page.len())?;
            self.pages += 1;
            cursor = next.map(String::from);
            self.incoming.clear();
            if cursor.is_none() {
                break;
            }
        }
        let missing = seen.iter().filter(|seen| !**seen).count();
        if missing > 0 { Err(format!("{missing} resources were not listed").into()) } else { Ok(()) }
    }

    /// Reads one line.
    fn line(&mut self) -> Result<(), Box<dyn Error>> {
        while !self.incoming.ends_with(b"\n") {
            let read = self.server.read(&mut self.chunk)?;
            self.incoming.extend_from_slice(&self.chunk[..read]);
        }
        Ok(())
    }
}
