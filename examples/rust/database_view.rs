//! A database view: what a query returns, as JSON.
//!
//! db://analytics/daily_summary        one row for each day
//! db://analytics/daily_summary/{day}  one day; listed, and completes the days that exist

use mcp_resources::{
    CompletionRequest, Contents, HandlerError, ListRequest, ReadError, ReadRequest, Resource, ResourceServer,
    Template, blocking,
};
use mcp_resources_examples::data;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

const URI: &str = "db://analytics/daily_summary";
const SUMMARY: &str = "SELECT day, count(*), round(sum(revenue), 2) FROM orders";

#[derive(Serialize)]
struct Day {
    day: String,
    orders: u32,
    revenue: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = Arc::new(Database::open()?);
    let [all, one, starting, listed] = std::array::from_fn(|_| database.clone());
    let summary = Resource::new(URI).mime_type("application/json");
    let day = Template::new(format!("{URI}/{{day}}")).mime_type("application/json");
    let server = ResourceServer::builder("analytics", "1.0.0")
        .resource(
            summary.description("Orders and revenue of each day."),
            blocking(move |_| Ok::<_, HandlerError>(Contents::json(&all.days(None)?)?)),
        )
        .template(
            day.description("Orders and revenue of one day."),
            blocking(move |request: ReadRequest| {
                let days = one.days(request.param("day"))?;
                Ok::<_, HandlerError>(Contents::json(days.first().ok_or(ReadError::NotFound)?)?)
            }),
        )
        .complete(
            "day",
            blocking(move |request: CompletionRequest| {
                let days = starting.days(None)?.into_iter().map(|day| day.day);
                Ok::<_, HandlerError>(days.filter(|day| day.starts_with(&request.value)).collect::<Vec<_>>())
            }),
        )
        .list(blocking(move |_: ListRequest| {
            let days = listed.days(None)?.into_iter();
            let resources = days.map(|day| Resource::new(format!("{URI}/{}", day.day)).name(day.day));
            Ok::<_, HandlerError>(resources.collect::<Vec<_>>())
        }))
        .build()?;
    Ok(server.run_stdio().await?)
}

/// Handlers run on several threads: they take turns.
struct Database(Mutex<Connection>);

impl Database {
    fn open() -> Result<Self, Box<dyn Error>> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(&std::fs::read_to_string(data("analytics.sql"))?)?;
        Ok(Self(Mutex::new(connection)))
    }

    fn days(&self, day: Option<&str>) -> Result<Vec<Day>, rusqlite::Error> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let query = format!("{SUMMARY} WHERE ?1 IS NULL OR day = ?1 GROUP BY day ORDER BY day");
        let mut statement = connection.prepare_cached(&query)?;
        let rows = statement.query_map(params![day], |row| {
            Ok(Day { day: row.get(0)?, orders: row.get(1)?, revenue: row.get(2)? })
        })?;
        rows.collect()
    }
}
