//! The exchange of descriptions between client and server: the legacy handshake, `server/discover`
//!, and the log level of a session.

use super::contents;
use super::dispatch::{DispatchStep, Raw};
use super::event::LogLevel;
use super::request::Request;
use super::terms::{ClientCapabilities, SessionTerms};
use super::{Connection, RequestOutcome, RequestRefusal};
use crate::jsonrpc::{Json, JsonKind};
use crate::version::{INVALID_PARAMS, INVALID_REQUEST, Revision};

impl Connection {
    /// `initialize`: begins a session.
    pub(super) fn initialize<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        if self.session.is_some() && self.can_notify() {
            let why = "Invalid Request: already initialized";
            return self.reject(raw, INVALID_REQUEST, why, RequestRefusal::Malformed, out);
        }
        let Some(hello) = Hello::parse(raw) else {
            let why = "Invalid params: protocolVersion, capabilities and clientInfo with name and version are required";
            return self.reject(raw, INVALID_PARAMS, why, RequestRefusal::Envelope, out);
        };
        let max = self.engine.limits().client_info;
        if hello.client_info.raw().len() > max {
            let why = format!("Invalid params: clientInfo is longer than {max} bytes");
            return self.reject(raw, INVALID_PARAMS, &why, RequestRefusal::Envelope, out);
        }
        let Some(revision) = negotiate(self, &hello.version) else {
            return self.unsupported(raw, &hello.version, out);
        };
        self.session = Some(SessionTerms {
            revision,
            capabilities: ClientCapabilities::parse(hello.capabilities),
            client_info: hello.client_info.raw().into(),
            log_level: LogLevel::Info,
        });
        let engine = &self.engine;
        let notifies = self.can_notify();
        if notifies {
            engine.hub().legacy(
                self.id,
                step.arrival.principal.clone(),
                engine.announced_lists(step.arrival.principal),
                &self.waker,
            );
        }
        self.writer_for(raw).complete(out, |result| {
            result.str("protocolVersion", revision.as_str());
            result.object("capabilities", |capabilities| {
                engine.write_capabilities(
                    &engine.catalog(),
                    capabilities,
                    revision,
                    notifies,
                    step.arrival.principal,
                );
            });
            let info = engine.description();
            result.value("serverInfo").extend_from_slice(info.server_info(revision).as_bytes());
            engine.instruct(&info, step.arrival.principal, |text| result.str("instructions", text));
        });
        // The session is notified of changed lists from now on.
        RequestOutcome::answered().with(notifies.then(|| engine.mark_interest([])).flatten())
    }

    /// `server/discover`.
    pub(super) fn discover<'m>(&self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let engine = &self.engine;
        let catalog = engine.catalog();
        let description = engine.description();
        let server_info = engine.names_itself().then(|| description.member());
        let response = self.writer_naming(server_info, request);
        response.complete(out, |result| {
            result.array("supportedVersions", |list| {
                engine.options().revisions.iter().for_each(|revision| list.str(revision.as_str()));
            });
            result.object("capabilities", |writer| {
                engine.write_capabilities(&catalog, writer, response.revision, true, request.principal);
            });
            engine.instruct(&description, request.principal, |text| result.str("instructions", text));
            contents::hint(result, &response, engine.shared_in(&catalog, engine.options().discover_cache));
        });
        RequestOutcome::answered()
    }

    /// `logging/setLevel`.
    pub(super) fn set_level<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let name = request.params.get("level").and_then(Json::as_str);
        let Some(level) = name.and_then(|name| LogLevel::parse(&name)) else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: unknown log level", out);
        };
        if let Some(session) = &mut self.session {
            session.log_level = level;
        }
        self.response_writer(request).complete(out, |_| ());
        RequestOutcome::answered()
    }
}

/// The params of `initialize`.
struct Hello<'m> {
    version: std::borrow::Cow<'m, str>,
    capabilities: Json<'m>,
    client_info: Json<'m>,
}

impl<'m> Hello<'m> {
    fn parse(raw: &Raw<'m>) -> Option<Self> {
        let version = raw.params.get("protocolVersion")?.as_str()?;
        let capabilities = raw.params.get("capabilities").filter(|json| json.kind() == JsonKind::Object)?;
        let client_info = raw.params.get("clientInfo")?;
        let members = client_info.object()?;
        members.get("name")?.as_str()?;
        members.get("version")?.as_str()?;
        Some(Self { version, capabilities, client_info })
    }
}

/// The requested revision, else the newest that has a handshake. `None` if no enabled revision has one.
fn negotiate(connection: &Connection, requested: &str) -> Option<Revision> {
    let served = |revision: &Revision| !revision.is_modern() && connection.engine.serves(*revision);
    Revision::parse(requested).filter(served).or_else(|| Revision::ALL.into_iter().find(served))
}
