//! A folder of files, as the servers of agents' configurations are: `project_files --root FOLDER`.
//!
//! file:///project/{+path}  a file below the folder; a change is told within a tenth of a second

use mcp_resources::{
    HandlerError, ListRequest, ReadError, ReadRequest, Resource, ResourceServer, Template, blocking,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = match &std::env::args().collect::<Vec<_>>()[..] {
        [_, option, root] if option == "--root" => fs::canonicalize(root)?,
        _ => return Err("usage: project_files --root FOLDER".into()),
    };
    let (read_root, list_root) = (root.clone(), root.clone());
    let template = Template::new("file:///project/{+path}").title("A file of the project");
    let server = ResourceServer::builder("filesystem", "1.0.0")
        .template(template, blocking(move |request: ReadRequest| read(&read_root, &request)))
        .list(blocking(move |_: ListRequest| list(&list_root)))
        .build()?;
    let told = server.clone();
    std::thread::spawn(move || tell(&told, &root));
    Ok(server.run_stdio().await?)
}

fn read(root: &Path, request: &ReadRequest) -> Result<String, HandlerError> {
    let file = root.join(request.param("path").unwrap_or_default());
    match fs::canonicalize(file) {
        Ok(file) if file.starts_with(root) && file.is_file() => Ok(fs::read_to_string(file)?),
        _ => Err(ReadError::NotFound.into()),
    }
}

fn list(root: &Path) -> Result<Vec<Resource>, HandlerError> {
    let name = |uri: &str| uri.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(times(root)?.into_keys().map(|uri| Resource::new(&*uri).name(name(&uri))).collect())
}

/// When each file was changed, by URI.
fn times(root: &Path) -> io::Result<BTreeMap<String, SystemTime>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.insert(format!("file:///project/{}", path.display()), entry.metadata()?.modified()?);
            }
        }
    }
    Ok(found)
}

fn tell(server: &ResourceServer, root: &Path) {
    let mut before = times(root).unwrap_or_default();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = times(root).unwrap_or_default();
        for uri in before.keys().chain(now.keys()) {
            if before.get(uri) != now.get(uri)
                && let Err(error) = server.notify_updated(uri)
            {
                eprintln!("{error}");
            }
        }
        before = now;
    }
}
