//! The documents of a folder.
//!
//! Law: a file that was changed just now has another stamp with each listing, until a later change must show in it.

use crate::docs::site::{is_page, key};
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_files::folder::{Folder, GoneFolder, UnreadFile};
use mcp_resources_provider_kit::document_source::{
    BYTES, DOCUMENTS, DocumentSource, FetchedDocument, ListedDocument, SourceChanges, SourceError, TOO_LARGE,
};

/// The Markdown and text files of a directory.
#[derive(Debug)]
pub(super) struct FolderSource {
    folder: Folder,
}

impl FolderSource {
    pub(super) fn new(folder: Folder) -> Self {
        Self { folder }
    }

    /// The path of a document on disk.
    fn locate(&self, id: &str) -> Option<Vec<u8>> {
        let path = mcp_resources_provider_kit::uri_path::decode(id).filter(|path| is_document(path))?;
        if self.folder.is_dir(&path) == Some(false) {
            return Some(path);
        }
        let mut found = None;
        let _ = self.folder.walk(&mut |path, _| {
            if is_document(&path) && key(&path) == id {
                found = Some(path);
            }
            found.is_none()
        });
        found
    }
}

impl DocumentSource for FolderSource {
    fn list(&self) -> Result<Vec<ListedDocument>, SourceError> {
        let mut documents = Vec::new();
        let walked = self.folder.walk(&mut |path, facts| {
            if is_document(&path) {
                // A file that was changed just now may change again and look the same.
                let stamp = facts.stamp().unwrap_or_else(|| format!("{:?} unsettled", facts.modified()));
                let size = Some(facts.size);
                documents.push(ListedDocument {
                    id: key(&path),
                    title: None,
                    stamp,
                    modified: facts.modified(),
                    size,
                });
            }
            documents.len() < DOCUMENTS
        });
        match walked {
            Ok(_) => Ok(documents),
            Err(GoneFolder) => {
                Err(SourceError::Failed(format!("{} cannot be opened", self.folder.dir().display())))
            }
        }
    }

    fn fetch(&self, id: &str) -> Result<FetchedDocument, SourceError> {
        let path = self.locate(id).ok_or(SourceError::NotFound)?;
        let check = |size: u64| match size > BYTES {
            true => Err(ReadError::SizeExceeded { limit: BYTES, size: Some(size) }),
            false => Ok(()),
        };
        let read = self.folder.read(&path, BYTES + 1, &|own| key(own) == id, &check);
        let (bytes, _) = read.map_err(|unread| match unread {
            UnreadFile::Failed(reason) => SourceError::Failed(reason),
            UnreadFile::Refused(_) => SourceError::Unreadable(TOO_LARGE.into()),
            UnreadFile::NotFound => SourceError::NotFound,
        })?;
        let mime_type = if is_page(&path) { "text/markdown" } else { "text/plain" };
        Ok(FetchedDocument { text: String::from_utf8_lossy(&bytes).into_owned(), mime_type })
    }

    fn changes_since(&self, _token: Option<&str>) -> Result<SourceChanges, SourceError> {
        Ok(SourceChanges::All { documents: self.list()?, token: None })
    }

    fn take_faults(&self) -> Vec<String> {
        self.folder.take_faults()
    }
}

fn is_document(path: &[u8]) -> bool {
    is_page(path)
        || path.len() > 4 && path.get(path.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(b".txt"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_provider_files::folder::FolderOptions;
    use mcp_resources_provider_kit::named::NamedPath;
    use mcp_resources_provider_kit::wanted::while_wanted;
    use std::cell::Cell;
    use std::rc::Rc;

    /// The number of times that `work` asks whether it is wanted, if the answer is no after `most` times.
    fn asked<T>(most: usize, work: impl FnOnce() -> T) -> usize {
        let count = Rc::new(Cell::new(0));
        let own = count.clone();
        while_wanted(move || own.replace(own.get() + 1) < most, work);
        count.get()
    }

    // S-32: a search for a name through a whole folder asks at each entry whether it is still wanted, and ends if it is not.
    #[test]
    fn walks_end_when_nobody_waits() {
        let dir = std::env::temp_dir().join(format!("mcp-rag-walks-{}", std::process::id()));
        for number in 0..300 {
            let place = dir.join(format!("d{}", number % 10));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join(format!("{number}.bin")), "x").unwrap();
        }
        let named = [NamedPath::new("book", &dir)];
        let folder = Folder::all("rag", "collection", &named, &FolderOptions::new()).unwrap().remove(0);
        let source = FolderSource::new(folder.clone());
        for most in [0, 7, 100] {
            assert_eq!(asked(most, || source.fetch("none.md")), most + 1);
        }
        assert!(asked(usize::MAX, || source.fetch("none.md")) >= 310);
        for most in [0, 7] {
            assert_eq!(asked(most, || folder.name_in(b"d1", &|_| false)), most + 1);
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
