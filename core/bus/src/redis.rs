//! A stream of Redis or Valkey: `XADD MAXLEN ~`, and `XREAD BLOCK` from the last id.
//!
//! Law: nothing is trimmed behind an entry that is still there, because a stream loses its oldest entries first. So a position is
//! sound while its own entry exists.

use crate::address::{BusAddress, BusUrlError};
use crate::{KEPT, phrase};
use ::redis::aio::MultiplexedConnection;
use ::redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use ::redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, RedisError, Value, cmd};
use mcp_resources_runtime::bus::{
    Bus, BusEntries, BusError, BusFuture, BusReader, BusWriter, IDLE, RateStore,
};
use std::time::Duration;

/// The longest time for a connection or an answer that does not wait for entries.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of entries in one answer.
const BATCH: usize = 256;
/// The field of an entry that has the message.
const FIELD: &str = "message";
/// The position before every entry.
const START: &str = "0-0";

/// A bus on a stream of Redis.
#[derive(Debug)]
pub struct RedisBus {
    client: Client,
    name: String,
}

impl RedisBus {
    pub(crate) fn new(address: &BusAddress) -> Result<Self, BusUrlError> {
        let name = address.name();
        let wrong = |_: RedisError| {
            BusUrlError::new(format!("bus is {name:?}, expected redis://HOST:PORT/DB with a number as DB"))
        };
        // The library gets the URL without credentials, so no error of it can have them.
        let info = name.as_str().into_connection_info().map_err(wrong)?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &address.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &address.password {
            settings = settings.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(settings)).map_err(wrong)?;
        Ok(Self { client, name })
    }

    pub(crate) async fn connect(&self, patience: Duration) -> Result<MultiplexedConnection, BusError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(patience));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config);
        connection.await.map_err(|error| reason(&error))
    }
}

/// The key of the stream of a server.
pub(crate) fn key(topic: &str) -> String {
    format!("mcp-resources:{topic}")
}

pub(crate) fn reason(error: &RedisError) -> BusError {
    phrase(error)
}

impl Bus for RedisBus {
    fn rates(&self) -> Option<&dyn RateStore> {
        Some(self)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn open<'b>(&'b self, topic: &'b str) -> BusFuture<'b, Box<dyn BusWriter>> {
        Box::pin(async move {
            let connection = self.connect(PATIENCE).await?;
            Ok(Box::new(RedisWriter { connection, key: key(topic) }) as Box<dyn BusWriter>)
        })
    }

    fn follow<'b>(&'b self, topic: &'b str, from: Option<&'b str>) -> BusFuture<'b, Box<dyn BusReader>> {
        Box::pin(async move {
            let mut connection = self.connect(IDLE + PATIENCE).await?;
            let key = key(topic);
            if let Some(from) = from {
                let own = entries(&mut connection, cmd("XRANGE").arg(&key).arg(from).arg(from)).await?;
                if !own.is_empty() {
                    let last = from.to_owned();
                    return Ok(
                        Box::new(RedisReader { connection, key, last, has_gap: false }) as Box<dyn BusReader>
                    );
                }
            }
            let mut newest = cmd("XREVRANGE");
            newest.arg(&key).arg("+").arg("-").arg("COUNT").arg(1);
            let newest = entries(&mut connection, &newest).await?;
            let last = newest.into_iter().next().map_or_else(|| START.to_owned(), |entry| entry.id);
            // A stream that has been empty all the time has lost nothing.
            let has_gap = from.is_some_and(|from| from != START || last != START);
            Ok(Box::new(RedisReader { connection, key, last, has_gap }) as Box<dyn BusReader>)
        })
    }
}

async fn entries(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Vec<StreamId>, BusError> {
    let reply = command.query_async::<StreamRangeReply>(connection).await;
    reply.map(|reply| reply.ids).map_err(|error| reason(&error))
}

struct RedisWriter {
    connection: MultiplexedConnection,
    key: String,
}

impl BusWriter for RedisWriter {
    fn append<'b>(&'b mut self, messages: &'b [String]) -> BusFuture<'b, ()> {
        Box::pin(async move {
            for batch in messages.chunks(BATCH) {
                let mut pipe = ::redis::pipe();
                for message in batch {
                    pipe.cmd("XADD").arg(&self.key).arg("MAXLEN").arg("~").arg(KEPT);
                    pipe.arg("*").arg(FIELD).arg(message).ignore();
                }
                pipe.query_async::<()>(&mut self.connection).await.map_err(|error| reason(&error))?;
            }
            Ok(())
        })
    }
}

struct RedisReader {
    connection: MultiplexedConnection,
    key: String,
    /// The id of the last entry.
    last: String,
    has_gap: bool,
}

impl BusReader for RedisReader {
    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn position(&self) -> String {
        self.last.clone()
    }

    fn next(&mut self) -> BusFuture<'_, BusEntries> {
        Box::pin(async move {
            let mut read = cmd("XREAD");
            read.arg("COUNT").arg(BATCH).arg("BLOCK").arg(IDLE.as_secs() * 1_000);
            read.arg("STREAMS").arg(&self.key).arg(&self.last);
            let reply = read.query_async::<Option<StreamReadReply>>(&mut self.connection).await;
            let streams = reply.map_err(|error| reason(&error))?.map_or_else(Vec::new, |reply| reply.keys);
            let mut messages = Vec::new();
            for entry in streams.into_iter().flat_map(|stream| stream.ids) {
                self.last = entry.id;
                // An entry of a stranger has no such field: it opens as little as an empty text.
                messages.push(match entry.map.into_iter().find(|(field, _)| field == FIELD) {
                    Some((_, Value::BulkString(message))) => message,
                    _ => Vec::new(),
                });
            }
            Ok(BusEntries { messages, has_gap: false })
        })
    }
}
