//! The rules and tokens of a case.

use crate::wire::catalog::{list, text};
use crate::wire::write;
use mcp_resources_engine::http::{
    Answers, Auth, DeniedToken, Hosts, Origins, Polling, Rules, Sse24, Verified,
};
use serde_json::Value;

pub(crate) fn rules(given: &Value) -> Rules {
    let mut rules = Rules::default();
    for (name, value) in given.as_object().into_iter().flatten() {
        let texts = || list(value).filter_map(text).collect::<Vec<_>>();
        match name.as_str() {
            "path" => rules.path = text(value).expect("a path"),
            "health" => rules.health = text(value),
            "hosts" => rules.hosts = if value == "any" { Hosts::Any } else { Hosts::These(texts()) },
            "origins" => rules.origins = if value == "any" { Origins::Any } else { Origins::These(texts()) },
            "cors" => rules.cors = value == true,
            "cors_headers" => rules.cors_headers = texts(),
            "metrics" => rules.metrics = text(value),
            "sessions" => rules.sessions = value == true,
            "answers" if value == "json" => rules.answers = Answers::Json,
            "answers" => rules.answers = Answers::Events,
            "polling" => {
                let time = |name: &str| value[name].as_u64().expect("a time");
                rules.polling = Some(Polling { after: time("after"), retry: time("retry") });
            }
            "sse24" => rules.sse24 = Some(Sse24::default()),
            "auth" => rules.auth = Some(auth(value)),
            _ => panic!("{name}: no rule"),
        }
    }
    rules
}

fn auth(given: &Value) -> Auth {
    let texts = |name: &str| list(&given[name]).filter_map(text).collect::<Vec<_>>();
    let pair = |pair: &Value| (text(&pair[0]).expect("a scope"), text(&pair[1]).expect("a scope"));
    let mut auth = Auth::new(text(&given["resource"]).expect("a URL"), texts("authorization_servers"));
    auth.scopes_supported = texts("scopes_supported");
    auth.required_scopes = texts("required_scopes");
    auth.implied_scopes = list(&given["implied_scopes"]).map(pair).collect();
    auth.authorization_server_document = given.get("authorization_server_document").map(write);
    auth
}

/// The verification of a token of the case.
pub(crate) fn verify(tokens: &Value, token: &str) -> Result<Verified, DeniedToken> {
    match &tokens[token] {
        Value::Null => Err(DeniedToken::Invalid),
        known => {
            let verified = Verified::new(known["principal"].as_str().expect("a token has a principal"))
                .scopes(list(&known["scopes"]).filter_map(text));
            Ok(verified.deny(list(&known["deny"]).filter_map(text)))
        }
    }
}
