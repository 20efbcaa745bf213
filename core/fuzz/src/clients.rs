//! A client and whatever a server may say.

use mcp_resources_engine::client::{
    Access, AllowList, CallOptions, ClientCall, Effect, Lost, Machine, MachineOptions,
};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::version::Revision;
use std::collections::BTreeMap;

/// The lines of a server, each with 20 ms between: every call ends once, what is kept stays bounded, and contents that are
/// not allowed never come out. The first byte chooses the era.
pub fn client(data: &[u8]) {
    let [era, lines @ ..] = data else { return };
    let allowed = AllowList::Globs(vec!["n://a*".into(), "n://dir/**".into()]);
    let Ok(access) = Access::new(&allowed) else { return };
    let mut options = MachineOptions::new("fuzz", access.clone());
    options.revision =
        [None, Some(Revision::V2026_07_28), Some(Revision::V2025_11_25)][usize::from(*era) % 3];
    options.answers = vec!["elicitation/create".into()];
    let mut machine = Machine::new(options);
    let mut out = Vec::new();
    let mut now = Now::default();
    machine.watch(100, "n://dir", now, &mut out);
    for (number, call) in calls().into_iter().enumerate() {
        machine.call(number as u64, call, CallOptions::default(), now, &mut out);
    }
    machine.opened(now, &mut out);
    let mut ended = BTreeMap::new();
    let mut sent = 0;
    let mut count = 0;
    for line in lines.split(|byte| *byte == b'\n') {
        count += 1;
        now.tick += 20;
        machine.received(line, now, &mut out);
        machine.tick(now, &mut out);
        take(&mut out, &access, &mut ended, &mut sent);
        if out.iter().any(|effect| matches!(effect, Effect::Connect)) {
            machine.opened(now, &mut out);
        }
    }
    assert!(sent <= 100 * (count + 1), "{sent} messages for {count}");
    machine.lost(&Lost::Broken("over".into()), now, &mut out);
    machine.close(&mut out);
    take(&mut out, &access, &mut ended, &mut sent);
    assert!((0..4).all(|call| ended.get(&call) == Some(&1)), "{ended:?}");
    assert_eq!(machine.deadline(), None);
}

fn calls() -> Vec<ClientCall> {
    vec![
        ClientCall::Read { uri: "n://a".into() },
        ClientCall::List { cursor: None },
        ClientCall::ListTemplates { cursor: None },
        ClientCall::Complete {
            template: "n://a{x}".into(),
            variable: "x".into(),
            value: String::new(),
            context: Vec::new(),
        },
    ]
}

fn take(out: &mut Vec<Effect>, access: &Access, ended: &mut BTreeMap<u64, u32>, sent: &mut usize) {
    use mcp_resources_engine::client::ClientOutcome;
    for effect in out.drain(..) {
        match effect {
            Effect::Send(_) => *sent += 1,
            Effect::Finished { call, outcome } => {
                *ended.entry(call).or_default() += 1;
                match outcome {
                    Ok(ClientOutcome::Contents { contents, .. }) => {
                        assert!(
                            contents
                                .iter()
                                .all(|entry| entry.uri.as_deref().is_some_and(|uri| access.allows(uri)))
                        );
                    }
                    Ok(ClientOutcome::Page(page)) => {
                        let allowed = |uri: &str| access.allows(uri) || access.reaches(uri);
                        assert!(page.items.iter().all(|item| allowed(&item.uri)));
                    }
                    _ => {}
                }
            }
            Effect::Changed { change: Ok(change), .. } => assert!(access.allows(&change.uri)),
            _ => {}
        }
    }
}
