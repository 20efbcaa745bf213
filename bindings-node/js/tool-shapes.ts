/** Results of tools in the shape of the official SDK: `{ content: [{ type: 'text', text }] }`. */
import { Audio, type Block, type BlockOptions, Embedded, Image, ResourceLink, Text, ToolResult } from './blocks.js';
import { isObject, shown } from './check.js';
import type { JsonObject } from './results.js';
import { BASE64, contentsOf, isPlain, type WireContents } from './shapes.js';

/** A result of a tool in the protocol's own shape. */
export interface WireToolResult {
  readonly content: readonly WireBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: JsonObject | undefined;
}

/** A block in the protocol's own shape. */
export interface WireBlock {
  readonly type: 'text' | 'image' | 'audio' | 'resource_link' | 'resource';
  readonly annotations?: Omit<BlockOptions, 'meta'> | undefined;
  readonly _meta?: JsonObject | undefined;
  readonly [member: string]: unknown;
}

/**
 * The result of a tool with that shape; `undefined` for any other object.
 *
 * @throws {TypeError} it has the shape, and a member with a value that cannot be sent.
 */
export function shapedTool(value: unknown): ToolResult | undefined {
  if (!isPlain(value) || !Array.isArray(value.content) || !value.content.every(isWireBlock)) return undefined;
  const { content, structuredContent: structured, isError, _meta, resultType, ...rest } = value;
  const isData = value.content.length === 0 && structured === undefined;
  if (isData || Object.keys(rest).length > 0) return undefined;
  const made = value.content.map(blockOf);
  return new ToolResult(made, { structured, isError: isError === true, meta: isObject(_meta) ? _meta : undefined });
}

function isWireBlock(value: unknown): value is WireBlock {
  return isPlain(value) && typeof value.type === 'string' && Object.hasOwn(BLOCKS, value.type);
}

function blockOf({ type, annotations, _meta, ...members }: WireBlock): Block {
  return BLOCKS[type](members, { ...annotations, ...(_meta && { meta: _meta }) });
}

/** A block of each type. The constructors check the members. */
const BLOCKS: Readonly<Record<WireBlock['type'], (members: JsonObject, hints: BlockOptions) => Block>> = {
  text: ({ text }, hints) => new Text(text as string, hints),
  image: ({ data, mimeType }, hints) => new Image(bytesIn(data), mimeType as string, hints),
  audio: ({ data, mimeType }, hints) => new Audio(bytesIn(data), mimeType as string, hints),
  resource_link: ({ uri, ...details }, hints) => new ResourceLink(uri as string, { ...details, ...hints } as object),
  resource: ({ resource }, hints) => new Embedded(contentsOf(resource as WireContents, 0), hints),
};

function bytesIn(data: unknown): Uint8Array {
  if (typeof data === 'string' && BASE64.test(data)) return Buffer.from(data, 'base64');
  throw new TypeError(`data is ${shown(data)}, expected bytes in base64`);
}
