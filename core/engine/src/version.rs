//! Every difference between the protocol's revisions: their features, and the code of each error.
//!
//! Law: no other module compares revisions or contains a code number.

use crate::error::ReadError;
use crate::option::{FromOption, OptionError, OptionValue};
use std::fmt;
use std::ops::BitOr;

/// A dated revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28: stateless, without a handshake.
    V2026_07_28,
}

/// The sets of fields that revisions share in list items: items are encoded once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSet {
    /// 2024-11-05 and 2025-03-26: no `title`, `_meta`, `icons` or `lastModified`.
    Basic,
    /// 2025-06-18: no `icons`.
    Titled,
    /// 2025-11-25 and 2026-07-28.
    Full,
}

impl FieldSet {
    /// The number of field sets: the size of a table indexed by [`FieldSet::index`].
    pub const COUNT: usize = 3;

    /// Its index in tables.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// The sets of fields that revisions share in descriptions of tools: items are encoded once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolFields {
    /// 2024-11-05: name, description and input schema.
    Basic,
    /// 2025-03-26: with annotations.
    Annotated,
    /// 2025-06-18: with `title`, `_meta` and an output schema, which describes an object.
    Titled,
    /// 2025-11-25: with `icons`.
    Iconic,
    /// 2026-07-28: with an output schema of any type.
    AnyOutput,
}

impl ToolFields {
    /// The number of sets: the size of a table indexed by [`ToolFields::index`].
    pub const COUNT: usize = 5;

    /// Its index in tables.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether tools have hints for clients.
    pub fn has_annotations(self) -> bool {
        self >= Self::Annotated
    }

    /// Whether tools have a title, `_meta` and an output schema.
    pub fn has_output(self) -> bool {
        self >= Self::Titled
    }

    /// Whether tools have icons.
    pub fn has_icons(self) -> bool {
        self >= Self::Iconic
    }

    /// Whether an output schema, and the structured result, must be an object.
    pub fn has_object_output(self) -> bool {
        self < Self::AnyOutput
    }
}

impl Revision {
    /// All revisions, newest first: the order of `supportedVersions`.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// The newest revision that has a handshake: the answer to an unknown one.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of a legacy HTTP request without a version header.
    pub const UNNAMED: Self = Self::V2025_03_26;

    /// Parses a date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// Its date, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether requests are self-contained, without a handshake.
    pub fn is_modern(self) -> bool {
        self == Self::V2026_07_28
    }

    /// The fields that list items and contents have.
    pub fn field_set(self) -> FieldSet {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 => FieldSet::Basic,
            Self::V2025_06_18 => FieldSet::Titled,
            Self::V2025_11_25 | Self::V2026_07_28 => FieldSet::Full,
        }
    }

    /// The fields that descriptions of tools have.
    pub fn tool_fields(self) -> ToolFields {
        match self {
            Self::V2024_11_05 => ToolFields::Basic,
            Self::V2025_03_26 => ToolFields::Annotated,
            Self::V2025_06_18 => ToolFields::Titled,
            Self::V2025_11_25 => ToolFields::Iconic,
            Self::V2026_07_28 => ToolFields::AnyOutput,
        }
    }

    /// Whether results of tools and prompts may have audio.
    pub fn has_audio(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether results of tools and prompts may link to resources.
    pub fn has_resource_links(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether arrays of messages are accepted.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether an error without a readable id has the member `"id":null` rather than no member.
    pub fn has_null_id(self) -> bool {
        self <= Self::V2025_06_18
    }

    /// Whether the capability `completions` exists.
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether `completion/complete` has a `context`.
    pub fn has_completion_context(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether a progress notification has a `message`.
    pub fn has_progress_message(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether an event stream begins with an event that has an id and no data, from which it can be resumed.
    pub fn has_priming_event(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether contents may carry `_meta`.
    pub fn has_contents_meta(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether `serverInfo` has a `title`.
    pub fn has_server_title(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether `serverInfo` has `description`, `websiteUrl` and `icons`.
    pub fn has_server_description(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// The error code of a [`ReadError`].
    pub fn code(self, error: &ReadError) -> i32 {
        let modern = self.is_modern();
        match error {
            ReadError::Custom { code, .. } | ReadError::Foreign { code, .. } => *code,
            ReadError::InvalidParameter { .. }
            | ReadError::RefusedParameter { .. }
            | ReadError::InvalidUri => INVALID_PARAMS,
            ReadError::NotFound | ReadError::InputDeclined if modern => INVALID_PARAMS,
            ReadError::NotFound => -32002,
            ReadError::AccessDenied if modern => -31003,
            ReadError::AccessDenied => -32003,
            ReadError::SizeExceeded { .. } if modern => -31013,
            ReadError::Timeout { .. } if modern => -31008,
            ReadError::RateLimited { .. } if modern => -31029,
            _ => INTERNAL_ERROR,
        }
    }
}

/// The meaning of a server's error for the requested resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The resource does not exist.
    NotFound,
    /// The client may not see it.
    AccessDenied,
    /// The server rejects the URI as invalid.
    InvalidUri,
    /// Any other failure.
    Other,
}

/// A server's error response to a read.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: &'a str,
    /// The member `kind` of its data, which servers of this library send.
    pub kind: Option<&'a str>,
    /// Whether its data names a URI.
    pub names_uri: bool,
}

impl Answered<'_> {
    /// Classifies the error. Several libraries answer an unknown URI with a general code, such as that for invalid params, so
    /// the message is examined too.
    pub fn meaning(&self) -> Meaning {
        match self.kind {
            Some("not_found") => return Meaning::NotFound,
            Some("access_denied") => return Meaning::AccessDenied,
            Some("invalid_uri") => return Meaning::InvalidUri,
            Some(_) => return Meaning::Other,
            None => {}
        }
        match i32::try_from(self.code) {
            Ok(-32002) => Meaning::NotFound,
            Ok(-32003 | -31003) => Meaning::AccessDenied,
            Ok(INVALID_PARAMS) if self.names_uri => Meaning::NotFound,
            Ok(0 | INVALID_PARAMS | INTERNAL_ERROR) if says_not_found(self.message) => Meaning::NotFound,
            _ => Meaning::Other,
        }
    }
}

fn says_not_found(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["not found", "unknown resource", "no such resource"].iter().any(|phrase| message.contains(phrase))
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The methods that the library serves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolMethod {
    /// `initialize`.
    Initialize,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `resources/list`.
    List,
    /// `resources/templates/list`.
    ListTemplates,
    /// `resources/read`.
    Read,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`.
    Unsubscribe,
    /// `completion/complete`.
    Complete,
    /// `subscriptions/listen`.
    Listen,
    /// `logging/setLevel`.
    SetLevel,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
    /// `prompts/list`.
    ListPrompts,
    /// `prompts/get`.
    GetPrompt,
}

/// A method that may return `input_required`, like [`CALL_TOOL`] and [`GET_PROMPT`].
pub const READ: &str = "resources/read";
/// Calls a tool.
pub const CALL_TOOL: &str = "tools/call";
/// Lists the children of a directory (SEP-2640).
pub const READ_DIRECTORY: &str = "resources/directory/read";
/// Gets a prompt.
pub const GET_PROMPT: &str = "prompts/get";
/// The method that is shared: custom handlers may get its references that do not name resources.
pub const COMPLETE: &str = "completion/complete";

/// Ends a legacy handshake.
pub const INITIALIZED: &str = "notifications/initialized";
/// Cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";

/// The requests that a server may send to a client, each with the client capability it requires.
pub const QUESTIONS: [(&str, &str); 3] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling"), ("roots/list", "roots")];

/// Whether a method is about resources, so that the allow-list of URIs applies to it.
pub fn is_about_resources(method: &str) -> bool {
    method.starts_with("resources/") || matches!(method, COMPLETE | "subscriptions/listen")
}

/// The server notifications that a client handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerNotification {
    /// A watched resource has changed.
    Updated,
    /// The list of resources has changed.
    ListChanged,
    /// A listen is open.
    Acknowledged,
    /// The server ended a listen.
    Cancelled,
    /// A request has made progress.
    Progress,
}

impl ServerNotification {
    /// Parses a method.
    pub fn parse(method: &str) -> Option<Self> {
        Some(match method {
            "notifications/resources/updated" => Self::Updated,
            "notifications/resources/list_changed" => Self::ListChanged,
            "notifications/subscriptions/acknowledged" => Self::Acknowledged,
            CANCELLED => Self::Cancelled,
            "notifications/progress" => Self::Progress,
            _ => return None,
        })
    }
}

/// Whether the results of a custom method may be cached like those of the protocol's own lists.
pub fn is_list(method: &str) -> bool {
    method.ends_with("/list")
}

impl ProtocolMethod {
    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            READ => Self::Read,
            "resources/list" => Self::List,
            "resources/templates/list" => Self::ListTemplates,
            COMPLETE => Self::Complete,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "subscriptions/listen" => Self::Listen,
            "server/discover" => Self::Discover,
            "logging/setLevel" => Self::SetLevel,
            "ping" => Self::Ping,
            "initialize" => Self::Initialize,
            "tools/list" => Self::ListTools,
            CALL_TOOL => Self::CallTool,
            "prompts/list" => Self::ListPrompts,
            GET_PROMPT => Self::GetPrompt,
            _ => return None,
        })
    }

    /// All methods, in the order of [`ProtocolMethod::index`].
    pub const ALL: [Self; 15] = [
        Self::Initialize,
        Self::Ping,
        Self::Discover,
        Self::List,
        Self::ListTemplates,
        Self::Read,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Complete,
        Self::Listen,
        Self::SetLevel,
        Self::ListTools,
        Self::CallTool,
        Self::ListPrompts,
        Self::GetPrompt,
    ];

    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::Discover => "server/discover",
            Self::List => "resources/list",
            Self::ListTemplates => "resources/templates/list",
            Self::Read => READ,
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::Complete => COMPLETE,
            Self::Listen => "subscriptions/listen",
            Self::SetLevel => "logging/setLevel",
            Self::ListTools => "tools/list",
            Self::CallTool => CALL_TOOL,
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => GET_PROMPT,
        }
    }

    /// Its index in tables.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The member of `params` that the header `Mcp-Name` repeats.
    pub fn name_param(self) -> Option<&'static str> {
        match self {
            Self::Read => Some("uri"),
            Self::CallTool | Self::GetPrompt => Some("name"),
            _ => None,
        }
    }

    /// The part of an author's interface that answers it, for errors about registering it as a custom method.
    pub fn registered_with(self) -> Option<&'static str> {
        match self {
            Self::ListTools | Self::CallTool => Some("tool"),
            Self::ListPrompts | Self::GetPrompt => Some("prompt"),
            _ => None,
        }
    }

    /// Whether the revision defines it.
    pub fn exists_in(self, revision: Revision) -> bool {
        match self {
            Self::List | Self::ListTemplates | Self::Read | Self::Complete => true,
            Self::ListTools | Self::CallTool | Self::ListPrompts | Self::GetPrompt => true,
            Self::Discover | Self::Listen => revision.is_modern(),
            Self::Initialize | Self::Ping | Self::Subscribe | Self::Unsubscribe | Self::SetLevel => {
                !revision.is_modern()
            }
        }
    }
}

/// A set of lists with change notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListKinds(pub(crate) u8);

impl ListKinds {
    /// No list.
    pub const NONE: Self = Self(0);
    /// Resources and templates: `notifications/resources/list_changed`.
    pub const RESOURCES: Self = Self(1);
    /// Tools: `notifications/tools/list_changed`.
    pub const TOOLS: Self = Self(2);
    /// Prompts: `notifications/prompts/list_changed`.
    pub const PROMPTS: Self = Self(4);

    /// All lists of the protocol.
    pub(crate) const ALL: Self = Self(7);

    /// Each list as a set of its own.
    pub(crate) const EACH: [Self; 3] = [Self::RESOURCES, Self::TOOLS, Self::PROMPTS];

    /// Parses the name of a list: `resources`, `tools` or `prompts`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "resources" => Some(Self::RESOURCES),
            "tools" => Some(Self::TOOLS),
            "prompts" => Some(Self::PROMPTS),
            _ => None,
        }
    }

    /// The names of its lists, as [`ListKinds::parse`] takes them.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = [(Self::RESOURCES, "resources"), (Self::TOOLS, "tools"), (Self::PROMPTS, "prompts")];
        words.into_iter().filter(move |(kind, _)| self.contains(*kind)).map(|(_, word)| word)
    }

    /// The lists that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The list whose notification has this method.
    pub(crate) fn from_method(method: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|list| list.method() == method)
    }

    /// The method of the notification for a set of one list.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::RESOURCES => "notifications/resources/list_changed",
            Self::TOOLS => "notifications/tools/list_changed",
            _ => "notifications/prompts/list_changed",
        }
    }
}

impl BitOr for ListKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON, but not a valid message, or not one that is allowed here.
pub const INVALID_REQUEST: i32 = -32600;
/// Unknown method, or one whose capability was not advertised.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The params are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// A failure of the server.
pub const INTERNAL_ERROR: i32 = -32603;
/// A header differs from the part of the body that it repeats (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client did not declare a capability that the request requires (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// The revision named by the request is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// The client cancelled the request, and HTTP requires an answer (legacy).
pub const REQUEST_CANCELLED: i32 = -32800;

/// Whether [`ReadError::Custom`] may use `code`: one of the standard five, or one outside the range that JSON-RPC
/// reserves.
pub fn is_custom_code(code: i32) -> bool {
    matches!(code, PARSE_ERROR | INVALID_REQUEST | METHOD_NOT_FOUND | INVALID_PARAMS | INTERNAL_ERROR)
        || !(-32768..=-32000).contains(&code)
}

impl FromOption for Revision {
    const EXPECTED: &'static str = "a text";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let date = String::from_option(value)?;
        let refused = || {
            let known = Self::ALL.map(Self::as_str).join(", ");
            OptionError::sentence(format!("{date:?} is no revision of the protocol; expected one of {known}"))
        };
        Self::parse(&date).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_their_names() {
        for (index, method) in ProtocolMethod::ALL.into_iter().enumerate() {
            assert_eq!((ProtocolMethod::parse(method.as_str()), method.index()), (Some(method), index));
        }
    }
}
