//! `server/discover`.

use super::contents;
use super::request::Request;
use super::{Connection, Outcome};

impl Connection {
    pub(super) fn discover<'m>(&self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> Outcome<'m> {
        let (engine, wording) = (&self.engine, self.wording(request));
        wording.complete(out, |result| {
            result.array("supportedVersions", |list| {
                engine.options().revisions.iter().for_each(|revision| list.str(revision.as_str()));
            });
            result.object("capabilities", |writer| {
                engine.write_capabilities(writer, (wording.revision, true), request.principal);
            });
            if let Some(instructions) = engine.instructions() {
                result.str("instructions", instructions);
            }
            contents::hint(result, &wording, engine.shared(engine.options().discover_cache));
        });
        Outcome::answered()
    }
}
