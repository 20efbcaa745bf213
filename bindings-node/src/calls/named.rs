//! The answers of tools and prompts.

use crate::calls::answers::Answers;
use crate::values::blocks::{BlockFields, PromptMessageFields};
use mcp_resources_engine::connection::{Answer, PromptResult, ToolResult};
use napi::bindgen_prelude::*;
use napi_derive::napi;

#[napi]
impl Answers {
    /// Answers a call of a tool with blocks. `structured` and `meta` are JSON text.
    #[napi(catch_unwind)]
    pub fn tool(
        &self,
        request: f64,
        blocks: Vec<BlockFields>,
        structured: Option<String>,
        is_error: bool,
        meta: Option<String>,
    ) -> Result<()> {
        let content = blocks.into_iter().map(BlockFields::into_block).collect::<Result<_>>()?;
        let structured = structured.map(Into::into);
        let result = ToolResult { content, structured, is_error, meta: meta.map(Into::into) };
        self.answer(request, Answer::Tool(result))
    }

    /// Answers a call of a tool with a value, as JSON text.
    #[napi(catch_unwind)]
    pub fn tool_value(&self, request: f64, json: String) -> Result<()> {
        self.answer(request, Answer::Tool(ToolResult::json(json)))
    }

    /// Answers a call of a tool with a failure that the model can read.
    #[napi(catch_unwind)]
    pub fn tool_error(&self, request: f64, sentence: String) -> Result<()> {
        self.answer(request, Answer::Tool(ToolResult::error(sentence)))
    }

    /// Answers the request for a prompt. `meta` is JSON text.
    #[napi(catch_unwind)]
    pub fn prompt(
        &self,
        request: f64,
        messages: Vec<PromptMessageFields>,
        description: Option<String>,
        meta: Option<String>,
    ) -> Result<()> {
        let messages = messages.into_iter().map(PromptMessageFields::into_message).collect::<Result<_>>()?;
        let description = description.map(Into::into);
        self.answer(
            request,
            Answer::Prompt(PromptResult { description, messages, meta: meta.map(Into::into) }),
        )
    }
}
