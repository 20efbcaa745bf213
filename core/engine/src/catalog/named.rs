//! Tools and prompts by name: their checks at registration, and their list items.
//!
//! Law: an entry never changes, except that its list items are encoded lazily, once for each set of fields that
//! revisions share. A schema that passes is valid in every revision that has it.

use super::check::CheckedField;
use super::encode::{members_of, write_icons, write_str};
use super::items::{CatalogItem, Completer, EncodedItem, EncodedTool, HandlerId, MountId};
use super::template_tool::{ToolTemplate, VisibleValues};
use super::tool_schema::{self, ToolSchema};
use crate::jsonrpc::{ObjectWriter, object};
use crate::limits::Limits;
use crate::resource::{
    Icon, Prompt, PromptArgument, RegistrationError, Tool, ToolAnnotations, UI, has_ui_scheme, is_scope,
    member,
};
use crate::version::{FieldSet, ToolFields};
use mcp_resources_template::uri;
use std::sync::Arc;

/// Longest name of a tool, in bytes.
const MAX_TOOL_NAME: usize = 128;
/// Longest name of a prompt, in bytes.
const MAX_PROMPT_NAME: usize = 1024;

/// The answer to a call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSource {
    /// A handler answers.
    Handler(HandlerId),
    /// The engine answers with a list of resources, as lines of text.
    ListResources,
    /// The engine answers with the contents of a resource.
    ReadResource,
    /// The engine answers with the contents of a resource of the template with this text.
    Template(Arc<str>),
    /// The engine answers with the contents of the resource at this URI, which is in normal form.
    Resource(Arc<str>),
}

impl ToolSource {
    /// The handler, if there is one.
    pub fn handler(&self) -> Option<HandlerId> {
        match self {
            Self::Handler(handler) => Some(*handler),
            Self::ListResources | Self::ReadResource | Self::Template(_) | Self::Resource(_) => None,
        }
    }
}

/// A registered tool.
#[derive(Debug)]
pub struct ToolEntry {
    /// The tool as it was registered, its schemas without white space.
    pub tool: Tool,
    /// The origin of its results.
    pub source: ToolSource,
    /// The mount that it belongs to.
    pub mount: Option<MountId>,
    /// The template that it reads, if it says more about its variables than the template does.
    pub(crate) template: Option<ToolTemplate>,
    /// The URI of its page in normal form.
    page: Option<Arc<str>>,
    output: Option<ToolSchema>,
    encoded: EncodedTool,
}

/// The part of a tool that a principal may know about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolView {
    /// All of it.
    Whole,
    /// Without some of its details.
    Part {
        /// Whether its page is shown.
        page: bool,
        /// The values of its arguments that are shown.
        values: VisibleValues,
    },
}

/// A registered prompt.
#[derive(Debug)]
pub struct PromptEntry {
    /// The prompt as it was registered.
    pub prompt: Prompt,
    /// The handler that answers, and completes arguments.
    pub handler: HandlerId,
    /// The mount that it belongs to.
    pub mount: Option<MountId>,
    encoded: EncodedItem,
}

impl ToolEntry {
    /// Checks a tool.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first field that is invalid.
    pub(super) fn new(
        mut tool: Tool,
        source: ToolSource,
        mount: Option<MountId>,
        limits: &Limits,
    ) -> Result<Self, RegistrationError> {
        let name = tool.name.clone();
        let field = CheckedField { of: &name };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let is_valid = (1..=MAX_TOOL_NAME).contains(&name.len()) && name.bytes().all(is_name);
        let expected = "1 to 128 ASCII letters, digits, underscores, hyphens and dots";
        field.ensure(is_valid, "name", &name, expected)?;
        tool.input_schema = tool_schema::input(&tool.input_schema, limits.nesting)
            .map_err(|expected| schema_error(&field, "inputSchema", &tool.input_schema, expected, limits))?;
        let output = match &tool.output_schema {
            None => None,
            Some(given) => Some(
                ToolSchema::output(given, limits.nesting)
                    .map_err(|expected| schema_error(&field, "outputSchema", given, expected, limits))?,
            ),
        };
        check_shared(&field, &tool.icons, &mut tool.meta, &tool.scopes, limits)?;
        let page = checked_page(&field, &tool, limits)?;
        Ok(Self { tool, source, mount, template: None, page, output, encoded: EncodedTool::default() })
    }

    /// The same tool with what it says about the variables of its template.
    pub(super) fn with_template(self, template: ToolTemplate) -> Self {
        Self { template: Some(template), ..self }
    }

    /// The URI of its page, in normal form.
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Whether its structured result is the member `result` of an object, where the result must be an object: `None`
    /// if it has no output schema, so that the result itself decides.
    pub fn wraps_output(&self) -> Option<bool> {
        self.output.as_ref().map(ToolSchema::is_wrapped)
    }

    /// Appends the list item with the details of `view`.
    pub(super) fn append(&self, fields: ToolFields, view: &ToolView, out: &mut Vec<u8>) {
        match view {
            ToolView::Whole => out.extend_from_slice(self.encoded(fields)),
            ToolView::Part { page, values } => {
                let schema = self.template.as_ref().map(|template| template.schema(values));
                self.write(fields, schema.as_deref(), *page, out);
            }
        }
    }

    fn write(&self, fields: ToolFields, schema: Option<&str>, page: bool, out: &mut Vec<u8>) {
        let tool = &self.tool;
        object(out, |item| {
            item.str("name", &tool.name);
            if fields.has_output() {
                write_str(item, "title", tool.title.as_deref());
            }
            write_str(item, "description", tool.description.as_deref());
            let schema = schema.unwrap_or(&tool.input_schema);
            item.value("inputSchema").extend_from_slice(schema.as_bytes());
            if let Some(output) = self.output.as_ref().filter(|_| fields.has_output()) {
                let schema = output.text(fields.has_object_output());
                item.value("outputSchema").extend_from_slice(schema.as_bytes());
            }
            if fields.has_annotations() {
                item.object_unless_empty("annotations", |hints| write_hints(hints, &tool.annotations));
            }
            if fields.has_icons() {
                write_icons(item, &tool.icons);
            }
            if fields.has_output() {
                item.object_unless_empty("_meta", |meta| {
                    meta.members(members_of(tool.meta.as_deref()));
                    if page {
                        self.write_page(meta);
                    }
                });
            }
        });
    }

    /// Writes `ui`, unless the tool has neither a page nor a choice of callers.
    fn write_page(&self, meta: &mut ObjectWriter<'_>) {
        meta.object_unless_empty(UI, |ui| {
            write_str(ui, "resourceUri", self.tool.ui.as_deref());
            if !self.tool.ui_visibility.is_empty() {
                ui.array("visibility", |array| {
                    self.tool.ui_visibility.iter().for_each(|caller| array.str(caller.as_str()));
                });
            }
        });
    }
}

impl PromptEntry {
    /// Checks a prompt.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first field that is invalid.
    pub(super) fn new(
        mut prompt: Prompt,
        handler: HandlerId,
        mount: Option<MountId>,
        limits: &Limits,
    ) -> Result<Self, RegistrationError> {
        let name = prompt.name.clone();
        let field = CheckedField { of: &name };
        let is_valid =
            |name: &str| (1..=MAX_PROMPT_NAME).contains(&name.len()) && !name.contains(char::is_control);
        let expected = "1 to 1,024 bytes of text without control characters";
        field.ensure(is_valid(&name), "name", &name, expected)?;
        for (at, argument) in prompt.arguments.iter().enumerate() {
            let path = format!("arguments[{at}].name");
            field.ensure(is_valid(&argument.name), &path, &argument.name, expected)?;
            let before = prompt.arguments.get(..at).unwrap_or_default();
            let is_new = before.iter().all(|other| other.name != argument.name);
            field.ensure(is_new, &path, &argument.name, "each argument once")?;
        }
        for (at, completed) in prompt.completes.iter().enumerate() {
            let is_known = prompt.arguments.iter().any(|argument| argument.name == *completed);
            let path = format!("completes[{at}]");
            field.ensure(is_known, &path, completed, "an argument of the prompt")?;
        }
        check_shared(&field, &prompt.icons, &mut prompt.meta, &prompt.scopes, limits)?;
        Ok(Self { prompt, handler, mount, encoded: EncodedItem::default() })
    }

    /// The completer of the argument `name`; `None` if the prompt has no such argument.
    pub fn completer(&self, name: &str) -> Option<Completer<'_>> {
        let argument = self.prompt.arguments.iter().find(|argument| argument.name == name)?;
        Some(if self.prompt.completes.iter().any(|other| other == name) {
            Completer::Handler
        } else if argument.values.is_empty() {
            Completer::Nothing
        } else {
            Completer::Values(&argument.values)
        })
    }

    /// Whether any of its arguments has a completer.
    pub fn has_completers(&self) -> bool {
        !self.prompt.completes.is_empty()
            || self.prompt.arguments.iter().any(|argument| !argument.values.is_empty())
    }

    fn write(&self, fields: FieldSet, out: &mut Vec<u8>) {
        let prompt = &self.prompt;
        let is_titled = fields != FieldSet::Basic;
        object(out, |item| {
            item.str("name", &prompt.name);
            if is_titled {
                write_str(item, "title", prompt.title.as_deref());
            }
            write_str(item, "description", prompt.description.as_deref());
            if !prompt.arguments.is_empty() {
                item.array("arguments", |arguments| {
                    for argument in &prompt.arguments {
                        arguments.object(|object| write_argument(object, argument, is_titled));
                    }
                });
            }
            if fields == FieldSet::Full {
                write_icons(item, &prompt.icons);
            }
            write_meta(item, prompt.meta.as_deref(), is_titled);
        });
    }
}

impl<'c> CatalogItem<'c> for &'c ToolEntry {
    type Fields = ToolFields;

    fn key(self) -> &'c str {
        &self.tool.name
    }

    fn encoded(self, fields: ToolFields) -> &'c [u8] {
        self.encoded.get(fields.index(), |out| self.write(fields, None, true, out))
    }
}

impl<'c> CatalogItem<'c> for &'c PromptEntry {
    type Fields = FieldSet;

    fn key(self) -> &'c str {
        &self.prompt.name
    }

    fn encoded(self, fields: FieldSet) -> &'c [u8] {
        self.encoded.get(fields.index(), |out| self.write(fields, out))
    }
}

/// The error for a schema. A header of a gateway is named by its place, others by the whole schema.
fn schema_error(
    field: &CheckedField<'_>,
    name: &str,
    schema: &str,
    expected: &str,
    limits: &Limits,
) -> RegistrationError {
    match tool_schema::header(schema, limits.nesting) {
        Some((place, value)) => field.invalid(format!("{name}.{place}"), value, expected),
        None => field.invalid(name, schema, expected),
    }
}

/// Checks the page of a tool, and returns its URI in normal form.
fn checked_page(
    field: &CheckedField<'_>,
    tool: &Tool,
    limits: &Limits,
) -> Result<Option<Arc<str>>, RegistrationError> {
    let has_page = tool.ui.is_some() || !tool.ui_visibility.is_empty();
    if has_page && let Some(meta) = tool.meta.as_deref().filter(|meta| member(meta, UI).is_some()) {
        let expected = "no member `ui` beside the option ui";
        return Err(field.invalid("_meta", meta, expected));
    }
    let Some(given) = &tool.ui else { return Ok(None) };
    let normal = uri::normalize(given, limits.uri).ok().filter(|_| has_ui_scheme(given));
    let normal =
        normal.ok_or_else(|| field.invalid("ui", given, "the URI of a page, such as ui://shop/order"))?;
    Ok(Some(normal.as_ref().into()))
}

/// Checks the fields that tools and prompts share.
fn check_shared(
    field: &CheckedField<'_>,
    icons: &[Icon],
    meta: &mut Option<String>,
    scopes: &[String],
    limits: &Limits,
) -> Result<(), RegistrationError> {
    for (at, icon) in icons.iter().enumerate() {
        field.icon(icon, at, limits)?;
    }
    field.meta(meta, limits)?;
    let wrong = scopes.iter().find(|scope| !is_scope(scope));
    let expected = "printable ASCII without spaces, quotes and backslashes";
    wrong.map_or(Ok(()), |scope| Err(field.invalid("scopes", scope, expected)))
}

fn write_hints(object: &mut ObjectWriter<'_>, annotations: &ToolAnnotations) {
    write_str(object, "title", annotations.title.as_deref());
    let hints = [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ];
    for (name, hint) in hints {
        if let Some(hint) = hint {
            object.bool(name, hint);
        }
    }
}

fn write_argument(object: &mut ObjectWriter<'_>, argument: &PromptArgument, is_titled: bool) {
    object.str("name", &argument.name);
    if is_titled {
        write_str(object, "title", argument.title.as_deref());
    }
    write_str(object, "description", argument.description.as_deref());
    if argument.required {
        object.bool("required", true);
    }
}

/// Writes `_meta`, which was checked at registration, under revisions that have it.
fn write_meta(item: &mut ObjectWriter<'_>, meta: Option<&str>, has_meta: bool) {
    if let Some(meta) = meta.filter(|meta| has_meta && *meta != "{}") {
        item.value("_meta").extend_from_slice(meta.as_bytes());
    }
}
