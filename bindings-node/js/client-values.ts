/** What a client gives: entries of lists, changes, questions. Members that a server sends with another type are left out. */
import type { Arrival } from './binding.js';
import { isObject } from './check.js';
import { Completion, Contents, type JsonObject } from './results.js';

type Entry = NonNullable<Arrival['entries']>[number];

/** What {@link Client.read} gives: the text of one text, the bytes of one blob, else all contents. */
export type ReadValue = string | Buffer | Contents[];

/** What a resource and a template of a list have in common. */
abstract class ListedEntry {
  /** Its name. */
  readonly name: string;
  /** Its name for people. */
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly mimeType: string | undefined;
  readonly annotations: JsonObject | undefined;
  /** Members of `_meta`. */
  readonly meta: JsonObject | undefined;

  constructor(
    /** The whole entry, as the server sent it. */
    readonly raw: JsonObject,
    /** The name of its server. */
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

/** A resource of a list. */
export class ListedResource extends ListedEntry {
  readonly uri: string;
  /** Bytes, if the server says how many. */
  readonly size: number | undefined;

  constructor(raw: JsonObject, server: string) {
    super(raw, server);
    this.uri = text(raw.uri) ?? '';
    this.size = typeof raw.size === 'number' ? raw.size : undefined;
  }
}

/** A template of a list. */
export class ListedTemplate extends ListedEntry {
  readonly uriTemplate: string;

  constructor(raw: JsonObject, server: string) {
    super(raw, server);
    this.uriTemplate = text(raw.uriTemplate) ?? '';
  }
}

/** The contents of a watched resource: at first, and after each change. */
export class Change {
  constructor(
    /** The resource. It may lie beneath the one that is watched. */
    readonly uri: string,
    /** As {@link Client.read} gives them; `null` if the resource is gone. */
    readonly contents: ReadValue | null,
    /** The name of its server. */
    readonly server: string,
  ) {}
}

/** How far a request is. */
export class Progress {
  constructor(
    readonly progress: number,
    /** How far it goes, if that is known. */
    readonly total: number | undefined,
    /** What is being done, if the server says so. */
    readonly message: string | undefined,
  ) {}
}

/** A question of a server's. */
export class Question {
  constructor(
    /** The name of the server. */
    readonly server: string,
    /** The method of its request. */
    readonly method: string,
    readonly params: JsonObject,
    /** Aborted when the answer is not needed any more. */
    readonly signal: AbortSignal,
  ) {}
}

/** What a server says of itself. */
export class ServerAbout {
  constructor(
    /** The revision that is spoken with it. */
    readonly revision: string,
    readonly serverInfo: JsonObject,
    readonly capabilities: JsonObject,
    /** How it is to be used, if it says so. */
    readonly instructions: string | undefined,
  ) {}
}

/** The result of a read. */
export function readValue({ text, bytes, entries }: Arrival): ReadValue {
  return text ?? bytes ?? contentsOf(entries ?? []);
}

/** The result of a read, with all that contents have. */
export function allContents({ entries = [] }: Arrival): Contents[] {
  return contentsOf(entries);
}

/** What has changed. */
export function changeOf(arrival: Arrival): Change {
  const { uri = '', server = '', text, bytes, entries } = arrival;
  const isGone = text === undefined && bytes === undefined && entries === undefined;
  return new Change(uri, isGone ? null : readValue(arrival), server);
}

/** The result of a completion. */
export function completionOf({ values = [], total, hasMore }: Arrival): Completion {
  return new Completion(values, { total, hasMore });
}

/** What a server says of itself. */
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
