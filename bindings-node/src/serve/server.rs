//! The server: an engine, its functions by number, and the channels that deliver changes.

use crate::calls::function::{Function, Functions};
use crate::calls::redact::Look;
use crate::calls::server_state::ServerState;
use crate::serve::audit;
use crate::serve::auth::TokenVerifier;
use crate::serve::config::Config;
use crate::serve::providers::Provider;
use crate::values::error::{raise, registration, unusable};
use crate::values::options::{self, PlainValue, ServerSettings, unsigned};
use crate::values::resource;
use crate::values::spelling::number;
use crate::values::template::UriTemplate;
use mcp_resources_bus::from_url;
use mcp_resources_engine::catalog::ItemSource;
use mcp_resources_engine::engine::{ServerInfo, Setup};
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_engine::resource as core;
use mcp_resources_engine::suggest;
use mcp_resources_runtime::provider::WatchChange;
use mcp_resources_runtime::registry::{ForeignFunction, Registry, RegistryChange};
use mcp_resources_serve::ForeignConfig;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A server of resources.
#[napi]
pub struct Server {
    pub(crate) state: Rc<ServerState>,
}

/// A URI, and whether clients begin or stop watching it.
#[napi(object)]
pub struct Watched {
    /// The name of what serves it.
    pub name: String,
    /// In canonical form.
    pub uri: String,
    /// From now on.
    pub is_watched: bool,
}

/// One change of the registrations.
#[napi]
pub struct Edit(RegistryChange<Functions>);

#[napi]
impl Server {
    /// Nothing registered yet, or the sources of a configuration file, which has the name and the version then.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        env: Env,
        name: String,
        version: String,
        fields: PlainValue,
        mut settings: ServerSettings,
        #[napi(ts_arg_type = "Config | null")] config: Option<ClassInstance<'_, Config>>,
    ) -> Result<Self> {
        let mut config = config.map(|config| config.take()).transpose()?;
        let own = config.as_mut().and_then(ForeignConfig::take_audit);
        let file = if settings.audit.is_some() { audit::file(settings.audit.take())? } else { own };
        let in_code = || {
            let info = ServerInfo { name, version, ..ServerInfo::default() };
            Setup { info, ..Setup::default() }
        };
        let setup = config.as_ref().map_or_else(in_code, ForeignConfig::setup);
        let bus = settings.bus.take();
        let (info, options) = options::server(&env, setup, fields, settings)?;
        let described = info.clone();
        let registry = Registry::new(info, options).map_err(|error| registration(&env, &error, None))?;
        if let Some(file) = file {
            registry.audit(Box::new(file));
        }
        if let Some(url) = bus {
            let bus =
                from_url(&url).map_err(|error| raise(&env, "RegistrationError", error.to_string(), &[]))?;
            registry.connect_bus(bus).map_err(|error| registration(&env, &error, None))?;
        }
        let state = ServerState::new(env, registry)?;
        if let Some(config) = config {
            state.begin(config, described)?;
        }
        Ok(Self { state })
    }

    /// The message about an unknown name, with the known name that was probably meant.
    #[napi(catch_unwind)]
    pub fn unexpected(what: String, name: String, known: Vec<String>) -> String {
        suggest::unexpected(&what, &name, &known.iter().map(|name| &**name).collect::<Vec<_>>())
    }

    /// The template that was probably meant by a text in the notation of a web framework.
    #[napi(catch_unwind)]
    pub fn suggested_template(text: String) -> Option<String> {
        suggest::template(&text)
    }

    /// Declares a method that is not ours.
    #[napi(catch_unwind)]
    pub fn extend(&self, method: String, callee: &Function, about: ForeignFields) -> Result<()> {
        let list_kind = about.lists.map(|word| list_kinds(&word)).transpose()?;
        let ForeignFields { name_param, capability, timeout, .. } = about;
        let timeout = timeout.map(|timeout| unsigned("timeout", timeout)).transpose()?;
        let foreign = ForeignFunction { method, name_param, capability, list_kind, timeout };
        let added = self.state.registry.extend(foreign, Arc::new(callee.callee.clone().into()));
        added.map_err(|error| registration(&self.state.env, &error, None))
    }

    /// Applies edits, all or none. Returns warnings for the log.
    #[napi(catch_unwind)]
    pub fn publish(&self, edits: Vec<ClassInstance<'_, Edit>>) -> Result<Vec<String>> {
        let changes: Vec<_> = edits.iter().map(|edit| edit.0.clone()).collect();
        let registry = &self.state.registry;
        let published = self.state.delivering(|| registry.publish(changes))?;
        published.map_err(|error| {
            let first = self.state.registry.collides_with(&error);
            let reader = first.as_ref().map(|functions| &*functions.reader.name);
            registration(&self.state.env, &error, reader)
        })
    }

    /// Mounts providers, all or none.
    #[napi(catch_unwind)]
    pub fn mount(&self, providers: Vec<ClassInstance<'_, Provider>>) -> Result<()> {
        self.state.engine()?;
        let providers: Vec<_> = providers.iter().map(|given| given.provider.clone()).collect();
        let mounts = self.state.registry.mounts();
        let mounted = self.state.delivering(|| mounts.mount_all(&providers))?;
        mounted.map_err(|error| registration(&self.state.env, &error, None))
    }

    /// Ends the mount of a provider; `false` if it is not mounted here.
    #[napi(catch_unwind)]
    pub fn unmount(&self, given: &Provider) -> Result<bool> {
        self.state.delivering(|| self.state.registry.mounts().unmount_provider(&given.provider))
    }

    /// Sets the function that transforms contents of providers before they are sent, and its maximum time in
    /// milliseconds.
    #[napi(catch_unwind)]
    pub fn redact_with(
        &self,
        #[napi(
            ts_arg_type = "(uri: string, contents: Entry[], driver: number | null, response: number | null) => Entry[] | null"
        )]
        look: Look,
    ) {
        let patience = Duration::from_millis(self.state.registry.read_timeout());
        let redact = self.state.redactions.reached(self.state.woken.clone(), patience);
        self.state.registry.mounts().redact_with(redact);
        let _ = self.state.redact.set(look);
    }

    /// Checks that a link leads to what is registered, with values of the declared types.
    #[napi(catch_unwind)]
    pub fn check_link(&self, registered: String, uri: String) -> Result<()> {
        self.state.engine()?.check_link(&registered, &uri).map_err(Error::from_reason)
    }

    /// Notifies the clients that watch this URI that its contents have changed.
    #[napi(catch_unwind)]
    pub fn notify_updated(&self, uri: String, principal: Option<String>) -> Result<()> {
        let engine = self.state.engine()?;
        let now = self.state.clock.now();
        let updated = self.state.delivering(|| match &principal {
            None => engine.updated(&uri, now),
            Some(principal) => engine.updated_for(principal, &uri, now),
        })?;
        updated.map_err(|error| registration(&self.state.env, &error, None))
    }

    /// Tells clients that a list has changed.
    #[napi(catch_unwind)]
    pub fn notify_list_changed(&self, lists: String) -> Result<()> {
        let engine = self.state.engine()?;
        let lists = list_kinds(&lists)?;
        self.state.delivering(|| engine.list_changed(lists, self.state.clock.now()))
    }

    /// Ends every listen that is open now with its result.
    #[napi(catch_unwind)]
    pub fn shutdown(&self) -> Result<()> {
        self.state.delivering(|| self.state.shutdown())?
    }

    /// The tokens of a subject are no longer valid: ends its listens and streams.
    #[napi(catch_unwind)]
    pub fn revoke(&self, subject: String) -> Result<()> {
        let engine = self.state.engine()?;
        self.state.delivering(|| engine.revoke(&subject))
    }

    /// Looks again at what a principal may see.
    #[napi(catch_unwind)]
    pub fn regrant(&self, principal: String) -> Result<()> {
        let engine = self.state.engine()?;
        self.state.delivering(|| engine.regrant(&principal))
    }

    /// The metrics in the text format of Prometheus; `null` if they are off.
    #[napi(catch_unwind)]
    pub fn metrics_text(&self) -> Result<Option<String>> {
        Ok(self.state.engine()?.metrics_text())
    }

    /// Waits, not for long, until the file has all that is recorded.
    #[napi(catch_unwind)]
    pub fn flush_audit(&self) {
        self.state.registry.flush_audit();
        self.state.registry.flush_bus();
    }

    /// Has `bell` called when there is something for `takeAuditRecords`. It does not keep the process alive.
    #[napi(catch_unwind)]
    pub fn watch_audit_records(&self, bell: napi::bindgen_prelude::Function<'_, (), ()>) -> Result<()> {
        self.state.registry.watch_audit_records(audit::watcher(&bell)?);
        Ok(())
    }

    /// Calls `bell` when there is something for `takeWatches`: clients begin or stop watching `uri`, a resource or
    /// template. Only the first bell counts. Returns the name under which the changes are reported.
    #[napi(catch_unwind)]
    pub fn watch(&self, uri: String, bell: napi::bindgen_prelude::Function<'_, (), ()>) -> Result<String> {
        self.state.engine()?;
        Ok(self.state.registry.mounts().watch_changes(&uri, audit::watcher(&bell)?).to_string())
    }

    /// Takes the changes of what clients watch since the last call.
    #[napi(catch_unwind)]
    pub fn take_watches(&self) -> Vec<Watched> {
        let change = |one: WatchChange| Watched {
            name: one.name.to_string(),
            uri: one.uri.to_string(),
            is_watched: one.is_watched,
        };
        self.state.registry.mounts().take_watches().into_iter().map(change).collect()
    }

    /// Takes the audit records since the last call: a JSON object on each line.
    #[napi(catch_unwind)]
    pub fn take_audit_records(&self) -> String {
        let mut entries = Vec::new();
        let mut lines = Vec::new();
        self.state.registry.take_audit_records(&mut entries);
        entries.iter().for_each(|entry| entry.write_line(&mut lines));
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// Time for requests in flight to finish after the end of input, in milliseconds.
    #[napi(catch_unwind, getter)]
    pub fn grace(&self) -> f64 {
        number(self.state.registry.grace())
    }

    /// The verifier of tokens of the configuration file; `null` if it has none.
    #[napi(catch_unwind, getter)]
    pub fn verifier(&self) -> Option<TokenVerifier> {
        self.state.http_options().verifier.map(TokenVerifier::from)
    }

    /// The number of registered functions.
    #[napi(catch_unwind, getter)]
    pub fn handlers(&self) -> f64 {
        number(self.state.registry.len() as u64)
    }

    /// The number of HTTP requests that wait for functions, or are remembered after their client has left: for tests.
    #[napi(catch_unwind, getter)]
    pub fn waiting(&self) -> f64 {
        number(self.state.waiting() as u64)
    }

    /// Stops the clock at this many milliseconds, for tests.
    #[napi(catch_unwind)]
    pub fn set_time(&self, tick: i64, unix: i64) {
        let [tick, unix] = [tick, unix].map(|time| Millis::try_from(time).unwrap_or_default());
        self.state.clock.set(Some(Now { tick, unix }));
    }
}

/// The options of a custom method.
#[napi(object, object_to_js = false)]
pub struct ForeignFields {
    /// The member of the params that the HTTP header `Mcp-Name` repeats.
    pub name_param: Option<String>,
    /// A capability to declare: its name, and settings as JSON text.
    pub capability: Option<(String, String)>,
    /// The lists of the method, if clients may listen to changes of them.
    pub lists: Option<String>,
    /// The longest time for a call, in milliseconds; 0 for any time.
    pub timeout: Option<i64>,
}

#[napi]
impl Edit {
    /// Adds a resource that a function reads, or whose text or bytes never change. `access` decides who may use one that a
    /// function reads.
    #[napi(catch_unwind, factory)]
    pub fn add_resource(
        resource: PlainValue,
        source: Either3<String, ClassInstance<'_, Function>, Uint8Array>,
        #[napi(ts_arg_type = "NativeFunction | null")] access: Option<ClassInstance<'_, Function>>,
    ) -> Result<Self> {
        let mut resource = resource::resource(resource)?;
        if let (Either3::B(function), Some(access)) = (&source, &access) {
            resource.details.access = true;
            let access = Some(access.callee.clone());
            let functions = Arc::new(Functions { access, ..function.callee.clone().into() });
            return Ok(Self(RegistryChange::AddResource(resource, functions, None)));
        }
        Ok(Self(match source {
            Either3::A(text) => RegistryChange::AddConstant(resource, ItemSource::Text(text.into())),
            Either3::B(function) => read_by(resource, &function),
            Either3::C(bytes) => RegistryChange::AddConstant(resource, ItemSource::Bytes((&*bytes).into())),
        }))
    }

    /// Adds a page whose HTML never changes, or that a function reads.
    #[napi(catch_unwind, factory)]
    pub fn add_page(
        env: Env,
        page: PlainValue,
        source: Either<String, ClassInstance<'_, Function>>,
    ) -> Result<Self> {
        let made = resource::page(page)?.into_resource();
        let (resource, _) = made.map_err(|refused| registration(&env, &refused, None))?;
        Ok(Self(match source {
            Either::A(html) => RegistryChange::AddConstant(resource, ItemSource::Text(html.into())),
            Either::B(function) => read_by(resource, &function),
        }))
    }

    /// Removes a resource.
    #[napi(catch_unwind, factory)]
    pub fn remove_resource(uri: String) -> Self {
        Self(RegistryChange::RemoveResource(uri))
    }

    /// Adds a template with its reader, its completers by variable, its lister, and the function that decides who may use
    /// its resources.
    #[napi(catch_unwind, factory)]
    pub fn add_template(
        template: &UriTemplate,
        fields: PlainValue,
        reader: ClassInstance<'_, Function>,
        #[napi(ts_arg_type = "[string, NativeFunction][]")] completers: Vec<(
            String,
            ClassInstance<'_, Function>,
        )>,
        #[napi(ts_arg_type = "NativeFunction | null")] lister: Option<ClassInstance<'_, Function>>,
        #[napi(ts_arg_type = "NativeFunction | null")] access: Option<ClassInstance<'_, Function>>,
    ) -> Result<Self> {
        let completes = completers.iter().map(|(name, _)| name.clone()).collect();
        let mut template = resource::template(template, fields, completes)?;
        template.details.access = access.is_some();
        let functions = Functions {
            reader: reader.callee.clone(),
            completers: completers.iter().map(|(name, own)| (name.clone(), own.callee.clone())).collect(),
            lister: lister.map(|lister| lister.callee.clone()),
            access: access.map(|access| access.callee.clone()),
        };
        Ok(Self(RegistryChange::AddTemplate(Box::new(template), Arc::new(functions))))
    }

    /// Removes a template.
    #[napi(catch_unwind, factory)]
    pub fn remove_template(uri_template: String) -> Self {
        Self(RegistryChange::RemoveTemplate(uri_template))
    }

    /// Adds a tool.
    #[napi(catch_unwind, factory)]
    pub fn add_tool(tool: PlainValue, caller: ClassInstance<'_, Function>) -> Result<Self> {
        let functions = Arc::new(caller.callee.clone().into());
        Ok(Self(RegistryChange::AddTool(resource::tool(tool)?.into(), functions)))
    }

    /// Removes a tool.
    #[napi(catch_unwind, factory)]
    pub fn remove_tool(name: String) -> Self {
        Self(RegistryChange::RemoveTool(name))
    }

    /// Adds a prompt with its completers by argument.
    #[napi(catch_unwind, factory)]
    pub fn add_prompt(
        prompt: PlainValue,
        caller: ClassInstance<'_, Function>,
        #[napi(ts_arg_type = "[string, NativeFunction][]")] completers: Vec<(
            String,
            ClassInstance<'_, Function>,
        )>,
    ) -> Result<Self> {
        let completes = completers.iter().map(|(name, _)| name.clone()).collect();
        let prompt = resource::prompt(prompt, completes)?;
        let functions = Functions {
            completers: completers.iter().map(|(name, own)| (name.clone(), own.callee.clone())).collect(),
            ..caller.callee.clone().into()
        };
        Ok(Self(RegistryChange::AddPrompt(prompt.into(), Arc::new(functions))))
    }

    /// Removes a prompt.
    #[napi(catch_unwind, factory)]
    pub fn remove_prompt(name: String) -> Self {
        Self(RegistryChange::RemovePrompt(name))
    }
}

fn list_kinds(word: &str) -> Result<ListKinds> {
    let refused = || unusable(format!("{word:?} is no list: resources, tools or prompts"));
    ListKinds::parse(word).ok_or_else(refused)
}

/// The change that adds a resource with a function.
fn read_by(resource: core::Resource, function: &Function) -> RegistryChange<Functions> {
    let functions = Arc::new(function.callee.clone().into());
    RegistryChange::AddResource(resource, functions, Some(function.number.clone()))
}
