/** Answers calls of tools and requests for prompts with the results of their functions. */
import { answerCall, answerCompletion, ask, defined, entries, fail, json } from './answers.js';
import type { BlockFields, PromptMessageFields } from './binding.js';
import { type Block, Embedded, isBlock, KINDS, PromptResult, ResourceLink, Text, ToolResult } from './blocks.js';
import { bytesOf } from './bytes.js';
import { shown } from './check.js';
import type { Driver } from './driver.js';
import { ToolError } from './errors.js';
import { describe } from './option-fields.js';
import { Completion, Contents, InputRequired, MethodResult } from './results.js';
import { shapedTool } from './tool-shapes.js';

/** A result that an output schema has accepted: it is structured, also if it is a text. */
export class Structured {
  constructor(readonly value: unknown) {}
}

/** Answers a call of a tool. Returns a text that is the answer, or nothing. */
export function answerTool(driver: Driver, request: number, value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) driver.answers.tool(request, [], undefined, false);
  else if (value instanceof Structured) answerStructured(driver, request, value.value);
  else if (value instanceof InputRequired) ask(driver, request, value);
  else if (value instanceof MethodResult) answerCall(driver, request, value);
  else if (value instanceof Completion)
    answerCompletion(driver, request, value); // refused, and logged
  else if (value instanceof PromptResult)
    answerPrompt(driver, request, value); // likewise
  else answerValue(driver, request, value);
  return undefined;
}

function answerValue(driver: Driver, request: number, value: unknown): void {
  const result = value instanceof ToolResult ? value : hasBlocks(value) ? new ToolResult(value) : shapedTool(value);
  if (result !== undefined) {
    const { content, structured, isError, meta } = result;
    const text = structured === undefined ? undefined : json(driver, structured);
    const fields = content.map((block) => blockFields(driver, block));
    driver.answers.tool(request, fields, text, isError, meta && json(driver, meta));
  } else if (value instanceof Contents || bytesOf(value) !== undefined) {
    throw new TypeError(`the tool returned ${shown(value)}; return one of ${KINDS}, made from it`);
  } else {
    driver.answers.toolValue(request, json(driver, value));
  }
}

function answerStructured(driver: Driver, request: number, value: unknown): void {
  const text = json(driver, value);
  if (typeof value !== 'string') driver.answers.toolValue(request, text);
  else driver.answers.tool(request, [blockFields(driver, value)], text, false);
}

/** Whether it is a block, or an array with blocks: then nothing but texts may stand beside them. */
function hasBlocks(value: unknown): value is Block | Block[] {
  return isBlock(value) || (Array.isArray(value) && value.some(isBlock));
}

/** Answers the request for a prompt. */
export function answerPrompt(driver: Driver, request: number, value: unknown): undefined {
  if (value instanceof InputRequired) ask(driver, request, value);
  else if (value instanceof MethodResult) answerCall(driver, request, value);
  else if (value instanceof Completion)
    answerCompletion(driver, request, value); // refused, and logged
  else if (value instanceof ToolResult)
    answerTool(driver, request, value); // likewise
  else {
    const { messages, description, meta } = value instanceof PromptResult ? value : new PromptResult(value as string);
    const fields = messages.map(
      ({ role, content }): PromptMessageFields => ({ role, content: blockFields(driver, content) }),
    );
    driver.answers.prompt(request, fields, description, meta && json(driver, meta));
  }
}

/** Answers a call of a tool with a thrown error. The model reads a `ToolError`; others are logged as for reads. */
export function failTool(driver: Driver, request: number, error: unknown, name: string): undefined {
  if (error instanceof ToolError) driver.answers.toolError(request, error.message);
  else fail(driver, request, error, name);
}

/** A block as the compiled part takes it. */
function blockFields(driver: Driver, block: Block | string): BlockFields {
  if (typeof block === 'string') return { kind: 'text', entry: { text: block } };
  if (block instanceof ResourceLink) return { link: describe(block.resource) };
  const { meta, ...hints } = block.options;
  const more = {
    ...(Object.keys(hints).length > 0 && { hints: describe(defined(hints)) }),
    ...(meta && { meta: json(driver, meta) }),
  };
  if (block instanceof Text) return { kind: 'text', entry: { text: block.text }, ...more };
  if (block instanceof Embedded) {
    const [entry] = entries(driver, [block.contents], { name: 'Embedded', json: 'application/json' });
    return { kind: 'resource', ...(entry && { entry }), ...more };
  }
  const { kind, bytes, mimeType } = block;
  return { kind, entry: { bytes: bytesOf(bytes) ?? new Uint8Array(), mimeType }, ...more };
}
