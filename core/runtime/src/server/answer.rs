//! The results and errors of handlers.

use mcp_resources_engine::connection::{
    Answer, Completion, ContentBlock, Contents, InputRequired, ListPage, PromptMessage, PromptResult,
    RawResult, ReadResult, ToolResult,
};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::Resource;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The result of a request: the answer, or the reason for which there is none.
pub type Handled = Result<Answer<'static>, HandlerError>;

/// A value that handlers of one kind may return: [`Read`], [`Complete`], [`List`], [`AccessDecision`],
/// [`ToolOutput`], [`PromptOutput`] or
/// [`Call`].
///
/// `Result<T, E>` may be returned wherever `T` may, if `E` is a [`ReadError`], a [`HandlerError`] or any other error.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be returned by a handler of this kind")]
pub trait IntoAnswer<Kind> {
    /// Converts the value to an answer.
    ///
    /// # Errors
    /// [`HandlerError`] if the handler failed.
    fn into_answer(self) -> Handled;
}

/// The kind of handlers that read a resource. They return text (`String`, `&'static str`), bytes (`Vec<u8>`,
/// `&'static [u8]`), [`Contents`] or several of them, a [`ReadResult`], or [`InputRequired`].
#[derive(Clone, Copy, Debug)]
pub struct Read;

/// The kind of handlers that complete a variable. They return a vector of texts, or a [`Completion`].
#[derive(Clone, Copy, Debug)]
pub struct Complete;

/// The kind of handlers that list the resources of a template. They return `Vec<Resource>`, or a [`ListPage`].
#[derive(Clone, Copy, Debug)]
pub struct List;

/// The kind of handlers that decide who may use a resource. They return a `bool`, or one for each question.
#[derive(Clone, Copy, Debug)]
pub struct AccessDecision;

/// The kind of handlers for custom methods. They return a [`RawResult`], a JSON object, or [`InputRequired`].
#[derive(Clone, Copy, Debug)]
pub struct Call;

/// The kind of handlers of tools. They return text (`String`, `&'static str`), a [`ContentBlock`] or several of them, a
/// JSON value, which is also the structured result, a [`ToolResult`], [`InputRequired`], or nothing (`()`).
#[derive(Clone, Copy, Debug)]
pub struct ToolOutput;

/// The kind of handlers of prompts. They return text (`String`, `&'static str`), which the user says, messages, a
/// [`PromptResult`], or [`InputRequired`].
#[derive(Clone, Copy, Debug)]
pub struct PromptOutput;

/// A failure of a tool that the model can read and mend: one sentence. Handlers of tools may return it as an error.
///
/// ```
/// use mcp_resources::{HandlerError, ToolError};
///
/// fn divide(a: f64, b: f64) -> Result<f64, HandlerError> {
///     if b == 0.0 {
///         return Err(ToolError::new("b must not be 0").into());
///     }
///     Ok(a / b)
/// }
/// # assert!(divide(1.0, 0.0).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// The failure with this sentence for the model.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ToolError {}

/// An error of a handler: a [`ReadError`], which is sent to the client, or any other error, which is only logged, while
/// the client gets a general error.
///
/// `?` converts any error:
///
/// ```
/// use mcp_resources::{HandlerError, ReadRequest};
///
/// async fn motto(_: ReadRequest) -> Result<String, HandlerError> {
///     Ok(std::fs::read_to_string("motto.txt")?)
/// }
/// ```
pub struct HandlerError {
    error: ReadError,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl HandlerError {
    /// An error with a message for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self { error: ReadError::Failed, cause: Some(message.into().into()) }
    }

    /// The error that is sent to the client.
    pub fn client_error(&self) -> &ReadError {
        &self.error
    }

    /// The cause to log; `None` if the client gets the whole error.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref().filter(|cause| !cause.is::<ToolError>())
    }

    /// The answer that is sent to the client.
    pub(super) fn into_answer(self) -> Answer<'static> {
        match self.cause.map(|cause| cause.downcast::<ToolError>()) {
            Some(Ok(error)) => Answer::Tool(ToolResult::error(error.0)),
            _ => Answer::Failed(self.error),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        match error.downcast::<ReadError>() {
            Ok(error) => Self { error: *error, cause: None },
            Err(cause) => Self { error: ReadError::Failed, cause: Some(cause) },
        }
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => fmt::Debug::fmt(cause, f),
            None => fmt::Debug::fmt(&self.error, f),
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => fmt::Display::fmt(cause, f),
            None => fmt::Display::fmt(&self.error, f),
        }
    }
}

impl<Kind, T: IntoAnswer<Kind>, E: Into<HandlerError>> IntoAnswer<Kind> for Result<T, E> {
    fn into_answer(self) -> Handled {
        self.map_err(Into::into)?.into_answer()
    }
}

/// Implements [`IntoAnswer`] of one kind for values: `type => conversion`.
macro_rules! answers {
    ($kind:ident: $($(#[$meta:meta])* $type:ty => |$value:ident| $answer:expr;)+) => {
        $(impl IntoAnswer<$kind> for $type {
            fn into_answer(self) -> Handled {
                let $value = self;
                Ok($answer)
            }
        })+
    };
}

answers! { Read:
    String => |text| one(Contents::text(text));
    &'static str => |text| one(Contents::text(text));
    Cow<'static, str> => |text| one(Contents::text(text));
    Vec<u8> => |bytes| one(Contents::blob(bytes));
    &'static [u8] => |bytes| one(Contents::blob(bytes));
    Arc<str> => |text| one(Contents::shared_text(text));
    Arc<[u8]> => |bytes| one(Contents::shared_blob(bytes));
    Contents<'static> => |contents| one(contents);
    Vec<Contents<'static>> => |contents| Answer::Contents(ReadResult { contents, cache: None });
    ReadResult<'static> => |result| Answer::Contents(result);
    InputRequired<'static> => |input| Answer::InputRequired(input);
}

answers! { Complete:
    Vec<String> => |values| completion(values.into_iter().map(Cow::Owned));
    Vec<&'static str> => |values| completion(values.into_iter().map(Cow::Borrowed));
    Completion<'static> => |completion| Answer::Completion(completion);
}

answers! { List:
    Vec<Resource> => |items| Answer::Listed(ListPage::new(items));
    ListPage => |page| Answer::Listed(page);
}

answers! { AccessDecision:
    bool => |allowed| Answer::Access(vec![Some(allowed)]);
    Vec<bool> => |allowed| Answer::Access(allowed.into_iter().map(Some).collect());
}

answers! { Call:
    RawResult<'static> => |result| Answer::Raw(result);
    InputRequired<'static> => |input| Answer::InputRequired(input);
    serde_json::Map<String, serde_json::Value> => |members| raw(serde_json::Value::Object(members));
}

answers! { ToolOutput:
    () => |_nothing| Answer::Tool(ToolResult::default());
    String => |text| Answer::Tool(ToolResult::text(text));
    &'static str => |text| Answer::Tool(ToolResult::text(text));
    Cow<'static, str> => |text| Answer::Tool(ToolResult::text(text));
    ContentBlock<'static> => |block| Answer::Tool(ToolResult::new([block]));
    Vec<ContentBlock<'static>> => |blocks| Answer::Tool(ToolResult::new(blocks));
    serde_json::Value => |value| Answer::Tool(ToolResult::json(value.to_string()));
    ToolResult<'static> => |result| Answer::Tool(result);
    Contents<'static> => |contents| one(contents);
    InputRequired<'static> => |input| Answer::InputRequired(input);
}

answers! { PromptOutput:
    String => |text| Answer::Prompt(PromptResult::text(text));
    &'static str => |text| Answer::Prompt(PromptResult::text(text));
    Vec<PromptMessage<'static>> => |messages| Answer::Prompt(PromptResult::new(messages));
    PromptResult<'static> => |result| Answer::Prompt(result);
    InputRequired<'static> => |input| Answer::InputRequired(input);
}

/// For handlers with answers of several kinds.
impl<Kind> IntoAnswer<Kind> for Answer<'static> {
    fn into_answer(self) -> Handled {
        Ok(self)
    }
}

impl IntoAnswer<Call> for serde_json::Value {
    fn into_answer(self) -> Handled {
        if self.is_object() {
            Ok(raw(self))
        } else {
            Err(HandlerError::new("a result must be a JSON object"))
        }
    }
}

fn one(contents: Contents<'static>) -> Answer<'static> {
    Answer::Contents(ReadResult { contents: vec![contents], cache: None })
}

fn completion(values: impl Iterator<Item = Cow<'static, str>>) -> Answer<'static> {
    Answer::Completion(Completion { values: values.collect(), total: None, has_more: None })
}

fn raw(object: serde_json::Value) -> Answer<'static> {
    Answer::Raw(RawResult { members: object.to_string().into(), result_type: None, meta: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(handled: Handled) -> &'static str {
        match handled {
            Ok(Answer::Contents(_)) => "contents",
            Ok(Answer::Completion(_)) => "completion",
            Ok(Answer::Raw(_)) => "raw",
            Ok(_) => "other",
            Err(error) if error.cause().is_some() => "logged",
            Err(_) => "sent",
        }
    }

    #[test]
    fn values_become_answers_of_their_kind() {
        assert_eq!(kind_of(IntoAnswer::<Read>::into_answer("text")), "contents");
        assert_eq!(kind_of(IntoAnswer::<Complete>::into_answer(vec!["a"])), "completion");
        assert_eq!(kind_of(IntoAnswer::<Call>::into_answer(serde_json::json!({"a": 1}))), "raw");
        assert_eq!(kind_of(IntoAnswer::<Call>::into_answer(serde_json::json!([1]))), "logged");
    }

    // R-014, R-068: any error except a `ReadError` is sent as a failed read, and its text is only logged.
    #[test]
    fn only_read_errors_are_sent() {
        let hidden: Result<String, _> = Err(std::io::Error::other("secret"));
        let handled = IntoAnswer::<Read>::into_answer(hidden);
        assert_eq!(handled.as_ref().unwrap_err().client_error(), &ReadError::Failed);
        assert_eq!(kind_of(handled), "logged");
        let told: Result<String, _> = Err(ReadError::NotFound);
        let handled = IntoAnswer::<Read>::into_answer(told);
        assert_eq!(handled.as_ref().unwrap_err().client_error(), &ReadError::NotFound);
        assert_eq!(kind_of(handled), "sent");
    }
}
