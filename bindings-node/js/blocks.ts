/** The results of tools and prompts besides texts and JSON values: blocks of content, and messages. */
import { bytesOf } from './bytes.js';
import { isObject, shown, unexpected } from './check.js';
import { checkItem } from './option-checks.js';
import type { Details, Resource } from './options.js';
import { Contents, type JsonObject } from './results.js';

/** Hints about a block of content, for clients. */
export interface BlockOptions {
  /** Who the block is meant for: `user`, `assistant` or both. Default: not stated. */
  readonly audience?: readonly ('user' | 'assistant')[] | undefined;
  /** The importance, from 0 (optional) to 1 (required). Default: not stated. */
  readonly priority?: number | undefined;
  /** The time of the last change: a `Date`, or ISO 8601 text with a time zone. Default: not stated. */
  readonly lastModified?: Date | string | undefined;
  /** Members of `_meta`. Default: none. */
  readonly meta?: JsonObject | undefined;
}

/** The details of a link: those of a resource, except what only its server needs. */
export type LinkOptions = Omit<Details, 'ttlMs' | 'cacheScope' | 'scopes' | 'children'> & { readonly size?: number };

/** A text with hints. A text without hints is a string. */
export class Text {
  readonly options: BlockOptions;

  /**
   * @param text - the text.
   * @param options - hints for clients.
   * @throws {TypeError} an argument has the wrong type.
   */
  constructor(
    readonly text: string,
    options: BlockOptions = {},
  ) {
    if (typeof text !== 'string') throw new TypeError(`a Text is made with ${shown(text)}, expected a string`);
    this.options = checked('Text', options);
  }
}

/** An image. */
export class Image {
  /** The kind of block. */
  readonly kind = 'image';
  readonly options: BlockOptions;

  /**
   * @param bytes - a buffer or view.
   * @param mimeType - the media type. Default `image/png`.
   * @param options - hints for clients.
   * @throws {TypeError} an argument has the wrong type.
   */
  constructor(
    readonly bytes: ArrayBufferView | ArrayBufferLike,
    readonly mimeType: string = 'image/png',
    options: BlockOptions = {},
  ) {
    checkBytes('an Image', bytes, mimeType, 'image/png');
    this.options = checked('Image', options);
  }
}

/** A sound. Clients before 2025-03-26 get a text that says so instead. */
export class Audio {
  /** The kind of block. */
  readonly kind = 'audio';
  readonly options: BlockOptions;

  /**
   * @param bytes - a buffer or view.
   * @param mimeType - the media type. Default `audio/wav`.
   * @param options - hints for clients.
   * @throws {TypeError} an argument has the wrong type.
   */
  constructor(
    readonly bytes: ArrayBufferView | ArrayBufferLike,
    readonly mimeType: string = 'audio/wav',
    options: BlockOptions = {},
  ) {
    checkBytes('an Audio', bytes, mimeType, 'audio/wav');
    this.options = checked('Audio', options);
  }
}

/** A link to a resource that the client may read. Clients before 2025-06-18 get its URI as a text. */
export class ResourceLink {
  /** The resource, with its details. */
  readonly resource: Resource;

  /**
   * @param uri - the URI of the resource. `ResourceHandler.link` makes a link from the values of a template.
   * @param details - its name, title, description, media type and so on.
   * @throws {TypeError} a detail does not exist, or has the wrong type.
   */
  constructor(
    readonly uri: string,
    details: LinkOptions = {},
  ) {
    this.resource = { ...details, uri };
    checkItem(this.resource);
  }
}

/** The contents of a resource, as part of the result. */
export class Embedded {
  readonly options: BlockOptions;

  /**
   * @param contents - the contents, with their `uri`.
   * @param options - hints for clients.
   * @throws {TypeError} the contents have no URI, or an argument has the wrong type.
   */
  constructor(
    readonly contents: Contents,
    options: BlockOptions = {},
  ) {
    if (!(contents instanceof Contents) || typeof contents.uri !== 'string') {
      const given = contents instanceof Contents ? 'Contents without a uri' : shown(contents);
      throw new TypeError(`an Embedded is made with ${given}: new Embedded(new Contents(body, { uri: "note://1" }))`);
    }
    this.options = checked('Embedded', options);
  }
}

/** A block of content. */
export type Block = Text | Image | Audio | ResourceLink | Embedded;

/** A result of a tool with a choice of content, a structured result, or `_meta`. */
export class ToolResult {
  readonly content: readonly (Block | string)[];
  /** The structured result; `undefined` for none. */
  readonly structured: unknown;
  readonly isError: boolean;
  readonly meta: JsonObject | undefined;

  /**
   * @param content - a text, a block, or several of both.
   * @param options - `structured`: a JSON value for programs, by default none; `isError`: whether the tool failed, in a
   * way that the model can read and mend, by default `false`; `meta`: members of `_meta`, by default none.
   * @throws {TypeError} the content is something else.
   */
  constructor(
    content: Block | string | Iterable<Block | string> = [],
    options: {
      readonly structured?: unknown;
      readonly isError?: boolean | undefined;
      readonly meta?: JsonObject | undefined;
    } = {},
  ) {
    for (const name in options) if (!RESULT.includes(name)) throw unexpected('option', name, RESULT);
    this.content = blocks('a ToolResult', content);
    this.structured = options.structured;
    this.isError = options.isError ?? false;
    this.meta = options.meta;
  }
}

/** One message of a prompt. */
export class PromptMessage {
  /**
   * @param content - a text or a block.
   * @param role - the speaker: `user` or `assistant`. Default `user`.
   * @throws {TypeError} an argument has the wrong type.
   */
  constructor(
    readonly content: Block | string,
    readonly role: 'user' | 'assistant' = 'user',
  ) {
    if (role !== 'user' && role !== 'assistant') {
      throw new TypeError(`role is ${shown(role)}, expected "user" or "assistant"`);
    }
    if (!isPart(content)) {
      throw new TypeError(`a PromptMessage has ${shown(content)}, expected a string or one of ${KINDS}`);
    }
  }
}

/** A message, or a text or block that the user says. */
export type Said = PromptMessage | Block | string;

/** A result of a prompt with a description, or with `_meta`. */
export class PromptResult {
  readonly messages: readonly PromptMessage[];
  readonly description: string | undefined;
  readonly meta: JsonObject | undefined;

  /**
   * @param messages - one message or several, in order. A text or block is a message of the user.
   * @param options - `description`: a description for people, by default none; `meta`: members of `_meta`, by default
   * none.
   * @throws {TypeError} the messages are something else.
   */
  constructor(
    messages: Said | Iterable<Said>,
    options: { readonly description?: string | undefined; readonly meta?: JsonObject | undefined } = {},
  ) {
    for (const name in options) if (!PROMPT.includes(name)) throw unexpected('option', name, PROMPT);
    this.messages = listOf(messages).map(messageOf);
    this.description = options.description;
    this.meta = options.meta;
  }
}

function listOf(given: unknown): unknown[] {
  const isList =
    typeof given === 'object' && given !== null && Symbol.iterator in given && bytesOf(given) === undefined;
  return isList ? [...(given as Iterable<unknown>)] : [given];
}

function messageOf(given: unknown): PromptMessage {
  if (given instanceof PromptMessage) return given;
  if (isPart(given)) return new PromptMessage(given);
  throw new TypeError(`the prompt has ${shown(given)}, expected strings, PromptMessage and ${KINDS}`);
}

const HINTS = ['audience', 'priority', 'lastModified', 'meta'];
const RESULT = ['structured', 'isError', 'meta'];
const PROMPT = ['description', 'meta'];
const CLASSES = [Text, Image, Audio, ResourceLink, Embedded];
/** The classes of blocks, for messages. */
export const KINDS = 'Image, Audio, ResourceLink, Embedded and Text';

/** Whether it is a block. */
export function isBlock(value: unknown): value is Block {
  return CLASSES.some((kind) => value instanceof kind);
}

/**
 * The blocks and texts of an iterable; `what` names it in errors.
 *
 * @throws {TypeError} it has something else.
 */
export function blocks(what: string, given: unknown): (Block | string)[] {
  if (isPart(given)) return [given];
  if (typeof given !== 'object' || given === null || !(Symbol.iterator in given) || bytesOf(given) !== undefined) {
    throw new TypeError(`${what} has ${shown(given)}, expected strings and ${KINDS}`);
  }
  const items = [...(given as Iterable<unknown>)];
  const wrong = items.findIndex((item) => !isPart(item));
  if (wrong < 0) return items as (Block | string)[];
  throw new TypeError(`item ${wrong} of ${what} is ${shown(items[wrong])}, expected a string or one of ${KINDS}`);
}

function isPart(value: unknown): value is Block | string {
  return typeof value === 'string' || isBlock(value);
}

function checked(what: string, options: BlockOptions): BlockOptions {
  if (!isObject(options as unknown)) {
    throw new TypeError(`${what} takes an object of options, not ${shown(options)}`);
  }
  for (const name in options) if (!HINTS.includes(name)) throw unexpected('option', name, HINTS);
  return options;
}

function checkBytes(what: string, bytes: unknown, mimeType: unknown, example: string): void {
  if (bytesOf(bytes) === undefined) {
    const fix = typeof bytes === 'string' ? '; decode it, such as Buffer.from(text, "base64")' : '';
    throw new TypeError(`${what} is made with ${shown(bytes)}, expected a buffer or view${fix}`);
  }
  if (typeof mimeType !== 'string') {
    throw new TypeError(`the media type of ${what} is ${shown(mimeType)}, expected a string such as "${example}"`);
  }
}
