//! What is asked of the system for each connection.

use mcp_resources_engine::limits::Limits;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// Answers leave at once, and a client that is gone without a word, or takes nothing for so long, is noticed by the
/// system.
pub(super) fn prepare(socket: &TcpStream, limits: &Limits) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let stalled = Duration::from_millis(limits.write_timeout);
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(stalled))?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(stalled))?;
    Ok(())
}
