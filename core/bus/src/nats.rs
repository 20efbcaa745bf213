//! A stream of JetStream, read by an ordered consumer.
//!
//! Law: a position is the time at which the stream was made and a number in it, so a stream that was made anew is noticed. Each
//! entry must have the next number; another one means that entries are gone.

use crate::address::{BusAddress, BusUrlError};
use crate::{KEPT, phrase};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{Config, Info, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectOptions, Event, ServerAddr};
use futures_util::{FutureExt as _, StreamExt as _};
use mcp_resources_runtime::bus::{Bus, BusEntries, BusError, BusFuture, BusReader, BusWriter, IDLE};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest time for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// Maximum number of entries that are taken at once.
const BATCH: usize = 256;
/// Maximum size of a stream in bytes.
const BYTES: i64 = 64 << 20;

/// A bus on JetStream.
#[derive(Debug)]
pub struct NatsBus {
    server: ServerAddr,
    name: String,
    user: Option<String>,
    password: Option<String>,
}

/// A connection, and a signal that it has ended.
struct NatsConnection {
    context: Context,
    ended: Arc<Notify>,
}

impl NatsBus {
    pub(crate) fn new(address: &BusAddress) -> Result<Self, BusUrlError> {
        let name = address.name();
        let wrong = |_| BusUrlError::new(format!("bus is {name:?}, expected nats://HOST:PORT"));
        // The library gets the URL without credentials, so no error of it can have them.
        let server: ServerAddr = name.parse().map_err(wrong)?;
        Ok(Self { server, name, user: address.user.clone(), password: address.password.clone() })
    }

    async fn connect(&self) -> Result<NatsConnection, BusError> {
        let ended = Arc::new(Notify::new());
        let signal = ended.clone();
        let mut options = ConnectOptions::new()
            .name("mcp-resources")
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            // The task of the bus connects again itself, so that it knows what it may have missed.
            .max_reconnects(1)
            .event_callback(move |event| {
                if matches!(event, Event::Disconnected | Event::Closed) {
                    signal.notify_one();
                }
                std::future::ready(())
            });
        options = match (&self.user, &self.password) {
            (Some(user), Some(password)) => options.user_and_password(user.clone(), password.clone()),
            (Some(token), None) => options.token(token.clone()),
            _ => options,
        };
        let client = options.connect(&self.server).await.map_err(|error| phrase(&error))?;
        let mut context = jetstream::new(client);
        context.set_timeout(PATIENCE);
        Ok(NatsConnection { context, ended })
    }

    async fn stream(&self, context: &Context, topic: &str) -> Result<Stream, BusError> {
        let name = stream_name(topic);
        let config = Config {
            subjects: vec![subject(topic)],
            max_messages: KEPT as i64,
            max_bytes: BYTES,
            description: Some("Changes between the processes of an mcp-resources server".into()),
            name,
            ..Config::default()
        };
        context.get_or_create_stream(config).await.map_err(|error| phrase(&error))
    }
}

/// The name of a server where only letters, digits, "-" and "_" may stand. Two names that look alike then have different ends.
fn stream_name(topic: &str) -> String {
    let plain: String = topic
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' })
        .take(64)
        .collect();
    if plain == topic {
        return format!("mcp-resources-{plain}");
    }
    let hash = topic.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("mcp-resources-{plain}-{hash:016x}")
}

fn subject(topic: &str) -> String {
    stream_name(topic)
}

/// When the stream was made, as a part of a position.
fn birth(info: &Info) -> String {
    info.created.to_string()
}

impl Bus for NatsBus {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open<'b>(&'b self, topic: &'b str) -> BusFuture<'b, Box<dyn BusWriter>> {
        Box::pin(async move {
            let connection = self.connect().await?;
            self.stream(&connection.context, topic).await?;
            Ok(Box::new(NatsWriter { connection, subject: subject(topic) }) as Box<dyn BusWriter>)
        })
    }

    fn follow<'b>(&'b self, topic: &'b str, from: Option<&'b str>) -> BusFuture<'b, Box<dyn BusReader>> {
        Box::pin(async move {
            let NatsConnection { context, ended } = self.connect().await?;
            let stream = self.stream(&context, topic).await?;
            let info = stream.cached_info();
            let made = birth(info);
            let known = from.and_then(|from| from.rsplit_once(':'));
            let known = known.and_then(|(made, last)| Some((made, last.parse::<u64>().ok()?)));
            let sound = known.filter(|(known, last)| {
                *known == made && last + 1 >= info.state.first_sequence && *last <= info.state.last_sequence
            });
            let last = sound.map_or(info.state.last_sequence, |(_, last)| last);
            let has_gap = from.is_some() && sound.is_none();
            let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: last + 1 };
            let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
            let consumer = stream.create_consumer(config).await.map_err(|error| phrase(&error))?;
            let messages = consumer.messages().await.map_err(|error| phrase(&error))?;
            Ok(Box::new(NatsReader { stream, messages: Box::new(messages), ended, made, last, has_gap })
                as Box<dyn BusReader>)
        })
    }
}

struct NatsWriter {
    connection: NatsConnection,
    subject: String,
}

impl BusWriter for NatsWriter {
    fn append<'b>(&'b mut self, messages: &'b [String]) -> BusFuture<'b, ()> {
        Box::pin(async move {
            for batch in messages.chunks(BATCH) {
                let mut promised = Vec::with_capacity(batch.len());
                for message in batch {
                    let publish =
                        self.connection.context.publish(self.subject.clone(), message.clone().into());
                    promised.push(publish.await.map_err(|error| phrase(&error))?);
                }
                for acknowledgement in promised {
                    acknowledgement.await.map_err(|error| phrase(&error))?;
                }
            }
            Ok(())
        })
    }
}

struct NatsReader {
    stream: Stream,
    messages: Box<Ordered>,
    ended: Arc<Notify>,
    /// When the stream was made.
    made: String,
    /// The number of the last entry.
    last: u64,
    has_gap: bool,
}

impl NatsReader {
    /// Adds an entry, unless it was read before.
    fn take(&mut self, message: &jetstream::Message, entries: &mut BusEntries) -> Result<(), BusError> {
        let number = message.info().map_err(|error| phrase(&error))?.stream_sequence;
        if number <= self.last {
            return Ok(());
        }
        entries.has_gap |= number > self.last + 1;
        self.last = number;
        entries.messages.push(message.payload.to_vec());
        Ok(())
    }
}

/// Checks that a stream is still there, and is the one that was made then.
async fn check(stream: &Stream, made: &str, last: u64) -> Result<(), BusError> {
    let info = stream.get_info().await.map_err(|error| phrase(&error))?;
    match birth(&info) == made && info.state.last_sequence >= last {
        true => Ok(()),
        false => Err(BusError::new("its stream was made anew")),
    }
}

impl BusReader for NatsReader {
    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn position(&self) -> String {
        format!("{}:{}", self.made, self.last)
    }

    fn next(&mut self) -> BusFuture<'_, BusEntries> {
        Box::pin(async move {
            let lost = || BusError::new("the connection has ended");
            let first = tokio::select! {
                () = self.ended.notified() => return Err(lost()),
                first = tokio::time::timeout(IDLE, self.messages.next()) => first,
            };
            let mut entries = BusEntries::default();
            let Ok(first) = first else {
                check(&self.stream, &self.made, self.last).await?;
                return Ok(entries);
            };
            let mut next = Some(first);
            while let Some(message) = next {
                let message = message.ok_or_else(lost)?.map_err(|error| phrase(&error))?;
                self.take(&message, &mut entries)?;
                let is_full = entries.messages.len() >= BATCH;
                next = if is_full { None } else { self.messages.next().now_or_never() };
            }
            Ok(entries)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_streams_are_allowed_and_differ() {
        assert_eq!(stream_name("notes"), "mcp-resources-notes");
        let odd = ["my notes", "my.notes", "my*notes", "näh", &"x".repeat(500)].map(stream_name);
        for name in &odd {
            assert!(
                name.len() < 120
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            );
        }
        let distinct: std::collections::HashSet<_> = odd.iter().collect();
        assert_eq!(distinct.len(), odd.len());
    }
}
