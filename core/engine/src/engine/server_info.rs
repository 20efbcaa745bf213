//! The server's description, encoded once.

use super::ServerInfo;
use crate::catalog::write_icons;
use crate::connection::SERVER_INFO;
use crate::jsonrpc::{ObjectWriter, object};
use crate::resource::RegistrationError;
use crate::version::Revision;

/// `serverInfo` in the form of each revision, and the other parts of the description.
pub(super) struct ServerDescription {
    name: String,
    instructions: Option<String>,
    /// With name and version.
    short: String,
    /// With the title.
    titled: String,
    full: String,
    member: String,
}

impl ServerDescription {
    pub(super) fn new(info: ServerInfo) -> Result<Self, RegistrationError> {
        super::check::info(&info)?;
        let short = encoded(|writer| write_short(writer, &info));
        let titled = encoded(|writer| write_titled(writer, &info));
        let full = encoded(|writer| write_full(writer, &info));
        let member = format!("\"{SERVER_INFO}\":{full}");
        Ok(Self { name: info.name, instructions: info.instructions, short, titled, full, member })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    pub(super) fn server_info(&self, revision: Revision) -> &str {
        match revision {
            revision if revision.has_server_description() => &self.full,
            revision if revision.has_server_title() => &self.titled,
            _ => &self.short,
        }
    }

    pub(super) fn full(&self) -> &str {
        &self.full
    }

    /// As a member of `_meta`.
    pub(super) fn member(&self) -> &str {
        &self.member
    }
}

fn encoded(body: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, body);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_short(writer: &mut ObjectWriter<'_>, info: &ServerInfo) {
    writer.str("name", &info.name);
    writer.str("version", &info.version);
}

fn write_titled(writer: &mut ObjectWriter<'_>, info: &ServerInfo) {
    write_short(writer, info);
    if let Some(title) = &info.title {
        writer.str("title", title);
    }
}

fn write_full(writer: &mut ObjectWriter<'_>, info: &ServerInfo) {
    write_titled(writer, info);
    if let Some(description) = &info.description {
        writer.str("description", description);
    }
    if let Some(url) = &info.website_url {
        writer.str("websiteUrl", url);
    }
    write_icons(writer, &info.icons);
}
