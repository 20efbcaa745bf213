//! Shared rates in Redis or Valkey: a key for each bucket, the time at which it is full again by the clock of Redis.
//!
//! Law: a bucket that is full has no key, because each key expires when its bucket is full. What stands in a key and is no such
//! time counts as a full bucket.

use crate::redis::{PATIENCE, RedisBus, key, reason};
use ::redis::aio::MultiplexedConnection;
use ::redis::cmd;
use mcp_resources_runtime::bus::{BusError, BusFuture, RateCounter, RateStore, RateUse};

/// For each key: adds a use (`ARGV[2 n - 1]`) and keeps at most the longest time to a full bucket (`ARGV[2 n]`), both in
/// microseconds. Answers with the times until the buckets are full.
const SCRIPT: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local missing = {}
for n, key in ipairs(KEYS) do
  local kept = redis.pcall('GET', key)
  local full = type(kept) == 'string' and tonumber(kept) or now
  if not (full > now) then full = now end
  full = full + tonumber(ARGV[2 * n - 1])
  local longest = now + tonumber(ARGV[2 * n])
  if not (full < longest) then full = longest end
  redis.call('SET', key, string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000) + 1))
  missing[n] = math.floor(full - now)
end
return missing";

struct RedisCounter {
    connection: MultiplexedConnection,
    /// The digest of the script, by which Redis knows it.
    script: String,
    prefix: String,
}

impl RateStore for RedisBus {
    fn open_rates<'b>(&'b self, topic: &'b str) -> BusFuture<'b, Box<dyn RateCounter>> {
        Box::pin(async move {
            let mut connection = self.connect(PATIENCE).await?;
            let load = cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut connection).await;
            let script = load.map_err(|error| reason(&error))?;
            let prefix = format!("{}:rate:", key(topic));
            Ok(Box::new(RedisCounter { connection, script, prefix }) as Box<dyn RateCounter>)
        })
    }
}

impl RateCounter for RedisCounter {
    fn add<'b>(&'b mut self, uses: &'b [RateUse]) -> BusFuture<'b, Vec<u64>> {
        Box::pin(async move {
            let mut call = cmd("EVALSHA");
            call.arg(&self.script).arg(uses.len());
            for rate in uses {
                call.arg(format!("{}{}", self.prefix, rate.name));
            }
            for rate in uses {
                call.arg(microseconds(rate.used)).arg(microseconds(rate.longest));
            }
            let missing: Vec<u64> =
                call.query_async(&mut self.connection).await.map_err(|error| reason(&error))?;
            if missing.len() != uses.len() {
                return Err(BusError::new("its answer about rates has another length"));
            }
            Ok(missing.into_iter().map(|time| time.saturating_mul(1_000)).collect())
        })
    }
}

/// Nanoseconds as microseconds, at least 1.
fn microseconds(time: u64) -> u64 {
    time.div_ceil(1_000)
}
