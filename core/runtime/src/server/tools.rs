//! Tools and prompts whose arguments and results are types: their JSON schemas come from `schemars`.
//!
//! Law: a schema is made once, at registration. Arguments that do not fit their type are reported to the model, and the
//! handler is not called.

use super::answer::{Handled, HandlerError, IntoAnswer, PromptOutput, ToolOutput};
use super::builder::Builder;
use super::changes::ServerChanges;
use super::params;
use super::request::{Context, NamedCall};
use mcp_resources_engine::connection::{Answer, ContentBlock, Contents, InputRequired, ToolResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::{Prompt, PromptArgument, Tool};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A value as the structured result of a tool, and as text for clients that show texts. Its type is the output schema.
///
/// ```
/// use mcp_resources::{ResourceServer, Structured, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Pair {
///     a: f64,
///     b: f64,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ResourceServer::builder("math", "1.0.0")
///     .tool(Tool::new("add").description("Adds two numbers."), |pair: Pair, _| async move {
///         Structured(pair.a + pair.b)
///     })
///     .build()?;
/// # let _ = server;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

/// A value that the handler of a tool may return, with the schema of its structured result.
pub trait ToolReturn: IntoAnswer<ToolOutput> {
    /// The JSON schema of the structured result. Default: none.
    fn output_schema() -> Option<String> {
        None
    }
}

/// The values without a structured result of a known type.
macro_rules! plain {
    ($($type:ty),+ $(,)?) => { $(impl ToolReturn for $type {})+ };
}
plain!(
    (),
    String,
    &'static str,
    Cow<'static, str>,
    ContentBlock<'static>,
    Vec<ContentBlock<'static>>,
    Value,
    ToolResult<'static>,
    Contents<'static>,
    InputRequired<'static>,
);

impl<T: ToolReturn, E: Into<HandlerError>> ToolReturn for Result<T, E> {
    fn output_schema() -> Option<String> {
        T::output_schema()
    }
}

impl<T: Serialize + JsonSchema> ToolReturn for Structured<T> {
    fn output_schema() -> Option<String> {
        Some(schema::<T>(SchemaSettings::draft2020_12().for_serialize()).as_value().to_string())
    }
}

impl<T: Serialize> IntoAnswer<ToolOutput> for Structured<T> {
    fn into_answer(self) -> Handled {
        Ok(Answer::Tool(ToolResult::json(serde_json::to_string(&self.0)?)))
    }
}

impl Builder {
    /// Adds a tool: an async function from its arguments and the context to a value listed at [`ToolOutput`], or a
    /// [`Structured`] one. The input schema is that of the type of the arguments, unless the tool has one.
    ///
    /// ```
    /// use mcp_resources::testing::Client;
    /// use mcp_resources::{HandlerError, ResourceServer, Tool, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Fraction {
    ///     /// The dividend.
    ///     a: f64,
    ///     /// The divisor, not 0.
    ///     b: f64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("math", "1.0.0")
    ///     .tool(Tool::new("divide").title("Divide"), |fraction: Fraction, _| async move {
    ///         if fraction.b == 0.0 {
    ///             return Err(HandlerError::from(ToolError::new("b must not be 0")));
    ///         }
    ///         Ok(format!("{}", fraction.a / fraction.b))
    ///     })
    ///     .build()?;
    /// let mut client = Client::modern(&server)?;
    /// let params = serde_json::json!({"name": "divide", "arguments": {"a": 6, "b": 3}});
    /// assert_eq!(client.request("tools/call", params).await?["content"][0]["text"], "2");
    /// # Ok(()) }
    /// ```
    pub fn tool<Args, F, Fut>(self, tool: impl Into<Tool>, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: ToolReturn> + Send + 'static,
    {
        self.change(|changes| changes.tool(tool, handler))
    }

    /// Adds a prompt: an async function from its arguments and the context to a value listed at [`PromptOutput`]. The
    /// arguments are the fields of their type, unless the prompt names some.
    ///
    /// ```
    /// use mcp_resources::testing::Client;
    /// use mcp_resources::{Prompt, ResourceServer};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Person {
    ///     name: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("greetings", "1.0.0")
    ///     .prompt(Prompt::new("greet"), |person: Person, _| async move { format!("Greet {}.", person.name) })
    ///     .build()?;
    /// let mut client = Client::modern(&server)?;
    /// let params = serde_json::json!({"name": "greet", "arguments": {"name": "Ada"}});
    /// assert_eq!(client.request("prompts/get", params).await?["messages"][0]["content"]["text"], "Greet Ada.");
    /// # Ok(()) }
    /// ```
    pub fn prompt<Args, F, Fut>(self, prompt: impl Into<Prompt>, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<PromptOutput>> + Send + 'static,
    {
        self.change(|changes| changes.prompt(prompt, handler))
    }
}

impl ServerChanges {
    /// Adds a tool: see [`Builder::tool`].
    pub fn tool<Args, F, Fut>(self, tool: impl Into<Tool>, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: ToolReturn> + Send + 'static,
    {
        let mut tool = tool.into();
        if tool.input_schema == Tool::ANY_INPUT {
            tool.input_schema = schema::<Args>(SchemaSettings::draft2020_12()).as_value().to_string();
        }
        tool.output_schema = tool.output_schema.or_else(Fut::Output::output_schema);
        self.tool_with(tool, move |call: NamedCall| {
            let arguments = call.arguments();
            let started = arguments.map(|arguments| handler(arguments, call.context));
            async move { started?.await.into_answer() }
        })
    }

    /// Adds a prompt: see [`Builder::prompt`].
    pub fn prompt<Args, F, Fut>(self, prompt: impl Into<Prompt>, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<PromptOutput>> + Send + 'static,
    {
        let mut prompt = prompt.into();
        if prompt.arguments.is_empty() {
            prompt.arguments = arguments(&schema::<Args>(SchemaSettings::draft2020_12()));
        }
        self.prompt_with(prompt, move |call: NamedCall| {
            let started = texts(&call.arguments).map(|arguments| handler(arguments, call.context));
            async move { started?.await.into_answer() }
        })
    }
}

/// The schema of `T`.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a type says nothing to a model, and the dialect is the protocol's own.
    schema.remove("title");
    schema.remove("$schema");
    schema
}

/// The arguments of a prompt whose type has this schema.
fn arguments(schema: &Schema) -> Vec<PromptArgument> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|other| other == name));
    let argument = |(name, property): (&String, &Value)| {
        let mut argument = PromptArgument::new(name).required(is_required(name));
        argument.description = property.get("description").and_then(Value::as_str).map(str::to_owned);
        argument
    };
    properties.into_iter().flatten().map(argument).collect()
}

/// Deserializes the texts of a prompt's arguments.
fn texts<T: DeserializeOwned>(arguments: &str) -> Result<T, ReadError> {
    let texts: BTreeMap<String, String> = serde_json::from_str(arguments).map_err(|_| {
        ReadError::InvalidParameter { parameter: "arguments".into(), expected: "an object of texts".into() }
    })?;
    params::read_texts(texts.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
