//! Replaces files atomically: a reader sees the old or the new contents, never a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes a temporary file in the same folder, and renames it.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    if !folder.as_os_str().is_empty() {
        fs::create_dir_all(&folder)?;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let write = |mut file: File| {
        if let Ok(old) = fs::metadata(path) {
            keep_owner(&file, &old)?;
            // After the owner, whose change clears some bits.
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    let own = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let written = own.and_then(write);
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Gives a new file the owner and the group of the file that it replaces.
fn keep_owner(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))
        .map_err(|error| io::Error::new(error.kind(), format!("its owner cannot be kept ({error})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("mcp-resources-install-{}", std::process::id()));
        let path = folder.join("deep/mcp.json");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        replace(&path, "1").unwrap();
        assert_eq!(mode(), 0o600);
        for kept in [0o600, 0o644, 0o660, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            replace(&path, "2").unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap(), mode()), ("2".to_owned(), kept));
        }
        // Only root may give a file away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
            replace(&path, "3").unwrap();
            let file = fs::metadata(&path).unwrap();
            assert_eq!((file.uid(), file.gid(), mode()), (1234, 4321, 0o400));
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
