//! Tools and prompts as they are registered, described once for all revisions.
//!
//! Law: plain data with builders, like resources. `catalog` checks every value at registration.

use super::{Icon, Parameter, ToolVisibility};

/// A function that a model can call by name.
///
/// ```
/// use mcp_resources_engine::resource::{Tool, ToolAnnotations};
/// let add = Tool::new("add")
///     .title("Add")
///     .description("Adds two numbers.")
///     .input_schema(r#"{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}"#)
///     .annotations(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
/// assert_eq!(add.name, "add");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a tool does nothing until it is registered"]
pub struct Tool {
    /// Its name: 1 to 128 ASCII letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// A label for people (2025-06-18).
    pub title: Option<String>,
    /// A description for the model.
    pub description: Option<String>,
    /// The JSON schema of its arguments, as text; its `type` is `object`. Default: any object.
    pub input_schema: String,
    /// The JSON schema of its structured result, as text (2025-06-18). Before 2026-07-28 a schema of another type than
    /// `object` is published, like the result, as the member `result` of an object. Default: none.
    pub output_schema: Option<String>,
    /// Hints for clients (2025-03-26).
    pub annotations: ToolAnnotations,
    /// Its icons (2025-11-25).
    pub icons: Vec<Icon>,
    /// Members of `_meta`, as the text of a JSON object (2025-06-18).
    pub meta: Option<String>,
    /// The scopes that a token must have to call it, all of them. Never published.
    pub scopes: Vec<String>,
    /// The URI of a registered page ([`UiPage`](super::UiPage)) that shows its results: `_meta.ui.resourceUri`
    /// (SEP-1865). A client that may not see the page is not told of it. Default: none.
    pub ui: Option<String>,
    /// The callers of a tool with a page: `_meta.ui.visibility` (SEP-1865). Default: empty, the model and the page.
    pub ui_visibility: Vec<ToolVisibility>,
}

/// A tool that reads a resource, or one resource of a template, beside those that [`Template::tool`](super::Template::tool)
/// offers: for mounts. Its arguments are the variables of the template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a tool does nothing until it is registered"]
pub struct ReadTool {
    /// The tool. Its input schema is made from the variables.
    pub tool: Tool,
    /// The text of a registered template, or the URI of a registered resource.
    pub target: String,
    /// Types, descriptions and values of the variables, for this tool alone. Values are published only to principals
    /// that may see a URI with them, and only if there are at most [`ReadTool::MOST_VALUES`]. A variable that has
    /// only one such value may be left out.
    pub parameters: Vec<Parameter>,
}

/// Hints about a tool. A client must not rely on them unless it trusts the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// A label for people. Clients that know [`Tool::title`] prefer that.
    pub title: Option<String>,
    /// Whether it changes nothing. Clients assume `false`.
    pub read_only: Option<bool>,
    /// Whether it may delete or overwrite something. Clients assume `true`.
    pub destructive: Option<bool>,
    /// Whether a second call with the same arguments changes nothing further. Clients assume `false`.
    pub idempotent: Option<bool>,
    /// Whether it reaches things outside the server, such as the web. Clients assume `true`.
    pub open_world: Option<bool>,
}

/// A text or conversation that a person can choose by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a prompt does nothing until it is registered"]
pub struct Prompt {
    /// Its name: 1 to 1,024 bytes without control characters.
    pub name: String,
    /// A label for people (2025-06-18).
    pub title: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// Its arguments, in the order in which clients show them.
    pub arguments: Vec<PromptArgument>,
    /// The arguments that the handler completes.
    pub completes: Vec<String>,
    /// Its icons (2025-11-25).
    pub icons: Vec<Icon>,
    /// Members of `_meta`, as the text of a JSON object (2025-06-18).
    pub meta: Option<String>,
    /// The scopes that a token must have to get it, all of them. Never published.
    pub scopes: Vec<String>,
}

/// One argument of a prompt. Its value is a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A label for people (2025-06-18).
    pub title: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// Whether it must be given. Default `false`.
    pub required: bool,
    /// Values to suggest, unless the handler completes the argument. Other values are accepted too.
    pub values: Vec<String>,
}

/// The builder methods that tools and prompts share.
macro_rules! named_setters {
    () => {
        /// Sets the label for people. Default: none.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.title = Some(title.into());
            self
        }

        /// Sets the description. Default: none.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.description = Some(description.into());
            self
        }

        /// Adds an icon. Default: none.
        pub fn icon(mut self, icon: Icon) -> Self {
            self.icons.push(icon);
            self
        }

        /// Sets members of `_meta`, as the text of a JSON object. Default: none.
        pub fn meta(mut self, object: impl Into<String>) -> Self {
            self.meta = Some(object.into());
            self
        }

        /// Sets the scopes that a token must have, all of them. Default: none.
        pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.scopes = scopes.into_iter().map(Into::into).collect();
            self
        }
    };
}

impl Tool {
    /// The JSON schema that accepts any arguments.
    pub const ANY_INPUT: &str = r#"{"type":"object"}"#;

    /// The tool with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: Self::ANY_INPUT.to_owned(),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            icons: Vec::new(),
            meta: None,
            scopes: Vec::new(),
            ui: None,
            ui_visibility: Vec::new(),
        }
    }

    /// Sets the JSON schema of its arguments. Default: any object.
    pub fn input_schema(mut self, schema: impl Into<String>) -> Self {
        self.input_schema = schema.into();
        self
    }

    /// Sets the JSON schema of its structured result. Default: none.
    pub fn output_schema(mut self, schema: impl Into<String>) -> Self {
        self.output_schema = Some(schema.into());
        self
    }

    /// Names the page that shows its results, by the URI of a [`UiPage`](super::UiPage). Default: none.
    pub fn ui(mut self, uri: impl Into<String>) -> Self {
        self.ui = Some(uri.into());
        self
    }

    /// Sets the callers of a tool with a page. Default: the model and the page.
    pub fn ui_visibility(mut self, callers: impl IntoIterator<Item = ToolVisibility>) -> Self {
        self.ui_visibility = callers.into_iter().collect();
        self
    }

    /// Sets the hints for clients. Default: none.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = annotations;
        self
    }

    named_setters!();
}

impl ReadTool {
    /// Most values of a variable that the input schema names.
    pub const MOST_VALUES: usize = 100;

    /// The tool `name`, which reads the resources of `target`.
    pub fn new(name: impl Into<String>, target: impl Into<String>) -> Self {
        let annotations =
            ToolAnnotations { read_only: Some(true), open_world: Some(false), ..ToolAnnotations::default() };
        Self { tool: Tool::new(name).annotations(annotations), target: target.into(), parameters: Vec::new() }
    }

    /// Sets the label for people. Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// Sets the description for the model. Default: none.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.tool.description = Some(description.into());
        self
    }

    /// Describes one variable. Default: any text.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }
}

impl Prompt {
    /// The prompt with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            completes: Vec::new(),
            icons: Vec::new(),
            meta: None,
            scopes: Vec::new(),
        }
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl Into<PromptArgument>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Declares that the handler completes an argument.
    pub fn completes(mut self, argument: impl Into<String>) -> Self {
        self.completes.push(argument.into());
        self
    }

    named_setters!();
}

impl PromptArgument {
    /// The argument with this name, which may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the label for people. Default: none.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description. Default: none.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether it must be given. Default `false`.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets values to suggest. Default: none.
    #[must_use]
    pub fn values(mut self, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.values = values.into_iter().map(Into::into).collect();
        self
    }
}

/// The argument with this name, which may be left out.
impl<T: Into<String>> From<T> for PromptArgument {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}

/// The tool with this name, with defaults for everything else.
impl<T: Into<String>> From<T> for Tool {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}

/// The prompt with this name, with defaults for everything else.
impl<T: Into<String>> From<T> for Prompt {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}

impl Default for Tool {
    fn default() -> Self {
        Self::new("")
    }
}

impl Default for Prompt {
    fn default() -> Self {
        Self::new("")
    }
}
