//! Questions of the server: its own requests before 2026-07-28, rounds of input since then.

use super::calls::CallId;
use super::{Effects, Machine};
use crate::client::{ClientError, ClientOutcome, ClientQuestion, Effect, Failure};
use crate::jsonrpc::{Id, Json, ObjectWriter, OwnedId, RawParams};
use crate::now::{Millis, Now};
use crate::version::{INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolMethod, QUESTIONS};
use std::collections::BTreeMap;

/// Pause in ms before a call is repeated if the server returned only a state.
const AGAIN: Millis = 200;

/// The input that one read needs.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The number of rounds so far.
    number: usize,
    /// By key: the method, and the answer once there is one.
    asked: BTreeMap<String, (String, Option<String>)>,
    /// The server's state, unchanged: a JSON string.
    state: Option<String>,
}

impl Round {
    /// The methods of the unanswered questions.
    pub(super) fn methods(&self) -> Vec<String> {
        let open = self.asked.values().filter(|(_, answer)| answer.is_none());
        open.map(|(method, _)| method.clone()).collect()
    }

    /// Whether the server has asked for input.
    pub(super) fn is_begun(&self) -> bool {
        self.number > 0
    }

    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Writes the answers and the state into the params of a retry.
    pub(super) fn write(&self, params: &mut ObjectWriter<'_>) {
        if !self.asked.is_empty() {
            params.object("inputResponses", |responses| {
                for (key, (_, answer)) in &self.asked {
                    if let Some(answer) = answer {
                        responses.named(key).extend_from_slice(answer.as_bytes());
                    }
                }
            });
        }
        if let Some(state) = &self.state {
            params.value("requestState").extend_from_slice(state.as_bytes());
        }
    }
}

/// The origin of a question.
#[derive(Debug)]
enum QuestionSource {
    /// A request of the server.
    Server(OwnedId),
    /// A read, and the key of the question.
    Read(CallId, String),
}

/// The questions that the runtime has not answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: u64,
    open: BTreeMap<u64, QuestionSource>,
    /// Whether a refusal was noted: once is enough.
    has_noted_refusal: bool,
}

/// Answers of the runtime.
impl Machine {
    /// Answers a question with a result, a JSON object, or with the reason for which there is none.
    pub fn answer(&mut self, question: u64, answer: Result<&str, &str>, now: Now, out: &mut Effects) {
        let Some(asker) = self.questions.open.remove(&question) else { return };
        let result = answer.ok().and_then(|text| Json::parse(text.as_bytes(), self.reader.limits.nesting));
        let result = result.filter(|json| json.object().is_some());
        match (asker, result) {
            (QuestionSource::Server(id), Some(result)) => {
                out.push(Effect::Send(self.speaker.response(id.as_id(), result)));
            }
            (QuestionSource::Server(id), None) => {
                let why = answer.err().unwrap_or("the answer is no JSON object");
                out.push(Effect::Send(self.speaker.refusal(id.as_id(), INVALID_REQUEST, why)));
            }
            (QuestionSource::Read(slot, key), Some(result)) => self.fill(slot, &key, result, now, out),
            (QuestionSource::Read(slot, _), None) => self.give_up(slot, now, out),
        }
        self.reconcile(now, out);
    }
}

impl Machine {
    /// Handles a request of the server.
    pub(super) fn asked(
        &mut self,
        id: Id<'_>,
        method: &str,
        params: &RawParams<'_>,
        _: Now,
        out: &mut Effects,
    ) {
        if method == ProtocolMethod::Ping.as_str() {
            let empty = Json::parse(b"{}", 1).unwrap_or(Json::NULL);
            return out.push(Effect::Send(self.speaker.response(id, empty)));
        }
        let is_legacy = self.revision().is_some_and(|revision| !revision.is_modern());
        let knows = self.answers.iter().any(|answer| answer == method);
        let has_room = self.questions.open.len() < self.reader.limits.questions;
        if !(is_legacy && knows && has_room) {
            let is_question = QUESTIONS.iter().any(|(known, _)| *known == method);
            let message = match &self.refusal {
                Some(refusal) if is_legacy && is_question && !knows => {
                    if !std::mem::replace(&mut self.questions.has_noted_refusal, true) {
                        out.push(Effect::Noted(refusal.clone()));
                    }
                    refusal.clone()
                }
                _ => format!("Method not found: {}", super::shown(method)),
            };
            return out.push(Effect::Send(self.speaker.refusal(id, METHOD_NOT_FOUND, &message)));
        }
        let params = match params {
            RawParams::Object { raw, .. } => super::one_line(*raw),
            _ => "{}".to_owned(),
        };
        self.put(QuestionSource::Server(id.into()), method, params, out);
    }

    fn put(&mut self, asker: QuestionSource, method: &str, params: String, out: &mut Effects) {
        self.questions.next += 1;
        let id = self.questions.next;
        self.questions.open.insert(id, asker);
        let server = self.reader.server.clone();
        out.push(Effect::Asked(ClientQuestion { id, server, method: method.to_owned(), params }));
    }

    /// Asks the runtime for the input that a read needs. Fails the read if the runtime does not answer such questions.
    pub(super) fn ask(
        &mut self,
        slot: CallId,
        questions: Vec<(String, String, String)>,
        state: Option<String>,
        now: Now,
        out: &mut Effects,
    ) -> Option<Result<ClientOutcome, ClientError>> {
        let limits = &self.reader.limits;
        let pending = self.calls.pending.get_mut(&slot)?;
        let number = pending.round.number + 1;
        let unknown = questions.iter().any(|(_, method, _)| !self.answers.contains(method));
        let too_many = self.questions.open.len() + questions.len() > limits.questions;
        if unknown || too_many || number > limits.rounds || (questions.is_empty() && state.is_none()) {
            let methods = questions.into_iter().map(|(_, method, _)| super::shown(&method)).collect();
            return Some(Err(Failure::InputRequired { methods }.into()));
        }
        let asked = questions.iter().map(|(key, method, _)| (key.clone(), (method.clone(), None))).collect();
        pending.round = Round { number, asked, state };
        let pause = if questions.is_empty() { AGAIN * number as Millis } else { limits.question_timeout };
        self.wait_until(slot, now.tick.saturating_add(pause));
        for (key, method, params) in questions {
            self.put(QuestionSource::Read(slot, key), &method, params, out);
        }
        None
    }

    fn fill(&mut self, slot: CallId, key: &str, result: Json<'_>, now: Now, out: &mut Effects) {
        let Some(pending) = self.calls.pending.get_mut(&slot) else { return };
        if let Some((_, answer)) = pending.round.asked.get_mut(key) {
            *answer = Some(super::one_line(result));
        }
        if pending.round.asked.values().all(|(_, answer)| answer.is_some()) {
            self.send_call(slot, now, out);
        }
    }

    fn give_up(&mut self, slot: CallId, now: Now, out: &mut Effects) {
        let Some(pending) = self.calls.pending.get(&slot) else { return };
        let methods = pending.round.methods();
        self.finish(slot, Err(Failure::InputRequired { methods }.into()), now, out);
    }

    /// Withdraws the questions of a call that has ended.
    pub(super) fn withdraw_questions_of(&mut self, slot: CallId, out: &mut Effects) {
        self.withdraw(|asker| matches!(asker, QuestionSource::Read(own, _) if *own == slot), out);
    }

    /// Withdraws a request that a legacy server has cancelled.
    pub(super) fn withdraw_question(&mut self, id: Id<'_>, out: &mut Effects) {
        self.withdraw(|asker| matches!(asker, QuestionSource::Server(own) if own.as_id() == id), out);
    }

    /// Withdraws all questions when the connection is lost.
    pub(super) fn withdraw_questions(&mut self, out: &mut Effects) {
        self.withdraw(|_| true, out);
    }

    fn withdraw(&mut self, which: impl Fn(&QuestionSource) -> bool, out: &mut Effects) {
        self.questions.open.retain(|id, asker| {
            let is_over = which(asker);
            if is_over {
                out.push(Effect::Withdrawn(*id));
            }
            !is_over
        });
    }
}
