//! `gateway`: what other servers have, to each agent its own.
//!
//! ```text
//!  a file ──▶ worlds: an agent, its servers ──▶ a ResourceServer each ──▶ stdio: one world
//!     ▲           └──▶ Upstreams, shared                             └──▶ HTTP: the token chooses the world
//!     └── SIGHUP, or a change (--watch-config): read again; what has not changed stays
//! ```
//!
//! Law: stdout contains protocol messages only. A wrong file is one sentence, before anything is started. No server that was
//! started is left when the program ends.

mod agents;
mod listing;
mod world;

use crate::Outcome;
use crate::args::{Gateway, HttpAddress};
use crate::error::Failed;
use crate::output;
use crate::status::StatusListener;
use agents::GatewayAgents;
use mcp_resources_client::{ClientConfig, guard_children};
use mcp_resources_engine::http::Auth;
use mcp_resources_engine::principal::Principal;
use mcp_resources_provider_upstream::Upstreams;
use mcp_resources_runtime::server::{HttpBuilder, ResourceServer};
use mcp_resources_serve::{OpenedGuard, WatchedDocument};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use world::{GatewayGuard, World, WorldConfig};

/// The longest time for ending the servers. A child has 2 s after the end of its input, and 2 s after SIGTERM.
const ENDING: Duration = Duration::from_secs(8);

/// The time for which a file that was read again keeps the subscriptions of before.
const HELD: Duration = Duration::from_secs(2);

/// Serves until stdin closes, or a signal ends it.
pub(crate) fn run(args: &Gateway) -> Outcome {
    let GatewayPlan { worlds, guard } = plan(args, !args.list)?;
    if let Err(error) = guard_children() {
        output::say("warning", &format!("servers may outlive a gateway that is killed: {error}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let ended = runtime.block_on(async {
        let upstreams = Arc::new(Upstreams::new(Handle::current(), |server, note| {
            output::say("note", &format!("{server}: {note}"));
        }));
        let mut signals = EndSignals::new()?;
        let served = match args.list {
            true => listing::print(&upstreams, worlds).await,
            false => serve(args, GatewayPlan { worlds, guard }, &upstreams, &mut signals).await,
        };
        tokio::select! {
            _ = timeout(ENDING, upstreams.close()) => {}
            // A second signal ends at once: dropping a client kills the server that it started.
            () = signals.next() => {}
        }
        served
    });
    // A thread that still writes or resolves a name must not keep the program alive.
    runtime.shutdown_background();
    ended
}

/// The options of the arguments and of the file.
struct GatewayPlan {
    worlds: Vec<WorldConfig>,
    guard: GatewayGuard,
}

/// Reads the file. `opens`: whether its audit log is opened.
fn plan(args: &Gateway, opens: bool) -> Result<GatewayPlan, Failed> {
    let config = ClientConfig::load(&args.config)?;
    let file = args.config.display();
    let guard = config.guard().unwrap_or(&Value::Null);
    let guard = OpenedGuard::open(guard, config.folder(), opens)
        .map_err(|reason| Failed::usage(format!("{file}: {reason}")))?;
    let guard = GatewayGuard::new(guard);
    let agents: Vec<Option<String>> = match &args.agent {
        Some(agent) => vec![Some(agent.clone())],
        None if args.http.is_some() || args.list => {
            let agents: Vec<_> = config.agent_names().map(|name| Some(name.to_owned())).collect();
            if agents.is_empty() { vec![None] } else { agents }
        }
        None => vec![None],
    };
    let mut worlds = Vec::with_capacity(agents.len());
    for agent in agents {
        let world = WorldConfig::new(&config, agent, args.http.is_some())?;
        if args.http.is_some()
            && let (Some(agent), None) = (&world.agent, &world.token)
        {
            return Err(Failed::usage(format!(
                "{file}: the agent {agent:?} has no token, so nobody could be it over HTTP; give it token or token_env"
            )));
        }
        worlds.push(world);
    }
    let mut known: HashMap<&str, &str> = HashMap::new();
    for world in &worlds {
        let (Some(agent), Some(token)) = (&world.agent, &world.token) else { continue };
        if let Some(other) = known.insert(token, agent) {
            return Err(Failed::usage(format!(
                "{file}: the agents {other:?} and {agent:?} have the same token"
            )));
        }
    }
    Ok(GatewayPlan { worlds, guard })
}

async fn serve(
    args: &Gateway,
    plan: GatewayPlan,
    upstreams: &Arc<Upstreams>,
    signals: &mut EndSignals,
) -> Outcome {
    // Registered before anything is opened, so that an early signal is not lost.
    let mut hangups = signal(SignalKind::hangup()).map_err(system)?;
    let GatewayPlan { worlds: configs, mut guard } = plan;
    let mut worlds = Vec::with_capacity(configs.len());
    for config in configs {
        worlds.push(World::new(config, &guard, upstreams)?);
    }
    if let Some(address) = &args.status {
        let listener = StatusListener::bind(address).await.map_err(Failed::usage)?;
        output::say("note", &format!("health and metrics at http://{}", listener.address().map_err(system)?));
        let counted = upstreams.clone();
        tokio::spawn(listener.serve(Arc::new(move || counted.metrics_text())));
    }
    let mut document = WatchedDocument::new(&args.config);
    let agents = match args.http.is_some() && worlds.iter().any(|world| world.agent.is_some()) {
        true => Some(GatewayAgents::new(&worlds)?),
        false => None,
    };
    let Some(server) = worlds.first().map(|world| world.server.clone()) else { return Ok(0) };
    let served: Pin<Box<dyn Future<Output = Outcome>>> = match &args.http {
        Some(address) => Box::pin(serve_http(address, server, agents.clone(), signals)),
        None => Box::pin(async move {
            server.run_stdio().await.map(|()| 0).map_err(|error| Failed::new(error.to_string()))
        }),
    };
    tokio::pin!(served);
    loop {
        let changed = async {
            while !args.watch_config || !document.has_changed(&args.config) {
                tokio::time::sleep(WatchedDocument::LOOK).await;
            }
        };
        tokio::select! {
            ended = &mut served => return ended,
            () = async { tokio::select! { Some(()) = hangups.recv() => {}, () = changed => {} } } => {
                let file = args.config.display();
                match reload(args, &mut worlds, &mut guard, agents.as_ref(), upstreams) {
                    Ok(0) => output::say("note", &format!("{file}: read again, no agent has changed")),
                    Ok(_) => output::say("note", &format!("{file}: read again, with its changes")),
                    Err(Failed::Message { text, .. }) => {
                        output::say("error", &format!("{text}; what was served before is still served"));
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

/// Reads the file again. Agents and servers that have not changed stay as they are. Returns how many agents have changed.
fn reload(
    args: &Gateway,
    worlds: &mut Vec<World>,
    guard: &mut GatewayGuard,
    agents: Option<&GatewayAgents>,
    upstreams: &Arc<Upstreams>,
) -> Result<usize, Failed> {
    let GatewayPlan { worlds: configs, guard: other } = plan(args, false)?;
    guard.update(other).map_err(|reason| Failed::usage(format!("{}: {reason}", args.config.display())))?;
    let has_agents = configs.iter().any(|config| config.agent.is_some());
    if args.http.is_some() && has_agents != agents.is_some() {
        return Err(Failed::usage(
            "whether there are agents is decided at the start; start the gateway again",
        ));
    }
    let mut changed = 0;
    let mut next = Vec::with_capacity(configs.len());
    // What clients watch stays subscribed until the new views have subscribed to it too.
    let held = upstreams.hold();
    let mut failed = None;
    for config in configs {
        let replaced = match worlds.iter().position(|world| world.agent == config.agent) {
            Some(at) => {
                next.push(worlds.swap_remove(at));
                next.last_mut().map_or(Ok(false), |world| world.replace(config, guard, upstreams))
            }
            None => World::new(config, guard, upstreams).map(|world| next.push(world)).map(|()| true),
        };
        match replaced {
            Ok(is_other) => changed += usize::from(is_other),
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    if failed.is_some() {
        // A mistake about one agent stops no other.
        next.append(worlds);
    }
    changed += worlds.len();
    *worlds = next;
    if let Some(agents) = agents {
        agents.replace(worlds)?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let upstreams = upstreams.clone();
    tokio::spawn(async move {
        tokio::time::sleep(HELD).await;
        drop(held);
        upstreams.end_unused().await;
    });
    Ok(changed)
}

/// Serves every world at one address: with agents, the token of a request chooses its world.
async fn serve_http(
    address: &HttpAddress,
    server: ResourceServer,
    agents: Option<GatewayAgents>,
    signals: &mut EndSignals,
) -> Outcome {
    let failed = |error: io::Error| Failed::new(error.to_string());
    let builder = match &agents {
        None => server.http(),
        Some(agents) => {
            // Its own server has nothing: who is no agent gets nothing.
            let nobody = world::builder().build().map_err(|error| Failed::new(error.to_string()))?;
            let routes = agents.clone();
            let route = move |principal: &Principal| routes.endpoint(principal);
            nobody.http().auth(Auth::handed_out(), agents.clone()).route(Arc::new(route))
        }
    };
    let (serves, endpoint) = match address {
        HttpAddress::Tcp { host, port } => {
            let (builder, text) = open_to(builder, host, *port, agents.is_some())?;
            let listener = builder.bind((host.as_str(), *port)).await.map_err(|error| {
                let advice = "name another port, or 0 for a free one";
                Failed::new(format!("--http {text}: it cannot be used: {error}; {advice}"))
            })?;
            output::say("note", &format!("serving at http://{}/mcp", listener.address()));
            let endpoint = listener.server().clone();
            (tokio::spawn(listener.serve()), endpoint)
        }
        HttpAddress::Unix(path) => {
            let listener = builder.bind_unix(path).map_err(failed)?;
            output::say("note", &format!("serving at unix:{}, path /mcp", path.display()));
            let endpoint = listener.server().clone();
            (tokio::spawn(listener.serve()), endpoint)
        }
        HttpAddress::Systemd => {
            return Err(Failed::usage(
                "--http systemd: the gateway takes no socket; name a port, or unix:PATH",
            ));
        }
    };
    tokio::pin!(serves);
    tokio::select! {
        _ = &mut serves => return Ok(0),
        () = signals.next() => {}
    }
    agents.iter().for_each(GatewayAgents::shutdown);
    endpoint.shutdown();
    let _ = serves.await;
    Ok(0)
}

/// Refuses an address that other machines reach without authentication.
fn open_to(
    builder: HttpBuilder,
    host: &str,
    port: u16,
    has_agents: bool,
) -> Result<(HttpBuilder, String), Failed> {
    let text = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let is_local =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_local {
        return Ok((builder, text));
    }
    if !has_agents {
        return Err(Failed::usage(format!(
            "--http {text} serves other machines, and nobody is asked who they are; write agents with tokens into the file"
        )));
    }
    output::say("warning", "tokens cross the network unencrypted; put a proxy with TLS in front");
    // Its names are not known here.
    Ok((builder.any_host(), text))
}

/// The signals that end the program.
struct EndSignals {
    terminated: Signal,
    interrupted: Signal,
}

impl EndSignals {
    fn new() -> Result<Self, Failed> {
        let of = |kind| signal(kind).map_err(system);
        Ok(Self { terminated: of(SignalKind::terminate())?, interrupted: of(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.interrupted.recv() => {}
        }
    }
}

fn system(error: io::Error) -> Failed {
    Failed::new(format!("the system refuses what is needed: {error}"))
}
