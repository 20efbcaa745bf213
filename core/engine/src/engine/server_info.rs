//! The server's description, encoded once.

use super::{InstructionPart, ServerInfo};
use crate::catalog::write_icons;
use crate::connection::SERVER_INFO;
use crate::jsonrpc::{ObjectWriter, object};
use crate::resource::RegistrationError;
use crate::version::Revision;
use mcp_resources_template::UriTemplate;
use std::sync::Arc;

/// `serverInfo` in the form of each revision, and the other parts of the description.
pub(crate) struct ServerDescription {
    name: String,
    instructions: Option<String>,
    /// Each with the templates of what it is about.
    instruction_parts: Vec<(String, Vec<UriTemplate>)>,
    /// With name and version.
    short: String,
    /// With the title.
    titled: String,
    full: String,
    member: Arc<str>,
}

impl ServerDescription {
    pub(super) fn new(info: ServerInfo) -> Result<Self, RegistrationError> {
        super::check::info(&info)?;
        let short = encoded(|writer| write_short(writer, &info));
        let titled = encoded(|writer| write_titled(writer, &info));
        let full = encoded(|writer| write_full(writer, &info));
        let member = format!("\"{SERVER_INFO}\":{full}").into();
        let parsed = |part: InstructionPart| {
            let about = part.about.iter().filter_map(|text| UriTemplate::parse(text).ok());
            (part.text, about.collect())
        };
        let instruction_parts = info.instruction_parts.into_iter().map(parsed).collect();
        let ServerInfo { name, instructions, .. } = info;
        Ok(Self { name, instructions, instruction_parts, short, titled, full, member })
    }

    /// The parts of the instructions, each with the templates that it is about.
    pub(super) fn instruction_parts(&self) -> &[(String, Vec<UriTemplate>)] {
        &self.instruction_parts
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    pub(crate) fn server_info(&self, revision: Revision) -> &str {
        match revision {
            revision if revision.has_server_description() => &self.full,
            revision if revision.has_server_title() => &self.titled,
            _ => &self.short,
        }
    }

    pub(crate) fn full(&self) -> &str {
        &self.full
    }

    /// As a member of `_meta`.
    pub(crate) fn member(&self) -> Arc<str> {
        self.member.clone()
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
