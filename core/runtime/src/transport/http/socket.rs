//! The options of each connection's socket.

use mcp_resources_engine::limits::Limits;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// The longest idle time before the system asks whether a client is still there, in seconds (`MAX_TCP_KEEPIDLE` of Linux).
const LONGEST_IDLE: u64 = 32_767;
/// The longest time without an acknowledgement that the system takes, in milliseconds.
#[cfg(any(target_os = "android", target_os = "linux"))]
const LONGEST_STALL: u64 = i32::MAX as u64;

/// Sends answers without delay, and lets the system detect a client that has disappeared, or that accepts no data for
/// too long.
pub(super) fn prepare(socket: &TcpStream, limits: &Limits) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    // The system refuses other times.
    let idle = (limits.write_timeout / 1_000).clamp(1, LONGEST_IDLE);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(Duration::from_secs(idle)))?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    {
        let stalled = limits.write_timeout.clamp(1, LONGEST_STALL);
        socket.set_tcp_user_timeout(Some(Duration::from_millis(stalled)))?;
    }
    Ok(())
}
