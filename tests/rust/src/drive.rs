//! A Google Drive on loopback, for tests: as the documentation of its third version says, with faults on demand.
//!
//! Law: what the documentation asks of a client is asked here too: a shared drive is listed with `corpora=drive` and
//! both flags, a page token belongs to one list or one drive, and an access token is valid until it expires.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The folder that all files are in, which is the top of My Drive.
pub const FOLDER: &str = "FOLDER";

/// A server of files on loopback.
#[derive(Debug)]
pub struct LoopbackDrive {
    /// The addresses that replace Google's.
    pub url: String,
    state: Arc<Mutex<DriveState>>,
}

/// A file.
#[derive(Clone, Debug)]
pub struct DriveFile {
    /// Its title.
    pub name: String,
    /// Its type; Google's own are exported.
    pub mime_type: String,
    /// The content that is exported or downloaded.
    pub text: String,
    /// The shared drive that it is in.
    pub drive: Option<String>,
}

/// The files of the drive, and how it answers.
#[derive(Debug, Default)]
pub struct DriveState {
    /// By id.
    pub files: BTreeMap<String, DriveFile>,
    /// The changes in order, each with its shared drive. A page token is an index into them.
    changes: Vec<(String, Option<String>)>,
    /// How many access tokens there were. A new one leaves those before it valid.
    pub tokens: usize,
    /// How many of them, the first ones, are no longer valid.
    pub expired: usize,
    /// Whether the refresh token is refused.
    pub is_revoked: bool,
    /// The next answers have these statuses, from the last on.
    pub statuses: Vec<u16>,
    /// Every request whose target has the first text is answered with the second: a status, and a body that may be a reason.
    pub refusals: Vec<(String, u16, String)>,
    /// Page tokens of changes below this are lost, and those of lists if it is the greatest number.
    pub lost: usize,
    /// Requests whose target has this in it wait for as long as it stands here.
    pub held: Option<String>,
    /// The size that files are said to have, in place of that of their texts.
    pub size: Option<usize>,
    /// The project that the last request was for.
    pub project: String,
    /// The requests, each with its path and query.
    pub heard: Vec<String>,
}

impl Default for LoopbackDrive {
    fn default() -> Self {
        Self::start()
    }
}

impl LoopbackDrive {
    /// An empty one. It answers as long as the process runs.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::<Mutex<DriveState>>::default();
        let own = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), own) = (stream, own.clone()) else { return };
                std::thread::spawn(move || answer(stream, &own));
            }
        });
        Self { url, state }
    }

    /// Puts a file into My Drive, in the place of what was there.
    pub fn put(&self, id: &str, name: &str, mime_type: &str, text: &str) {
        self.put_in(None, id, name, mime_type, text);
    }

    /// Puts a file into a shared drive, or My Drive for `None`.
    pub fn put_in(&self, drive: Option<&str>, id: &str, name: &str, mime_type: &str, text: &str) {
        let drive = drive.map(str::to_owned);
        let mut state = self.state();
        state.changes.push((id.into(), drive.clone()));
        let name = name.into();
        let mime_type = mime_type.into();
        let text = text.into();
        state.files.insert(id.into(), DriveFile { name, mime_type, text, drive });
    }

    /// From now on, a request whose target has `part` in it is refused for a reason, as the documentation words it.
    pub fn refuse(&self, part: &str, status: u16, reason: &str) {
        let errors = json!([{"domain": "global", "reason": reason, "message": "canary"}]);
        let body = json!({"error": {"code": status, "message": "canary", "errors": errors}}).to_string();
        self.state().refusals.push((part.into(), status, body));
    }

    /// Removes a file.
    pub fn remove(&self, id: &str) {
        let mut state = self.state();
        let drive = state.files.remove(id).and_then(|file| file.drive);
        state.changes.push((id.into(), drive));
    }

    /// The state of the drive.
    pub fn state(&self) -> MutexGuard<'_, DriveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what an object says: `{"put": {id, name, mimeType, text, drive}}`, `{"remove": ID}`, `{"expire": true}`,
    /// `{"revoke": true}`, `{"statuses": [429]}`. Returns the requests so far.
    pub fn command(&self, command: &Value) -> Vec<String> {
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if let Some(file) = command.get("put") {
            let [id, name, mime_type, body] = ["id", "name", "mimeType", "text"].map(|name| text(file, name));
            self.put_in(file["drive"].as_str(), &id, &name, &mime_type, &body);
        }
        if let Some(id) = command["remove"].as_str() {
            self.remove(id);
        }
        let mut state = self.state();
        if command["expire"] == true {
            state.expired = state.tokens;
        }
        if command["revoke"] == true {
            state.is_revoked = true;
            state.expired = state.tokens;
        }
        if let Some(statuses) = command["statuses"].as_array() {
            state.statuses = statuses.iter().filter_map(|one| u16::try_from(one.as_u64()?).ok()).collect();
        }
        state.heard.clone()
    }
}

/// Answers the requests of one connection.
fn answer(mut stream: TcpStream, state: &Mutex<DriveState>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    while let Some(Request { target, token, project }) = request(&mut reader) {
        let is_held = || {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.held.as_ref().is_some_and(|part| target.contains(part))
        };
        while is_held() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (status, answer) = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.project = project;
            respond(&mut state, &target, &token)
        };
        let retry = if status == 429 { "Retry-After: 0\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} X\r\n{retry}Content-Length: {}\r\n\r\n", answer.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).is_err() {
            return;
        }
    }
}

/// What is heard of a request.
struct Request {
    target: String,
    token: String,
    project: String,
}

/// The next request; its body is read and left out.
fn request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    let mut token = String::new();
    let mut project = String::new();
    let mut length = 0;
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let (name, value) = header.trim().split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "" => break,
            "authorization" => token = value.trim().replace("Bearer ", ""),
            "x-goog-user-project" => project = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut Vec::new()).ok()?;
    Some(Request { target: line.split(' ').nth(1)?.to_owned(), token, project })
}

/// The query of a request.
struct Query<'q>(&'q str);

impl<'q> Query<'q> {
    fn get(&self, name: &str) -> Option<&'q str> {
        self.0.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Whether shared drives are asked for as they must be.
    fn has_flags(&self) -> bool {
        self.is_set("supportsAllDrives") && self.is_set("includeItemsFromAllDrives")
    }
}

fn respond(state: &mut DriveState, target: &str, token: &str) -> (u16, String) {
    state.heard.push(target.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query(query);
    if path == "/token" {
        if state.is_revoked {
            let error = json!({"error": "invalid_grant", "error_description": "Token has been revoked."});
            return (400, error.to_string());
        }
        state.tokens += 1;
        let token = format!("token-{}", state.tokens);
        return (200, json!({"access_token": token, "expires_in": 3_599}).to_string());
    }
    let number = token.strip_prefix("token-").and_then(|number| number.parse::<usize>().ok());
    if number.is_none_or(|number| number <= state.expired || number > state.tokens) {
        return (401, json!({"error": {"code": 401}}).to_string());
    }
    if let Some(status) = state.statuses.pop() {
        return (status, json!({"error": {"code": status}}).to_string());
    }
    if let Some((_, status, body)) = state.refusals.iter().find(|(part, ..)| target.contains(part)) {
        return (*status, body.clone());
    }
    match path.strip_prefix("/drive/v3/").unwrap_or_default() {
        "changes/startPageToken" => {
            let token = page_token(query.get("driveId"), state.changes.len());
            (200, json!({"startPageToken": token}).to_string())
        }
        "changes" if query.has_flags() => changes(state, &query),
        "files" if query.has_flags() => list(state, &query),
        "files/root" => (200, json!({"id": FOLDER}).to_string()),
        rest => file(state, rest.strip_prefix("files/").unwrap_or_default(), &query),
    }
}

/// It belongs to one drive.
fn page_token(drive: Option<&str>, at: usize) -> String {
    format!("{}-{at}", drive.unwrap_or("user"))
}

fn changes(state: &DriveState, query: &Query<'_>) -> (u16, String) {
    let drive = query.get("driveId");
    let (of, at) = query.get("pageToken").and_then(|token| token.rsplit_once('-')).unwrap_or_default();
    let at: usize = at.parse().unwrap_or(usize::MAX);
    if of != drive.unwrap_or("user") {
        return (400, "{}".into());
    }
    if at < state.lost || at > state.changes.len() {
        return (410, "{}".into());
    }
    let new = state.changes.iter().skip(at).filter(|(_, of)| of.as_deref() == drive);
    let described = |(id, _): &(String, Option<String>)| match described(state, id) {
        Some(file) => json!({"fileId": id, "removed": false, "file": file}),
        None => json!({"fileId": id, "removed": true}),
    };
    let changes: Vec<Value> = new.map(described).collect();
    let token = page_token(drive, state.changes.len());
    (200, json!({"changes": changes, "newStartPageToken": token}).to_string())
}

/// A page of a list, which has one file.
fn list(state: &DriveState, query: &Query<'_>) -> (u16, String) {
    let drive = query.get("driveId");
    if drive.is_some() != (query.get("corpora") == Some("drive")) {
        return (400, "{}".into());
    }
    let token = query.get("pageToken");
    if token.is_some() && state.lost == usize::MAX {
        return (410, "{}".into());
    }
    let at: usize = token.and_then(|token| token.parse().ok()).unwrap_or(0);
    let of = |file: &DriveFile| file.drive.as_deref() == drive;
    let ids: Vec<&String> = state.files.iter().filter(|(_, file)| of(file)).map(|(id, _)| id).collect();
    let files: Vec<Value> = ids.get(at).and_then(|id| described(state, id)).into_iter().collect();
    let next = (at + 1 < ids.len()).then(|| (at + 1).to_string());
    (200, json!({"files": files, "nextPageToken": next}).to_string())
}

/// A request about one file.
fn file(state: &DriveState, rest: &str, query: &Query<'_>) -> (u16, String) {
    let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
    let Some(file) = state.files.get(id) else { return (404, "{}".into()) };
    if file.drive.is_some() && action.is_empty() && !query.is_set("supportsAllDrives") {
        return (404, "{}".into());
    }
    let is_native = file.mime_type.starts_with("application/vnd.google-apps");
    match (action, query.get("alt")) {
        ("export", _) if is_native => (200, file.text.clone()),
        ("", Some("media")) if !is_native => (200, file.text.clone()),
        ("", None) => (200, described(state, id).unwrap_or_default().to_string()),
        _ => (403, "{}".into()),
    }
}

fn described(state: &DriveState, id: &str) -> Option<Value> {
    let DriveFile { name, mime_type, text, drive } = state.files.get(id)?;
    let version = state.changes.iter().filter(|(other, _)| other == id).count().to_string();
    let mut file = json!({
        "id": id, "name": name, "mimeType": mime_type, "version": version, "size": state.size.unwrap_or(text.len()).to_string(),
        "modifiedTime": "2026-01-02T03:04:05.000Z", "trashed": false, "parents": [FOLDER]
    });
    if let (Some(drive), Some(members)) = (drive, file.as_object_mut()) {
        members.insert("driveId".into(), json!(drive));
    }
    Some(file)
}
