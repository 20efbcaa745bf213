/** What a handler is told about its request, and what it can tell the client before it answers. */
import type { RequestFields } from './binding.js';
import type { Driver } from './driver.js';
import { translated } from './errors.js';
import { jsonText } from './json.js';
import { type Log, logOf } from './log.js';
import { InputResponse, type JsonObject } from './results.js';
import { record } from './values.js';

/** The request that a handler answers. What it says is there until the answer is. */
export class Context {
  readonly #driver: Driver;
  readonly #request: number;
  #about: RequestFields | null | undefined;
  #controller: AbortController | undefined;
  #log: Log | undefined;

  /** Made by the library alone. */
  constructor(driver: Driver, request: number) {
    this.#driver = driver;
    this.#request = request;
  }

  /** The URI as the client spelled it; `undefined` outside of reads. */
  get uri(): string | undefined {
    return this.#fields?.uri ?? undefined;
  }

  /** The identity that the transport verified: empty for the local process, `anonymous` for an HTTP client without a token. */
  get principal(): string {
    return this.#fields?.principal ?? '';
  }

  /** The scopes of the caller's token, with those that they include. */
  get scopes(): readonly string[] {
    return this.#fields?.scopes ?? [];
  }

  /**
   * The claims of the caller's token; `undefined` if there are none. What is kept of reads does not depend on them: a
   * resource whose contents do has no `ttlMs`.
   */
  get claims(): JsonObject | undefined {
    return parsed(this.#fields?.claims);
  }

  /**
   * The headers of the HTTP request by lower-case names; empty over a pipe. The client chose them: none is verified.
   * `Authorization`, `Proxy-Authorization` and `Cookie` are left out.
   */
  get headers(): Readonly<Record<string, string>> {
    return record(this.#fields?.headers ?? []);
  }

  /** The revision of the protocol that the request is served under. */
  get revision(): string {
    return this.#fields?.revision ?? '';
  }

  /** What the client says of itself, unverified. */
  get clientInfo(): JsonObject | undefined {
    return parsed(this.#fields?.clientInfo);
  }

  /** `_meta` of the request. */
  get meta(): JsonObject | undefined {
    return parsed(this.#fields?.meta);
  }

  /**
   * The trace that the request belongs to: a carrier for propagators of OpenTelemetry. `traceparent`, `tracestate` and
   * `baggage` of `_meta`, each only if it is well-formed.
   */
  get trace(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#fields?.trace ?? []);
  }

  /** The client's answers to an earlier `InputRequired`, by key. */
  get inputs(): Readonly<Record<string, InputResponse>> {
    const answers = Object.entries(parsed(this.#fields?.inputs) ?? {});
    return record(answers.map(([key, value]) => [key, new InputResponse(value as JsonObject)]));
  }

  /** The state given with that `InputRequired`; `undefined` at first. */
  get state(): unknown {
    return parsed(this.#fields?.state);
  }

  /** Aborted when nobody waits for the answer any longer: the request was cancelled, or has run out of time. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cancelled) this.#controller.abort();
      else this.#driver.whenCancelled(this.#request, () => this.#controller?.abort());
    }
    return this.#controller.signal;
  }

  /** Whether nobody waits for the answer: the request was cancelled, has run out of time, or is answered. */
  get cancelled(): boolean {
    return !this.#driver.quick.waits(this.#request);
  }

  /** Logs to the client: `ctx.log('info', …)` or `ctx.log.info(…)`. */
  get log(): Log {
    this.#log ??= logOf((level, data, logger) =>
      translated(() => this.#driver.answers.log(this.#request, level, data, logger)),
    );
    return this.#log;
  }

  /** Tells the client, if it asked for that, how far the handler is. `progress` must grow. */
  progress(progress: number, total?: number, message?: string): void {
    this.#driver.answers.progress(this.#request, progress, total, message);
  }

  /**
   * Sends a request to a client of a legacy revision, such as `sampling/createMessage`, and waits for its result. One of
   * 2026-07-28 is asked with `InputRequired`.
   *
   * @throws {AskFailedError} it cannot be asked, did not answer, or refused.
   */
  async ask(method: string, params: JsonObject = {}): Promise<JsonObject> {
    const ask = translated(() => this.#driver.answers.askClient(this.#request, method, jsonText(params)));
    return this.#driver.replied(ask) as Promise<JsonObject>;
  }

  get #fields(): RequestFields | null {
    this.#about ??= this.#driver.quick.about(this.#request);
    return this.#about;
  }
}

function parsed(text: string | null | undefined): JsonObject | undefined {
  return text === null || text === undefined ? undefined : JSON.parse(text);
}
