/** `Context`: the request that a handler answers, with log messages and progress reports to its client. */
import { AsyncResource } from 'node:async_hooks';
import type { RequestFields } from './binding.js';
import { checkText, shown } from './check.js';
import type { Driver } from './driver.js';
import { translated } from './errors.js';
import { jsonText } from './json.js';
import { type Log, logOf } from './log.js';
import { InputResponse, type JsonObject } from './results.js';
import { record } from './values.js';

/**
 * The request that a handler answers. Its properties are available until the request is answered. `State` is the type of
 * `lifespan`.
 */
export class Context<State = unknown> {
  readonly #driver: Driver;
  readonly #request: number;
  #about: RequestFields | null | undefined;
  #controller: AbortController | undefined;
  #log: Log | undefined;

  /** Called by the library only. */
  constructor(driver: Driver, request: number) {
    this.#driver = driver;
    this.#request = request;
  }

  /** The URI as the client wrote it; `undefined` if the request is not a read. */
  get uri(): string | undefined {
    return this.#fields?.uri ?? undefined;
  }

  /** The verified identity of the client: empty on stdio, `anonymous` for HTTP clients without a token. */
  get principal(): string {
    return this.#fields?.principal ?? '';
  }

  /** The scopes of the client's token, with the scopes that they imply. */
  get scopes(): readonly string[] {
    return this.#fields?.scopes ?? [];
  }

  /**
   * The claims of the client's token; `undefined` without a token or claims. The option `cache` does not distinguish clients
   * by claims: a resource whose contents depend on them must not have a `ttlMs`.
   */
  get claims(): JsonObject | undefined {
    return parsed(this.#fields?.claims);
  }

  /**
   * The headers of the HTTP request, with lower-case names; empty on stdio. They are not verified. `Authorization`,
   * `Proxy-Authorization` and `Cookie` are left out.
   */
  get headers(): Readonly<Record<string, string>> {
    return record(this.#fields?.headers ?? []);
  }

  /** The protocol revision of the request. */
  get revision(): string {
    return this.#fields?.revision ?? '';
  }

  /** The self-description of the client (its name and version), not verified; `undefined` if it sent none. */
  get clientInfo(): JsonObject | undefined {
    return parsed(this.#fields?.clientInfo);
  }

  /** The `_meta` of the request; `undefined` if it has none. */
  get meta(): JsonObject | undefined {
    return parsed(this.#fields?.meta);
  }

  /**
   * The trace context of the request, as a carrier for OpenTelemetry propagators: `traceparent`, `tracestate` and `baggage`
   * of `_meta`, each only if it is well-formed.
   */
  get trace(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#fields?.trace ?? []);
  }

  /** The client's answers to an earlier `InputRequired`, by the keys of its requests; empty at first. */
  get inputs(): Readonly<Record<string, InputResponse>> {
    const answers = Object.entries(parsed(this.#fields?.inputs) ?? {});
    return record(answers.map(([key, value]) => [key, new InputResponse(value as JsonObject)]));
  }

  /** The `state` of that `InputRequired`; `undefined` at first. */
  get state(): unknown {
    return parsed(this.#fields?.state);
  }

  /** What the option `onStart` of the server returned; `undefined` without one. */
  get lifespan(): State {
    return this.#driver.lifespan as State;
  }

  /** Aborted when the answer is no longer needed: the request was cancelled or timed out. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cancelled) this.#controller.abort();
      // Listeners run in the context of this request, even if another request causes the cancellation.
      else
        this.#driver.whenCancelled(
          this.#request,
          AsyncResource.bind(() => this.#controller?.abort()),
        );
    }
    return this.#controller.signal;
  }

  /** Whether the answer is no longer needed: the request was cancelled, timed out, or is answered. */
  get cancelled(): boolean {
    return !this.#driver.quick.waits(this.#request);
  }

  /** Sends log messages to the client: `ctx.log('info', data)` or `ctx.log.info(data)`. */
  get log(): Log {
    this.#log ??= logOf((level, data, logger) =>
      translated(() => this.#driver.answers.log(this.#request, level, data, logger)),
    );
    return this.#log;
  }

  /**
   * Reports progress to the client, if it asked for reports.
   *
   * @param progress - the progress so far; it must increase with each report.
   * @param total - the value of `progress` at the end. Default: unknown.
   * @param message - a text about the current step. Default: none.
   */
  progress(progress: number, total?: number, message?: string): void {
    checkNumber('progress', progress);
    if (total !== undefined) checkNumber('total', total);
    if (message !== undefined) checkText('message', message);
    this.#driver.answers.progress(this.#request, progress, total, message);
  }

  /**
   * Sends a request to the client, such as `sampling/createMessage`, and waits for its result. Only for clients with a
   * revision before 2026-07-28; return `InputRequired` for others.
   *
   * @param method - the method of the request.
   * @param params - its params. Default: empty.
   * @throws {AskFailedError} the client cannot be asked, did not answer, or refused.
   */
  async ask(method: string, params: JsonObject = {}): Promise<JsonObject> {
    checkText('method', method);
    const ask = translated(() => this.#driver.answers.askClient(this.#request, method, jsonText(params)));
    return this.#driver.replied(ask) as Promise<JsonObject>;
  }

  get #fields(): RequestFields | null {
    this.#about ??= this.#driver.quick.about(this.#request);
    return this.#about;
  }
}

function checkNumber(name: string, value: unknown): void {
  if (typeof value !== 'number') throw new TypeError(`${name} is ${shown(value)}, expected a number`);
}

function parsed(text: string | null | undefined): JsonObject | undefined {
  return text === null || text === undefined ? undefined : JSON.parse(text);
}
