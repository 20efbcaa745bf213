/**
 * The values that a client returns: entries of lists, changes, questions. A member that a server sends with a wrong type is
 * `undefined`.
 */
import type { Arrival } from './binding.js';
import { isObject } from './check.js';
import { Completion, Contents, type JsonObject } from './results.js';

type Entry = NonNullable<Arrival['entries']>[number];

/** The result of {@link Client.read}: one text as a string, one blob as bytes, anything else as an array of `Contents`. */
export type ReadValue = string | Buffer | Contents[];

/** The description of a resource or template in a list. */
abstract class ListedEntry {
  /** The name for programs. */
  readonly name: string;
  /** The name for people. */
  readonly title: string | undefined;
  /** The description. */
  readonly description: string | undefined;
  /** The media type. */
  readonly mimeType: string | undefined;
  /** The annotations: `audience`, `priority` and `lastModified`. */
  readonly annotations: JsonObject | undefined;
  /** Members of `_meta`. */
  readonly meta: JsonObject | undefined;

  constructor(
    /** The whole entry, as the server sent it. */
    readonly raw: JsonObject,
    /** The name of the server. */
    readonly server: string,
  ) {
    this.name = text(raw.name) ?? '';
    this.title = text(raw.title);
    this.description = text(raw.description);
    this.mimeType = text(raw.mimeType);
    this.annotations = object(raw.annotations);
    this.meta = object(raw._meta);
  }
}

/** A resource in a list. */
export class ListedResource extends ListedEntry {
  /** The URI. */
  readonly uri: string;
  /** The size in bytes, if the server states it. */
  readonly size: number | undefined;

  constructor(raw: JsonObject, server: string) {
    super(raw, server);
    this.uri = text(raw.uri) ?? '';
    this.size = typeof raw.size === 'number' ? raw.size : undefined;
  }
}

/** A template in a list. */
export class ListedTemplate extends ListedEntry {
  /** The text of the template. */
  readonly uriTemplate: string;

  constructor(raw: JsonObject, server: string) {
    super(raw, server);
    this.uriTemplate = text(raw.uriTemplate) ?? '';
  }
}

/** The contents of a watched resource: once at the beginning, and after each change. */
export class Change {
  constructor(
    /** The URI of the changed resource. It may lie under the URI that is watched. */
    readonly uri: string,
    /** The contents, in the form of {@link Client.read}; `null` if the resource was removed. */
    readonly contents: ReadValue | null,
    /** The name of the server. */
    readonly server: string,
  ) {}
}

/** A progress report of a server. */
export class Progress {
  constructor(
    /** The progress so far. */
    readonly progress: number,
    /** The progress at the end, if the server knows it. */
    readonly total: number | undefined,
    /** A text about the current step, if the server sends one. */
    readonly message: string | undefined,
  ) {}
}

/** A request that a server makes of the client. */
export class Question {
  constructor(
    /** The name of the server. */
    readonly server: string,
    /** The method of the request. */
    readonly method: string,
    /** The params of the request. */
    readonly params: JsonObject,
    /** Aborted when the answer is no longer needed. */
    readonly signal: AbortSignal,
  ) {}
}

/** The self-description of a server. */
export class ServerAbout {
  constructor(
    /** The protocol revision in use with this server. */
    readonly revision: string,
    /** The name and version of the server. */
    readonly serverInfo: JsonObject,
    /** The capabilities of the server. */
    readonly capabilities: JsonObject,
    /** The instructions for the model that uses the server, if it has some. */
    readonly instructions: string | undefined,
  ) {}
}

/** The result of a read. */
export function readValue({ text, bytes, entries }: Arrival): ReadValue {
  return text ?? bytes ?? contentsOf(entries ?? []);
}

/** The result of a read as `Contents`. */
export function allContents({ entries = [] }: Arrival): Contents[] {
  return contentsOf(entries);
}

/** A change of a watched resource. */
export function changeOf(arrival: Arrival): Change {
  const { uri = '', server = '', text, bytes, entries } = arrival;
  const isGone = text === undefined && bytes === undefined && entries === undefined;
  return new Change(uri, isGone ? null : readValue(arrival), server);
}

/** The result of a completion. */
export function completionOf({ values = [], total, hasMore }: Arrival): Completion {
  return new Completion(values, { total, hasMore });
}

/** The self-description of a server. */
export function aboutOf({ word = '', text, details: [info = '{}', capabilities = '{}'] = [] }: Arrival): ServerAbout {
  return new ServerAbout(word, JSON.parse(info), JSON.parse(capabilities), text);
}

/** A part of the resources. */
export function resourcesOf({ text = '[]', server = '' }: Arrival): ListedResource[] {
  return (JSON.parse(text) as JsonObject[]).map((raw) => new ListedResource(raw, server));
}

/** A part of the templates. */
export function templatesOf({ text = '[]', server = '' }: Arrival): ListedTemplate[] {
  return (JSON.parse(text) as JsonObject[]).map((raw) => new ListedTemplate(raw, server));
}

function contentsOf(entries: readonly Entry[]): Contents[] {
  return entries.map(({ uri, mimeType, text, bytes, meta }) => {
    const about = { uri, mimeType, meta: meta === undefined ? undefined : JSON.parse(meta) };
    return new Contents(text ?? Buffer.from(bytes ?? new Uint8Array()), about);
  });
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function object(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}
