//! The options of each connection's socket.

use mcp_resources_engine::limits::Limits;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// Sends answers without delay, and lets the system detect a client that has disappeared, or that accepts no data for
/// too long.
pub(super) fn prepare(socket: &TcpStream, limits: &Limits) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let stalled = Duration::from_millis(limits.write_timeout);
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(stalled))?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(stalled))?;
    Ok(())
}
