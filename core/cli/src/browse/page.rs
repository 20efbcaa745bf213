//! The files of the page, which `npm run build` makes of `core/cli/web`, compressed with gzip.

/// A file of the page.
pub(super) struct PageFile {
    /// Its media type.
    pub(super) kind: &'static str,
    /// Its bytes, compressed with gzip.
    pub(super) bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file at a path below the token.
pub(super) fn file(path: &str) -> Option<PageFile> {
    let (kind, bytes): (_, &'static [u8]) = match path {
        "" => ("text/html; charset=utf-8", include_bytes!("../../web/dist/index.html.gz")),
        "app.js" => (SCRIPT, include_bytes!("../../web/dist/app.js.gz")),
        "views.js" => (SCRIPT, include_bytes!("../../web/dist/views.js.gz")),
        "app.css" => ("text/css; charset=utf-8", include_bytes!("../../web/dist/app.css.gz")),
        "licenses.txt" => ("text/plain; charset=utf-8", include_bytes!("../../web/dist/licenses.txt.gz")),
        _ => return None,
    };
    Some(PageFile { kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 400_000;

    #[test]
    fn the_page_is_small() {
        let names = ["", "app.js", "views.js", "app.css", "licenses.txt"];
        let size: usize = names.iter().filter_map(|name| file(name)).map(|file| file.bytes.len()).sum();
        assert!(size > 10_000 && size <= MOST, "{size} bytes");
        assert!(file("index.html").is_none() && file("../app.js").is_none());
    }
}
