//! Google Drive: a thin adapter over its REST interface (v3).
//!
//! ```text
//!   refresh token ──▶ access token ──▶ files.list ─ changes.list ─ files.get ─ files.export
//!        invalid_grant: a sentence with the fix      401: a new token, once      429, 5xx: later, as Retry-After says
//! ```
//!
//! Law: the credentials are the operator's, never a client's, and stand in no message. A page token that Drive does not know any
//! longer is answered with a whole listing. A call, and the pause before it is made again, end soon after its request has
//! ended.

mod credentials;

use credentials::{Credentials, SCOPE};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use mcp_resources_engine::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep};
use mcp_resources_provider_kit::document_source::{
    BYTES, DOCUMENTS, DocumentSource, FetchedDocument, ListedDocument, SourceChanges, SourceError, TOO_LARGE,
};
use mcp_resources_provider_kit::http_transport::Watching;
use mcp_resources_provider_kit::option_file;
use mcp_resources_provider_kit::wanted::{is_wanted, pause};
use mcp_resources_runtime::sync::Mutex;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, DefaultConnector};

const API: &str = "https://www.googleapis.com/drive/v3";
const TOKEN: &str = "https://oauth2.googleapis.com/token";
/// Maximum time for one call, and maximum size of an answer other than a document.
const TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER: u64 = 16 << 20;
/// Maximum number of attempts for a call, and maximum time to wait between two.
const TRIES: u32 = 5;
const WAIT: Duration = Duration::from_secs(60);
/// Pause between two looks whether another thread has a token.
const LOOK: Duration = Duration::from_millis(20);
const NOBODY_WAITS: &str = "nobody waits for it any longer";
/// An access token is renewed so long before it ends.
const MARGIN: Duration = Duration::from_secs(60);
/// Maximum number of pages of a list that are requested.
const PAGES: usize = 1_000;
/// Maximum number of changes taken at once; with more, everything is listed again.
const CHANGES: usize = 5 * DOCUMENTS;
/// The longest access token, the longest page token, and the longest part of a stamp, in bytes.
const LONGEST_TOKEN: usize = 16 << 10;
const LONGEST_PAGE: usize = 4 << 10;
const LONGEST_PART: usize = 64;
const FIELDS: &str = "id,name,mimeType,modifiedTime,size,md5Checksum,version,trashed,parents,driveId";
const DOCUMENT: &str = "application/vnd.google-apps.document";
const SHEET: &str = "application/vnd.google-apps.spreadsheet";
const SLIDES: &str = "application/vnd.google-apps.presentation";
/// Why a call is refused that may be answered later.
const BUSY: [&str; 2] = ["rateLimitExceeded", "userRateLimitExceeded"];
/// Why the text of a file is refused until the file changes.
const UNREADABLE: [&str; 8] = [
    "appNotAuthorizedToFile",
    "cannotDownloadAbusiveFile",
    "cannotDownloadFile",
    "cannotExportFile",
    "exportSizeLimitExceeded",
    "fileNotDownloadable",
    "fileNotExportable",
    "insufficientFilePermissions",
];

/// Options that select the documents of Google Drive.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    credentials: Option<Credentials>,
    folder: Option<String>,
    drive: Option<String>,
    base_url: Option<String>,
}

impl DriveOptions {
    /// With the credentials in `file`: JSON with `client_id`, `client_secret` and `refresh_token`, as `gcloud auth
    /// application-default login` writes it.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { credentials: Some(Credentials::File(file.into())), ..Self::default() }
    }

    /// With the same JSON in a variable of the environment.
    pub fn from_env(variable: impl Into<String>) -> Self {
        Self { credentials: Some(Credentials::Env(variable.into())), ..Self::default() }
    }

    /// As `file` says: YAML or JSON with these options by their names. A relative path in it begins at its folder.
    ///
    /// # Errors
    /// The file is not there, or an option is unknown or wrong.
    pub fn from_file(file: impl AsRef<Path>) -> Result<Self, OptionError> {
        let file = file.as_ref();
        let named =
            |reason: String| OptionError::sentence(format!("rag: the file {}{reason}", file.display()));
        let value = option_file::read("rag", file)?;
        let OptionValue::Members(members) = &value else {
            return Err(named(" has no options by their names, such as credentials: FILE".into()));
        };
        let is_secret =
            |name: &str| ["client_id", "refresh_token", "private_key", "installed"].contains(&name);
        if members.iter().any(|(name, _)| is_secret(name)) {
            let help =
                " has credentials in it; write another file with `credentials: FILE`, and name that one";
            return Err(named(help.into()));
        }
        let mut own = Self::from_option(value).map_err(|error| named(format!(": {error}")))?;
        own.at(file.parent().unwrap_or(Path::new("")));
        Ok(own)
    }

    /// Takes the files in the folder with this id only; `root` is the top of My Drive. Default: all that the credentials can see.
    #[must_use]
    pub fn folder(mut self, id: impl Into<String>) -> Self {
        self.folder = Some(id.into());
        self
    }

    /// Takes the files of the shared drive with this id. Default: none in particular.
    #[must_use]
    pub fn drive(mut self, id: impl Into<String>) -> Self {
        self.drive = Some(id.into());
        self
    }

    /// Asks another server, on this machine: for tests.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Makes a relative path of the credentials begin at `folder`.
    pub fn at(&mut self, folder: &Path) {
        self.credentials.iter_mut().for_each(|credentials| credentials.at(folder));
    }
}

impl NamedOptions for DriveOptions {
    const EXPECTED: &'static str = "an object of options";
    const NAMES: &'static [&'static str] = &["credentials", "folder", "drive", "base_url"];

    fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError> {
        let read = match name {
            "credentials" => Option::from_option(value).map(|credentials| self.credentials = credentials),
            "folder" => Option::from_option(value).map(|id| self.folder = id),
            "drive" => Option::from_option(value).map(|id| self.drive = id),
            "base_url" => Option::from_option(value).map(|url| self.base_url = url),
            _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
        };
        read.map_err(|error| error.under(PathStep::Name(name.to_owned().into())))
    }
}

/// The documents of Google Drive that [`DriveOptions`] select.
pub struct Drive {
    options: DriveOptions,
    credentials: Credentials,
    api: String,
    token_url: String,
    agent: ureq::Agent,
    token: Mutex<Option<AccessToken>>,
    /// The id of the top of My Drive, once it is known.
    root: OnceLock<String>,
}

/// The access token for calls.
#[derive(Clone)]
struct AccessToken {
    text: String,
    quota_project: Option<String>,
    until: Instant,
}

/// An answer of Drive.
struct DriveAnswer {
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

/// A file, as Drive describes it.
struct File {
    listed: ListedDocument,
    mime_type: String,
    is_there: bool,
}

impl Drive {
    /// Makes the source. Nothing is asked before the first request.
    ///
    /// # Errors
    /// There are no credentials, or an id or the URL is invalid.
    pub fn new(options: DriveOptions) -> Result<Self, OptionError> {
        let wrong = |reason: String| OptionError::sentence(format!("rag: {reason}"));
        for id in options.folder.iter().chain(&options.drive) {
            if !is_id(id) {
                return Err(wrong(format!("{id:?} is no id of Drive's; copy it from the folder's address")));
            }
        }
        let (api, token_url) = match &options.base_url {
            None => (API.to_owned(), TOKEN.to_owned()),
            Some(url) if is_loopback(url) => {
                let url = url.trim_end_matches('/');
                (format!("{url}/drive/v3"), format!("{url}/token"))
            }
            Some(url) => {
                return Err(wrong(format!(
                    "base_url is {url:?}, expected http://127.0.0.1:PORT: it is for tests"
                )));
            }
        };
        let credentials = options.credentials.clone().ok_or_else(|| {
            wrong("drive needs credentials: FILE, a JSON file with client_id, client_secret and refresh_token, or {env: NAME}".into())
        })?;
        credentials.read().map_err(wrong)?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .http_status_as_error(false)
            .https_only(options.base_url.is_none())
            .build();
        let connector = DefaultConnector::default().chain(Watching);
        Ok(Self {
            options,
            credentials,
            api,
            token_url,
            agent: ureq::Agent::with_parts(config, connector, DefaultResolver::default()),
            token: Mutex::new(None),
            root: OnceLock::new(),
        })
    }

    /// One call with an access token; made again where Drive says so.
    fn get(&self, path: &str, query: &[(&str, &str)], max: u64) -> Result<DriveAnswer, SourceError> {
        let begun = Instant::now();
        let mut is_renewed = false;
        let mut tries = 0;
        loop {
            if !is_wanted() {
                return Err(SourceError::Failed(NOBODY_WAITS.into()));
            }
            let token = self.access_token()?;
            let mut request = self.agent.get(format!("{}/{path}", self.api));
            for (name, value) in query {
                request = request.query(*name, *value);
            }
            if let Some(project) = &token.quota_project {
                request = request.header("x-goog-user-project", project);
            }
            let sent = request.header("authorization", format!("Bearer {}", token.text)).call();
            let answer = sent.map_err(|error| failed(&error)).and_then(|sent| read(sent, max));
            let (wait, fault) = match answer {
                Ok(answer) if answer.status == 401 && !is_renewed => {
                    is_renewed = true;
                    self.forget(&token.text);
                    continue;
                }
                Ok(answer) if !answer.is_busy() => return Ok(answer),
                Ok(answer) => (answer.retry_after, answer.refused()),
                Err(error @ SourceError::Unreadable(_)) => return Err(error),
                Err(error) => (None, error),
            };
            tries += 1;
            let wait = wait.unwrap_or_else(|| Duration::from_millis(250 << tries));
            if tries >= TRIES || wait > WAIT.saturating_sub(begun.elapsed()) {
                return Err(fault);
            }
            if !pause(wait) {
                return Err(SourceError::Failed(NOBODY_WAITS.into()));
            }
        }
    }

    /// The token, once no other thread asks for one. `None` as soon as the request has ended.
    fn token(&self) -> Option<MutexGuard<'_, Option<AccessToken>>> {
        loop {
            if let Some(token) = self.token.try_lock() {
                return Some(token);
            }
            pause(LOOK).then_some(())?;
        }
    }

    /// This access token is refused. Another thread may have a new one already.
    fn forget(&self, token: &str) {
        let mut known = self.token.lock();
        if known.as_ref().is_some_and(|known| known.text == token) {
            *known = None;
        }
    }

    fn access_token(&self) -> Result<AccessToken, SourceError> {
        let mut known = self.token().ok_or_else(|| SourceError::Failed(NOBODY_WAITS.into()))?;
        if let Some(token) = known.as_ref().filter(|token| Instant::now() < token.until) {
            return Ok(token.clone());
        }
        let secrets = self.credentials.read().map_err(SourceError::Failed)?;
        let form = secrets.form.iter().map(|(name, secret)| (*name, &**secret));
        let form = form.chain([("grant_type", "refresh_token")]);
        let sent = self.agent.post(&*self.token_url).send_form(form).map_err(|error| failed(&error))?;
        let answer = read(sent, ANSWER)?;
        let reason = answer.reason();
        if reason.as_deref() == Some("invalid_grant") {
            return Err(SourceError::Failed(format!(
                "the refresh token is no longer valid (invalid_grant); sign in again and replace {}",
                self.credentials
            )));
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let is_token = |text: &&str| answer.status == 200 && (1..=LONGEST_TOKEN).contains(&text.len());
        let Some(text) = body.get("access_token").and_then(Value::as_str).filter(is_token) else {
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let status = answer.status;
            return Err(SourceError::Failed(format!(
                "there is no access token: Google answers with {status}{reason}; check {}",
                self.credentials
            )));
        };
        let seconds = body.get("expires_in").and_then(Value::as_u64).unwrap_or(3_600).min(86_400);
        let until = Instant::now() + Duration::from_secs(seconds).saturating_sub(MARGIN);
        let token = AccessToken { text: text.to_owned(), quota_project: secrets.quota_project, until };
        *known = Some(token.clone());
        Ok(token)
    }

    /// The parameters about shared drives, the same in every call.
    fn scope(&self) -> Vec<(&str, &str)> {
        let mut query = vec![("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true")];
        if let Some(drive) = &self.options.drive {
            query.push(("driveId", drive));
        }
        query
    }

    /// The folder whose files are taken, by the id that files have.
    fn folder(&self) -> Result<Option<&str>, SourceError> {
        match self.options.folder.as_deref() {
            Some("root") => {}
            other => return Ok(other),
        }
        if self.root.get().is_none() {
            let body = self.get("files/root", &[("fields", "id")], ANSWER)?.json().map_err(of_all)?;
            let id = body.get("id").and_then(Value::as_str).filter(|id| is_id(id));
            let id = id.ok_or_else(|| SourceError::Failed("Drive does not say what the root is".into()))?;
            let _ = self.root.set(id.to_owned());
        }
        Ok(self.root.get().map(String::as_str))
    }

    /// One whole listing; `None` if its page token was lost on the way.
    fn listing(&self) -> Result<Option<Vec<ListedDocument>>, SourceError> {
        let mut filter = "trashed = false and mimeType != 'application/vnd.google-apps.folder'".to_owned();
        let folder = self.folder()?;
        if let Some(folder) = folder {
            filter.push_str(&format!(" and '{folder}' in parents"));
        }
        let fields = format!("nextPageToken,files({FIELDS})");
        let mut documents = Vec::new();
        let mut pages = Pages::default();
        let mut known = HashSet::new();
        let mut page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = self.scope();
            query.extend([("q", &*filter), ("fields", &*fields), ("pageSize", "1000"), ("spaces", "drive")]);
            if self.options.drive.is_some() {
                query.push(("corpora", "drive"));
            }
            if let Some(page) = &page {
                query.push(("pageToken", page));
            }
            let answer = self.get("files", &query, ANSWER)?;
            if page.is_some() && answer.is_lost() {
                return Ok(None);
            }
            let body = answer.json()?;
            let files = body.get("files").and_then(Value::as_array).into_iter().flatten();
            let files = files.filter_map(|file| self.file(file, folder)).filter(|file| file.is_there);
            let listed = files.map(|file| file.listed).filter(|listed| known.insert(listed.id.clone()));
            documents.extend(listed);
            page = pages.next(&body)?;
            if page.is_none() || documents.len() >= DOCUMENTS {
                break;
            }
        }
        documents.truncate(DOCUMENTS);
        Ok(Some(documents))
    }

    /// A file that Drive describes.
    fn file(&self, file: &Value, folder: Option<&str>) -> Option<File> {
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        let id = text("id").filter(|id| is_id(id))?.to_owned();
        let mime_type = text("mimeType").unwrap_or_default().to_owned();
        let is_trashed = file.get("trashed").and_then(Value::as_bool).unwrap_or(false);
        let parents = file.get("parents").and_then(Value::as_array);
        let is_inside = folder.is_none_or(|folder| {
            parents.is_some_and(|parents| parents.iter().any(|parent| parent.as_str() == Some(folder)))
        });
        let is_inside =
            is_inside && self.options.drive.as_deref().is_none_or(|drive| text("driveId") == Some(drive));
        let form = export(&mime_type);
        let is_there = !is_trashed && is_inside && form.is_some();
        let part = |name: &str| text(name).filter(|part| part.len() <= LONGEST_PART);
        let stamp =
            ["version", "modifiedTime", "md5Checksum"].map(|name| part(name).unwrap_or_default()).join("/");
        let is_time = |text: &&str| text.parse::<Timestamp>().is_ok();
        let listed = ListedDocument {
            id,
            title: text("name")
                .map(|name| name.chars().filter(|letter| !letter.is_control()).take(256).collect()),
            stamp,
            modified: part("modifiedTime").filter(is_time).map(str::to_owned),
            // What is exported has another size than its document.
            size: text("size").filter(|_| matches!(form, Some((None, _)))).and_then(|size| size.parse().ok()),
        };
        Some(File { listed, mime_type, is_there })
    }

    /// The changes since a page token; `None` if Drive no longer knows the token.
    fn changes(&self, token: &str) -> Result<Option<SourceChanges>, SourceError> {
        let folder = self.folder()?;
        let fields = format!("nextPageToken,newStartPageToken,changes(fileId,removed,file({FIELDS}))");
        // By id: what was reported last, and in which place.
        let mut last: HashMap<String, (usize, Option<ListedDocument>)> = HashMap::new();
        let mut pages = Pages::default();
        let mut page = token.to_owned();
        for _ in 0..PAGES {
            let own = page.clone();
            let mut query = self.scope();
            query.extend([("pageToken", &*own), ("fields", &*fields), ("pageSize", "1000")]);
            let answer = self.get("changes", &query, ANSWER)?;
            if answer.is_lost() {
                return Ok(None);
            }
            let body = answer.json()?;
            for change in body.get("changes").and_then(Value::as_array).into_iter().flatten() {
                let id = change.get("fileId").and_then(Value::as_str).filter(|id| is_id(id));
                let Some(id) = id else { continue };
                let is_removed = change.get("removed").and_then(Value::as_bool).unwrap_or(false);
                let file = change.get("file").filter(|_| !is_removed);
                let file = file.and_then(|file| self.file(file, folder)).filter(|file| file.is_there);
                let place = last.len();
                last.insert(id.to_owned(), (place, file.map(|file| file.listed)));
                if last.len() > CHANGES {
                    return Ok(None);
                }
            }
            match pages.next(&body)? {
                Some(next) => page = next,
                None => {
                    let token = body.get("newStartPageToken").and_then(Value::as_str);
                    let token = token.filter(|token| token.len() <= LONGEST_PAGE).map(str::to_owned);
                    return Ok(Some(in_order(last, token.unwrap_or(page))));
                }
            }
        }
        Ok(None)
    }
}

/// The page tokens of one list.
#[derive(Default)]
struct Pages(HashSet<String>);

impl Pages {
    /// The token of the next page; `None` if this was the last.
    fn next(&mut self, body: &Value) -> Result<Option<String>, SourceError> {
        let Some(token) = body.get("nextPageToken").and_then(Value::as_str) else { return Ok(None) };
        if token.len() > LONGEST_PAGE || !self.0.insert(token.to_owned()) {
            return Err(SourceError::Failed("Drive gives a page of a list twice, or no name of one".into()));
        }
        Ok(Some(token.to_owned()))
    }
}

/// The changes in the order in which they were reported.
fn in_order(last: HashMap<String, (usize, Option<ListedDocument>)>, token: String) -> SourceChanges {
    let mut all: Vec<(usize, String, Option<ListedDocument>)> =
        last.into_iter().map(|(id, (place, listed))| (place, id, listed)).collect();
    all.sort_by_key(|(place, ..)| *place);
    let mut changed = Vec::new();
    let mut gone = Vec::new();
    for (_, id, listed) in all {
        match listed {
            Some(listed) => changed.push(listed),
            None => gone.push(id),
        }
    }
    SourceChanges::Some { changed, gone, token: Some(token) }
}

impl DocumentSource for Drive {
    fn list(&self) -> Result<Vec<ListedDocument>, SourceError> {
        for _ in 0..2 {
            if let Some(documents) = self.listing().map_err(of_all)? {
                return Ok(documents);
            }
        }
        Err(SourceError::Failed("Drive loses the place of the list".into()))
    }

    fn fetch(&self, id: &str) -> Result<FetchedDocument, SourceError> {
        if !is_id(id) {
            return Err(SourceError::NotFound);
        }
        let path = format!("files/{id}");
        let described =
            self.get(&path, &[("fields", FIELDS), ("supportsAllDrives", "true")], ANSWER)?.json()?;
        let file = self
            .file(&described, self.folder()?)
            .filter(|file| file.is_there)
            .ok_or(SourceError::NotFound)?;
        let (exported, mime_type) = export(&file.mime_type).ok_or(SourceError::NotFound)?;
        if file.listed.size.is_some_and(|size| size > BYTES) {
            return Err(SourceError::Unreadable(TOO_LARGE.into()));
        }
        let answer = match exported {
            Some(form) => self.get(&format!("{path}/export"), &[("mimeType", form)], BYTES)?,
            None => self.get(&path, &[("alt", "media"), ("supportsAllDrives", "true")], BYTES)?,
        };
        match answer.status {
            200 => {
                Ok(FetchedDocument { text: String::from_utf8_lossy(&answer.body).into_owned(), mime_type })
            }
            404 => Err(SourceError::NotFound),
            _ => Err(answer.refused()),
        }
    }

    fn changes_since(&self, token: Option<&str>) -> Result<SourceChanges, SourceError> {
        if let Some(token) = token
            && let Some(changes) = self.changes(token)?
        {
            return Ok(changes);
        }
        // Before the list: what changes meanwhile is a change.
        let mut query = vec![("supportsAllDrives", "true")];
        query.extend(self.options.drive.as_deref().map(|drive| ("driveId", drive)));
        let body = self.get("changes/startPageToken", &query, ANSWER)?.json().map_err(of_all)?;
        let token = body.get("startPageToken").and_then(Value::as_str).map(str::to_owned);
        Ok(SourceChanges::All { documents: self.list()?, token })
    }
}

impl DriveAnswer {
    /// Whether the same call may be answered later.
    fn is_busy(&self) -> bool {
        let is_limited = || self.reason().is_some_and(|reason| BUSY.contains(&&*reason));
        self.status == 429 || self.status >= 500 || self.status == 403 && is_limited()
    }

    /// Its body, if it is one and JSON.
    fn json(&self) -> Result<Value, SourceError> {
        match self.status {
            200 => serde_json::from_slice(&self.body)
                .map_err(|_| SourceError::Failed("Drive's answer is no JSON".into())),
            404 => Err(SourceError::NotFound),
            _ => Err(self.refused()),
        }
    }

    /// Google's term for the problem. Nothing else of an answer is logged.
    fn reason(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let error = body.get("error")?;
        let listed = || error.get("errors")?.get(0)?.get("reason")?.as_str();
        let word = error.as_str().or_else(listed)?;
        let is_word = (1..=64).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_word.then(|| word.to_owned())
    }

    /// The error about an answer: the reason, and the fix.
    fn refused(&self) -> SourceError {
        let status = self.status;
        let reason = self.reason().unwrap_or_default();
        let help = match &*reason {
            "insufficientPermissions" => format!("; sign in again with the scope {SCOPE}"),
            "accessNotConfigured" => {
                "; enable the Google Drive API in the project of the credentials".to_owned()
            }
            _ => String::new(),
        };
        let named = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        let what = format!("Drive answers with {status}{named}{help}");
        if UNREADABLE.contains(&&*reason) { SourceError::Unreadable(what) } else { SourceError::Failed(what) }
    }

    /// Whether a page token is not known any longer.
    fn is_lost(&self) -> bool {
        matches!(self.status, 400 | 404 | 410)
    }
}

fn read(sent: ureq::http::Response<ureq::Body>, max: u64) -> Result<DriveAnswer, SourceError> {
    let (parts, mut body) = sent.into_parts();
    let retry_after =
        parts.headers.get("retry-after").and_then(|value| retry_after(value.to_str().ok()?.trim()));
    // One byte more than it may have is an error.
    let body = body.with_config().limit(max).read_to_vec().map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => {
            SourceError::Unreadable(format!("it is larger than {} MiB", max >> 20))
        }
        other => failed(&other),
    })?;
    Ok(DriveAnswer { status: parts.status.as_u16(), retry_after, body })
}

/// For how long no call is wanted: in seconds, or until a date. A number that no number holds is very large.
fn retry_after(text: &str) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(24 * 3_600);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(LONGEST, Duration::from_secs).min(LONGEST));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(SystemTime::from(date).duration_since(SystemTime::now()).unwrap_or_default().min(LONGEST))
}

/// Converts an error of a request about all documents: "not found" then means that the request has failed.
fn of_all(error: SourceError) -> SourceError {
    match error {
        SourceError::NotFound => SourceError::Failed(
            "Drive does not find it (404); check `drive` and `folder`, and that this account may see them"
                .into(),
        ),
        other => other,
    }
}

/// The error about a failed call, without addresses and tokens.
fn failed(error: &ureq::Error) -> SourceError {
    let what = match error {
        ureq::Error::Timeout(_) => "Drive does not answer in time",
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Io(_) => {
            "Drive cannot be reached"
        }
        _ => "the request failed",
    };
    SourceError::Failed(what.into())
}

/// The form in which a file is exported, if it must be, and the media type of its text; `None` if it has no text.
fn export(mime_type: &str) -> Option<(Option<&'static str>, &'static str)> {
    match mime_type {
        DOCUMENT => Some((Some("text/markdown"), "text/markdown")),
        SLIDES => Some((Some("text/plain"), "text/plain")),
        SHEET => Some((Some("text/csv"), "text/csv")),
        "text/markdown" | "text/x-markdown" => Some((None, "text/markdown")),
        "text/csv" => Some((None, "text/csv")),
        other if other.starts_with("text/") => Some((None, "text/plain")),
        _ => None,
    }
}

/// Whether a text has the form of an id.
fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=128).contains(&text.len()) && text.bytes().all(is_plain)
}

fn is_loopback(url: &str) -> bool {
    let host = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "[::1]")
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("folder", &self.options.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
