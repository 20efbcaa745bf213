//! A Unix socket, for the processes of one machine. One of them carries the messages of all; when it ends, another one does.
//!
//! ```text
//!   the process that holds PATH.lock: accepts at PATH ──▶ a channel ──▶ every reader
//!   each process: a connection that appends, and one that reads
//! ```
//!
//! Law: nothing is kept for a process that is away: after it connects again, it announces everything as changed. The system
//! releases the lock when its process ends, however it ends.

use mcp_resources_runtime::bus::{
    Bus, BusEntries, BusError, BusFuture, BusReader, BusWriter, IDLE, MESSAGE_BYTES,
};
use rustix::fs::{FlockOperation, Mode, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast};

/// Maximum number of connections: two for each process.
const CONNECTIONS: usize = 512;
/// Maximum number of messages that wait for a slow reader. It is disconnected when there are more.
const WAITING: usize = 1_024;
/// The first byte of a connection: what it does.
const APPENDS: u8 = b'a';
const READS: u8 = b'r';
/// The answer to a message.
const TAKEN: u8 = b'.';

/// A bus on a Unix socket.
#[derive(Debug)]
pub struct LocalBus {
    path: PathBuf,
}

impl LocalBus {
    /// The bus at this path. Its directory exists, and only the user of the server may write there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    async fn connect(&self, role: u8) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.path).await?;
        stream.write_all(&[role]).await?;
        // The other side answers when it has registered the connection.
        match stream.read_u8().await? {
            TAKEN => Ok(stream),
            _ => Err(io::Error::other("the socket belongs to another program")),
        }
    }

    /// Connects; if no process carries messages, this one begins to.
    async fn connect_or_carry(&self, role: u8) -> Result<UnixStream, BusError> {
        if let Ok(stream) = self.connect(role).await {
            return Ok(stream);
        }
        self.carry().map_err(|error| reason(&error))?;
        self.connect(role).await.map_err(|error| reason(&error))
    }

    /// Begins to carry messages, if no other process does.
    fn carry(&self) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(name)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        remove_socket(&self.path)?;
        let listener = UnixListener::bind(&self.path)?;
        // Messages are sealed, but only processes of this user may add some.
        rustix::fs::chmod(&self.path, Mode::from_raw_mode(0o600))?;
        tokio::spawn(accept(listener, lock));
        Ok(())
    }
}

/// Removes the socket of a process that has ended, and nothing else.
fn remove_socket(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::other("there is a file that is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Serves connections until the runtime ends, and holds the lock as long.
async fn accept(listener: UnixListener, lock: File) {
    let (sender, _) = broadcast::channel::<Arc<[u8]>>(WAITING);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else { break };
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let sender = sender.clone();
        tokio::spawn(async move {
            // A connection that fails is closed; its process connects again.
            let _ = serve(stream, sender).await;
            drop(place);
        });
    }
    drop(lock);
}

async fn serve(mut stream: UnixStream, sender: broadcast::Sender<Arc<[u8]>>) -> io::Result<()> {
    match stream.read_u8().await? {
        READS => {
            let mut messages = sender.subscribe();
            drop(sender);
            stream.write_u8(TAKEN).await?;
            let (mut from, mut to) = stream.into_split();
            let mut end = [0];
            loop {
                tokio::select! {
                    message = messages.recv() => match message {
                        Ok(message) => {
                            to.write_u32(u32::try_from(message.len()).unwrap_or_default()).await?;
                            to.write_all(&message).await?;
                        }
                        // It has missed messages: it connects again, and knows.
                        Err(_) => return Ok(()),
                    },
                    // A reader sends nothing more, so this is its end.
                    _ = from.read(&mut end) => return Ok(()),
                }
            }
        }
        APPENDS => {
            stream.write_u8(TAKEN).await?;
            let (from, mut to) = stream.into_split();
            let mut from = BufReader::new(from);
            loop {
                let message = read_message(&mut from).await?;
                // It fails if no process reads, and then none needs the message.
                let _ = sender.send(message.into());
                to.write_u8(TAKEN).await?;
            }
        }
        _ => Ok(()),
    }
}

async fn read_message(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(from.read_u32().await?).unwrap_or(usize::MAX);
    if length == 0 || length > MESSAGE_BYTES {
        return Err(io::Error::other("a message is empty or too long"));
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message).await?;
    Ok(message)
}

fn reason(error: &io::Error) -> BusError {
    BusError::new(error.to_string())
}

impl Bus for LocalBus {
    fn name(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    fn open<'b>(&'b self, _topic: &'b str) -> BusFuture<'b, Box<dyn BusWriter>> {
        Box::pin(async {
            let stream = self.connect_or_carry(APPENDS).await?;
            Ok(Box::new(LocalWriter { stream }) as Box<dyn BusWriter>)
        })
    }

    fn follow<'b>(&'b self, _topic: &'b str, from: Option<&'b str>) -> BusFuture<'b, Box<dyn BusReader>> {
        Box::pin(async move {
            let (from_bus, to_bus) = self.connect_or_carry(READS).await?.into_split();
            let reader = LocalReader {
                from: BufReader::new(from_bus),
                _to: to_bus,
                has_gap: from.is_some(),
                partial: Vec::new(),
            };
            Ok(Box::new(reader) as Box<dyn BusReader>)
        })
    }
}

struct LocalWriter {
    stream: UnixStream,
}

impl BusWriter for LocalWriter {
    fn append<'b>(&'b mut self, messages: &'b [String]) -> BusFuture<'b, ()> {
        Box::pin(async move {
            for message in messages {
                let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
                let mut frame = length.to_be_bytes().to_vec();
                frame.extend_from_slice(message.as_bytes());
                self.stream.write_all(&frame).await.map_err(|error| reason(&error))?;
                self.stream.read_u8().await.map_err(|error| reason(&error))?;
            }
            Ok(())
        })
    }
}

struct LocalReader {
    from: BufReader<OwnedReadHalf>,
    /// Open, because its end would be taken for that of the connection.
    _to: tokio::net::unix::OwnedWriteHalf,
    has_gap: bool,
    /// The beginning of a message: the wait for the rest of it may be cut off.
    partial: Vec<u8>,
}

impl LocalReader {
    /// The next message. What was read of it stays if this is dropped before its end.
    async fn message(&mut self) -> io::Result<Vec<u8>> {
        const HEAD: usize = 4;
        loop {
            let length = match self.partial.first_chunk::<HEAD>() {
                Some(head) => HEAD + usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX),
                None => HEAD,
            };
            if length > HEAD + MESSAGE_BYTES {
                return Err(io::Error::other("a message is too long"));
            }
            if self.partial.len() == length && length > HEAD {
                return Ok(std::mem::take(&mut self.partial).split_off(HEAD));
            }
            let mut chunk = vec![0; length - self.partial.len()];
            match self.from.read(&mut chunk).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.partial.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            }
        }
    }
}

impl BusReader for LocalReader {
    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn position(&self) -> String {
        // There is no log to come back to.
        String::new()
    }

    fn next(&mut self) -> BusFuture<'_, BusEntries> {
        Box::pin(async {
            match tokio::time::timeout(IDLE, self.message()).await {
                Ok(Ok(message)) => Ok(BusEntries { messages: vec![message], has_gap: false }),
                Ok(Err(error)) => Err(match error.kind() {
                    io::ErrorKind::UnexpectedEof => BusError::new("the process that carries it has ended"),
                    _ => reason(&error),
                }),
                Err(_) => Ok(BusEntries::default()),
            }
        })
    }
}
