//! Opens files that a person names in an option, on a command line or in a configuration.
//!
//! Law: a name is looked at before it is opened. Opening a pipe waits for its other end and is noticed there, and a device may
//! do anything; neither is a file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file to read it. It must be a regular one, or an open descriptor of this process, such as `/dev/fd/63`, which a shell
/// puts in the place of a file.
///
/// # Errors
/// The system's error; [`io::ErrorKind::IsADirectory`], or [`io::ErrorKind::Unsupported`] with the reason, if it is no file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    if is_descriptor(path) {
        return File::open(path);
    }
    check(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // It may have been replaced since.
    let file = without_waiting(&mut options).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Makes opening return at once, whatever the name stands for meanwhile. Reading and writing files is not affected.
pub(super) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
}

/// The kind of an entry that is not a regular file, for messages.
pub(super) fn kind(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

fn check(metadata: &Metadata) -> io::Result<()> {
    match kind(metadata) {
        None => Ok(()),
        Some(_) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Some(kind) => Err(io::Error::new(io::ErrorKind::Unsupported, format!("it is {kind}; name a file"))),
    }
}

fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    // S-01: what is no file is refused at once, and nobody at the other end of a pipe notices.
    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = std::env::temp_dir().join(format!("mcp-resources-regular-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let file = folder.join("file");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, "text").unwrap();
        let refused = |path: &Path| open_to_read(path).unwrap_err();
        assert_eq!(refused(&pipe).to_string(), "it is a pipe; name a file");
        std::os::unix::fs::symlink(&pipe, folder.join("link")).unwrap();
        assert_eq!(refused(&folder.join("link")).to_string(), "it is a pipe; name a file");
        assert_eq!(refused(Path::new("/dev/null")).to_string(), "it is a device; name a file");
        let socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        assert_eq!(refused(&folder.join("socket")).to_string(), "it is a socket; name a file");
        drop(socket);
        assert_eq!(refused(&folder).kind(), io::ErrorKind::IsADirectory);
        assert_eq!(refused(&folder.join("none")).kind(), io::ErrorKind::NotFound);
        let mut text = String::new();
        open_to_read(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
