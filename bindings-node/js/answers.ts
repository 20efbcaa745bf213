/** Answers requests with the results and errors of handlers. */

import type { Entry, PlainValue, Question } from './binding.js';
import { isWebBody, open, type WebBody } from './bodies.js';
import { bytesOf } from './bytes.js';
import { isObject, shown } from './check.js';
import type { Driver } from './driver.js';
import {
  CustomError,
  InvalidParameterError,
  McpError,
  RateLimitedError,
  ReadFailedError,
  ReadTimeoutError,
  ResourceNotFoundError,
  SizeExceededError,
} from './errors.js';
import { jsonText } from './json.js';
import { absent, failed } from './log.js';
import { checkItem } from './option-checks.js';
import { describe } from './option-fields.js';
import type { Resource } from './options.js';
import {
  type CacheHint,
  Completion,
  Contents,
  Elicit,
  ElicitUrl,
  type InputRequest,
  InputRequired,
  type JsonObject,
  ListPage,
  ListRoots,
  MethodResult,
  ReadResult,
  Sample,
} from './results.js';
import { RefusedParameter } from './schema.js';
import { shaped } from './shapes.js';
import { type Gathering, gather, isStream, type Stream } from './streams.js';

/** Whose answer it is: its name, and the media type of values that become JSON. */
export interface Reading {
  readonly name: string;
  readonly json: string | undefined;
}

/** Has the function that converts values without a JSON form. */
type Json = Pick<Driver, 'json'>;

/** Answers a read. Returns a text that is the answer, or nothing. */
export function answerRead(driver: Driver, request: number, value: unknown, reading: Reading): string | undefined {
  if (driver.redact !== undefined && !(value instanceof InputRequired)) {
    answerRedacted(driver, request, value, reading);
    return undefined;
  }
  if (typeof value === 'string') return value;
  const { answers, quick } = driver;
  const bytes = bytesOf(value);
  if (bytes !== undefined) quick.blob(request, bytes);
  else if (value instanceof InputRequired) ask(driver, request, value);
  else if (value instanceof ReadResult)
    answers.contents(request, entries(driver, value.contents, reading), hint(value.cache));
  else if (value instanceof Contents) answers.contents(request, entries(driver, [value], reading));
  else if (isContents(value)) answers.contents(request, entries(driver, value, reading));
  else if (isWebBody(value)) body(driver, request, value, reading);
  else if (isStream(value)) stream(driver, request, value, { name: reading.name });
  else answerValue(driver, request, value, reading);
  return undefined;
}

/** A caching hint as the compiled part takes it: an interface has no index signature of its own. */
function hint(cache: CacheHint | undefined): PlainValue | undefined {
  return cache && { ...cache };
}

/** Answers with a result in the protocol's own shape, or with JSON. */
function answerValue(driver: Driver, request: number, value: unknown, reading: Reading): void {
  const result = shaped(value);
  if (result !== undefined) {
    driver.answers.contents(request, entries(driver, result.contents, reading), hint(result.cache));
  } else if (reading.json === undefined) driver.quick.text(request, document(driver, value));
  else driver.quick.text(request, document(driver, value), reading.json);
}

/** Answers with a `Response` or `Blob`, once all of it is read. The media type of the resource has priority. */
function body(driver: Driver, request: number, value: WebBody, reading: Reading): void {
  const { chunks, isText, mimeType } = open(value);
  const about = { name: reading.name, isText, mimeType: reading.json === undefined ? undefined : mimeType };
  const whole = (found: string | Uint8Array) =>
    answerRead(driver, request, new Contents(found, { mimeType: about.mimeType }), reading);
  stream(driver, request, chunks, driver.redact === undefined ? about : { ...about, whole });
}

function stream(driver: Driver, request: number, value: Stream, gathering: Gathering): void {
  gather(driver, request, value, gathering)?.catch((error) => fail(driver, request, error, gathering.name));
}

/** The same, with contents redacted. */
function answerRedacted(driver: Driver, request: number, value: unknown, reading: Reading): void {
  if (isWebBody(value)) {
    body(driver, request, value, reading);
    return;
  }
  if (isStream(value)) {
    const whole = (body: string | Uint8Array) => answerRedacted(driver, request, body, reading);
    stream(driver, request, value, { name: reading.name, whole });
    return;
  }
  const result = value instanceof ReadResult ? value : shaped(value);
  const contents =
    result?.contents ?? (isContents(value) ? value : [value instanceof Contents ? value : new Contents(value)]);
  const uri = driver.quick.about(request)?.uri ?? '';
  const redacted = contents.map((one) => {
    const passed: unknown = driver.redact?.(one.uri ?? uri, encodable(driver, one, reading));
    if (passed instanceof Contents) return passed;
    throw new TypeError(`redact returned ${shown(passed)}, expected Contents`);
  });
  driver.answers.contents(request, entries(driver, redacted, reading), hint(result?.cache));
}

/** With a text or bytes as its body. */
function encodable(driver: Driver, contents: Contents, reading: Reading): Contents {
  const { body, ...about } = contents;
  if (typeof body === 'string' || bytesOf(body) !== undefined) return contents;
  return new Contents(document(driver, body), defined({ mimeType: reading.json, ...defined(about) }));
}

/** Answers a completion: a `Completion`, any iterable of texts, or nothing. */
export function answerCompletion(driver: Driver, request: number, value: unknown): undefined {
  const { values, total, hasMore } =
    value instanceof Completion ? value : new Completion(iterable(value, 'a completer', 'strings') as Iterable<string>);
  const wrong = values.findIndex((one) => typeof one !== 'string');
  if (wrong >= 0) {
    throw new TypeError(
      `item ${wrong} of the completion is ${shown(values[wrong])}, expected a string; use String(value)`,
    );
  }
  driver.answers.completion(request, [...values], total, hasMore);
}

/** The answer about one URI, or the error of its call. */
export interface Decided {
  readonly value?: unknown;
  readonly error?: unknown;
}

/** Answers who may use resources. A failure, and what is no boolean, means no, and is logged. */
export function answerAccess(driver: Driver, request: number, decided: readonly Decided[], name: string): undefined {
  const answers = decided.map((one) => {
    if (typeof one.value === 'boolean') return one.value;
    const wrong = () => new TypeError(`it returned ${shown(one.value)}, expected true or false`);
    failed(driver.logger, name, 'access', 'error' in one ? one.error : wrong());
    return undefined;
  });
  driver.answers.access(request, answers);
}

/** Makes a resource of an item that is or has the values of a template's variables. */
export type Expand = (item: unknown) => Resource | undefined;

/** Answers a list: a `ListPage`, or any iterable of resources or of variables' values. */
export function answerList(driver: Driver, request: number, value: unknown, expand: Expand): undefined {
  const page = value instanceof ListPage ? value : new ListPage(iterable(value, 'a lister', 'resources'));
  const items = page.items.map((item, at) => listed(item, at, expand));
  driver.answers.page(request, items, page.next);
}

function iterable(value: unknown, who: string, what: string): Iterable<unknown> {
  if (value === undefined || value === null) return [];
  if (typeof value === 'object' && Symbol.iterator in value) return value as Iterable<unknown>;
  const fix = typeof value === 'object' && Symbol.asyncIterator in value ? '; use await Array.fromAsync(…)' : '';
  throw new TypeError(`${who} returned ${shown(value)}, expected an array of ${what}${fix}`);
}

function listed(item: unknown, at: number, expand: Expand): PlainValue {
  try {
    const resource = expand(item) ?? (item as Resource);
    checkItem(resource);
    return describe(resource);
  } catch (error) {
    throw new TypeError(`item ${at} of the list: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** Answers a custom method: a `MethodResult`, the members of the result, or questions to the client. */
export function answerCall(driver: Driver, request: number, value: unknown): undefined {
  if (value instanceof InputRequired) {
    ask(driver, request, value);
    return;
  }
  const { members, resultType, meta } = value instanceof MethodResult ? value : new MethodResult(membersOf(value));
  driver.answers.result(request, json(driver, members), resultType, meta && json(driver, meta));
}

function membersOf(value: unknown): JsonObject {
  if (value === undefined || value === null) return {};
  if (isObject(value)) return value;
  throw new TypeError(`the method returned ${shown(value)}, expected an object with the members of its result`);
}

/** Answers with a thrown error. Unexpected errors are logged, and not sent to the client. */
export function fail(driver: Driver, request: number, error: unknown, name: string): undefined {
  try {
    if (error instanceof InputRequired) ask(driver, request, error);
    else driver.answers.fail(request, ...failure(driver, request, error, name));
  } catch (other) {
    failed(driver.logger, name, 'the error cannot be sent', other);
    driver.answers.fail(request, null, {});
  }
}

/** The word for an error, and its members. */
type Failure = [kind: string | null, members: Record<string, PlainValue>];

function failure(driver: Driver, request: number, error: unknown, name: string): Failure {
  if (error instanceof CustomError) {
    const { code, message, data } = error;
    return [null, data === undefined ? { code, message } : { code, message, data: json(driver, data) }];
  }
  // An error of another server is a failure of this one.
  const isOurs = error instanceof McpError && !(error instanceof ReadFailedError);
  if (isOurs && error.kind !== undefined) {
    if (error instanceof ResourceNotFoundError) {
      absent(driver.logger, name, { what: driver.quick.about(request)?.uri ?? 'request', why: error.message });
    }
    return [error.kind, facts(error)];
  }
  const isEnd = error instanceof Error && isCancellation(error) && !driver.quick.waits(request);
  if (!isEnd) failed(driver.logger, name, driver.quick.about(request)?.uri ?? 'request', error);
  return [null, {}];
}

/** Whether this is the error of a handler or stream that was cancelled. */
function isCancellation({ name, code }: NodeJS.ErrnoException): boolean {
  return name === 'AbortError' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}

function facts(error: McpError): Record<string, PlainValue> {
  if (error instanceof RefusedParameter)
    return { parameter: error.parameter, value: error.value, reason: error.reason };
  if (error instanceof InvalidParameterError) return { parameter: error.parameter, expected: error.expected };
  if (error instanceof SizeExceededError) return defined({ limit: error.limit, size: error.size });
  if (error instanceof ReadTimeoutError) return { afterMs: error.afterMs };
  return error instanceof RateLimitedError ? { retryAfterMs: error.retryAfterMs } : {};
}

/** Answers with questions to the client. */
export function ask(driver: Driver, request: number, { requests, state }: InputRequired): void {
  const questions = Object.entries(requests).map(([key, one]) => ({ key, ...question(driver, one) }));
  driver.answers.ask(request, questions, state === undefined ? undefined : json(driver, state));
}

function question(driver: Driver, request: InputRequest): Omit<Question, 'key'> {
  if (request instanceof Elicit) return { kind: 'form', text: request.message, more: json(driver, request.schema) };
  if (request instanceof ElicitUrl) return { kind: 'url', text: request.message, more: request.url };
  if (request instanceof Sample) return { kind: 'sample', text: json(driver, request.params), more: '' };
  if (request instanceof ListRoots) return { kind: 'roots', text: '', more: '' };
  throw new TypeError(`a question is ${shown(request)}, expected an Elicit, ElicitUrl, Sample or ListRoots`);
}

/** Contents as the compiled part takes them. */
export function entries(driver: Json, contents: readonly Contents[], reading: Reading): Entry[] {
  return contents.map(({ body, uri, mimeType, meta }) => {
    const common = defined({ uri, mimeType, meta: meta && json(driver, meta) });
    if (typeof body === 'string') return { ...common, text: body };
    const bytes = bytesOf(body);
    if (bytes !== undefined) return { ...common, bytes };
    return { ...defined({ mimeType: reading.json }), ...common, text: document(driver, body) };
  });
}

/** Whether it is a list of contents; one in which contents stand beside something else is neither that nor JSON. */
function isContents(value: unknown): value is readonly Contents[] {
  if (!Array.isArray(value)) return false;
  const count = value.reduce((count: number, item) => (item instanceof Contents ? count + 1 : count), 0);
  if (count === 0 || count === value.length) return count > 0;
  const at = value.findIndex((item) => !(item instanceof Contents));
  throw new TypeError(
    `item ${at} of the array is ${shown(value[at])}, expected Contents as the others: new Contents(…)`,
  );
}

/** JSON text of a handler's result. */
function document(driver: Json, value: unknown): string {
  if (value === null || value === undefined) {
    throw new TypeError(`the handler returned ${value}; throw ResourceNotFoundError if there is no such resource`);
  }
  return json(driver, value);
}

/** JSON text of a value. */
export function json(driver: Json, value: unknown): string {
  return jsonText(value, driver.json);
}

/** The members that are there. */
export function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
