/** From what a handler returned or threw to an answer. */

import type { Entry, Failure, Question, ResourceFields } from './binding.js';
import { bytesOf } from './bytes.js';
import type { Driver } from './driver.js';
import { CustomError, InvalidParameter, McpError, RateLimited, ReadTimeout, SizeExceeded } from './errors.js';
import { failed } from './log.js';
import { describe, type Resource } from './options.js';
import {
  Completion,
  Contents,
  Elicit,
  ElicitUrl,
  type InputRequest,
  InputRequired,
  ListPage,
  ListRoots,
  MethodResult,
  ReadResult,
  Sample,
} from './results.js';
import { type Gathering, gather, isStream, type Stream } from './streams.js';

/** Whose answer it is: its name, and the media type of values that become JSON. */
export interface Reading {
  readonly name: string;
  readonly json: string | undefined;
}

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
  else if (value instanceof ReadResult) answers.contents(request, entries(value.contents, reading), value.cache);
  else if (value instanceof Contents) answers.contents(request, entries([value], reading));
  else if (isContents(value)) answers.contents(request, entries(value, reading));
  else if (isStream(value)) stream(driver, request, value, { name: reading.name });
  else if (reading.json === undefined) quick.text(request, document(value));
  else quick.text(request, document(value), reading.json);
  return undefined;
}

function stream(driver: Driver, request: number, value: Stream, gathering: Gathering): void {
  gather(driver, request, value, gathering)?.catch((error) => fail(driver, request, error, gathering.name));
}

/** The same with what `redact` makes of the contents. */
function answerRedacted(driver: Driver, request: number, value: unknown, reading: Reading): void {
  if (isStream(value)) {
    const whole = (body: string | Uint8Array) => answerRedacted(driver, request, body, reading);
    stream(driver, request, value, { name: reading.name, whole });
    return;
  }
  const result = value instanceof ReadResult ? value : undefined;
  const contents =
    result?.contents ?? (isContents(value) ? value : [value instanceof Contents ? value : new Contents(value)]);
  const uri = driver.quick.about(request)?.uri ?? '';
  const redacted = contents.map((one) => {
    const passed = driver.redact?.(one.uri ?? uri, encodable(one, reading));
    if (passed instanceof Contents) return passed;
    throw new TypeError('redact must return Contents');
  });
  driver.answers.contents(request, entries(redacted, reading), result?.cache);
}

/** With a text or bytes as its body. */
function encodable(contents: Contents, reading: Reading): Contents {
  const { body, ...about } = contents;
  if (typeof body === 'string' || bytesOf(body) !== undefined) return contents;
  return new Contents(document(body), defined({ mimeType: reading.json, ...defined(about) }));
}

/** Answers a completion: a `Completion`, any iterable of texts, or nothing. */
export function answerCompletion(driver: Driver, request: number, value: unknown): undefined {
  if (typeof value === 'string') throw new TypeError('a completer returns an array of texts, not one text');
  const { values, total, hasMore } =
    value instanceof Completion ? value : new Completion((value ?? []) as Iterable<string>);
  driver.answers.completion(request, [...values], total, hasMore);
}

/** Answers a list: a `ListPage`, or any iterable of resources. */
export function answerList(driver: Driver, request: number, value: unknown): undefined {
  if (typeof value === 'string') throw new TypeError('a lister returns resources, not a text');
  const page = value instanceof ListPage ? value : new ListPage((value ?? []) as Iterable<unknown>);
  driver.answers.page(request, page.items.map(listed), page.next);
}

function listed(item: unknown): ResourceFields {
  if (typeof (item as Partial<Resource> | null)?.uri === 'string') return describe(item as Resource);
  throw new TypeError('a lister returns resources: objects with a uri');
}

/** Answers a foreign method: a `MethodResult`, the members of the result, or questions to the client. */
export function answerCall(driver: Driver, request: number, value: unknown): undefined {
  if (value instanceof InputRequired) {
    ask(driver, request, value);
    return;
  }
  const { members, resultType, meta } = value instanceof MethodResult ? value : new MethodResult((value ?? {}) as {});
  driver.answers.result(request, json(members), resultType, meta && json(meta));
}

/** Answers with what was thrown. What is not meant for the client is logged. */
export function fail(driver: Driver, request: number, error: unknown, name: string): undefined {
  try {
    if (error instanceof InputRequired) ask(driver, request, error);
    else driver.answers.fail(request, failure(driver, request, error, name));
  } catch (other) {
    failed(name, 'the error cannot be told', other);
    driver.answers.fail(request, {});
  }
}

function failure(driver: Driver, request: number, error: unknown, name: string): Failure {
  if (error instanceof CustomError) {
    const { code, message, data } = error;
    return data === undefined ? { code, message } : { code, message, data: json(data) };
  }
  if (error instanceof McpError && error.kind !== undefined) return { kind: error.kind, ...facts(error) };
  const isEnd = error instanceof Error && error.name === 'AbortError' && !driver.quick.waits(request);
  if (!isEnd) failed(name, driver.quick.about(request)?.uri ?? 'request', error);
  return {};
}

function facts(error: McpError): Failure {
  if (error instanceof InvalidParameter) return { parameter: error.parameter, expected: error.expected };
  if (error instanceof SizeExceeded) return defined({ limit: error.limit, size: error.size });
  if (error instanceof ReadTimeout) return { afterMs: error.afterMs };
  return error instanceof RateLimited ? { retryAfterMs: error.retryAfterMs } : {};
}

function ask(driver: Driver, request: number, { requests, state }: InputRequired): void {
  const questions = Object.entries(requests).map(([key, one]) => ({ key, ...question(one) }));
  driver.answers.ask(request, questions, state === undefined ? undefined : json(state));
}

function question(request: InputRequest): Omit<Question, 'key'> {
  if (request instanceof Elicit) return { sort: 'form', text: request.message, more: json(request.schema) };
  if (request instanceof ElicitUrl) return { sort: 'url', text: request.message, more: request.url };
  if (request instanceof Sample) return { sort: 'sample', text: json(request.params), more: '' };
  if (request instanceof ListRoots) return { sort: 'roots', text: '', more: '' };
  throw new TypeError('a question is an Elicit, ElicitUrl, Sample or ListRoots');
}

function entries(contents: readonly Contents[], reading: Reading): Entry[] {
  return contents.map(({ body, uri, mimeType, meta }) => {
    const common = defined({ uri, mimeType, meta: meta && json(meta) });
    if (typeof body === 'string') return { ...common, text: body };
    const bytes = bytesOf(body);
    if (bytes !== undefined) return { ...common, bytes };
    return { ...defined({ mimeType: reading.json }), ...common, text: document(body) };
  });
}

function isContents(value: unknown): value is readonly Contents[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => item instanceof Contents);
}

/** JSON text of an object or array. */
function document(value: unknown): string {
  if (value === null || value === undefined) {
    throw new TypeError(`the handler returned ${value}; throw ResourceNotFound if there is no such resource`);
  }
  if (typeof value === 'object') return json(value);
  throw new TypeError(
    `the handler returned a ${typeof value}; it may return a text, bytes, an object, an array, Contents, a stream or ` +
      'an iterator of chunks',
  );
}

function json(value: unknown): string {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError('a value has no JSON form');
  return text;
}

/** The members that are there. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
