/**
 * The asynchronous contexts (`AsyncLocalStorage`) of HTTP requests. Each request is answered in its own, whatever made the
 * event loop call its functions: another request's answer, a timer, or a thread of a provider.
 */
import { AsyncResource } from 'node:async_hooks';

/** The name of a scope for the tools of `async_hooks`. */
const KIND = 'McpRequest';
/** How many requests may go on after their clients have left, with their contexts. Older ones get that of the program. */
const LEFT = 1_024;

/** A context of its own for one call, with what the code that calls this has in its. */
export function scopeHere(): AsyncResource {
  return new AsyncResource(KIND);
}

/** The same with what the code had that made `origin`: a function may change the context that it runs in. */
export function scopeFrom(origin: AsyncResource): AsyncResource {
  return origin.runInAsyncScope(scopeHere);
}

/** The contexts of the requests of one endpoint, by the numbers of their responses. */
export class RequestScopes {
  readonly #program = scopeHere();
  readonly #open = new Map<number, AsyncResource>();
  readonly #left = new Map<number, AsyncResource>();
  #arriving: number | undefined;

  /** Opens a request whose context is that of the caller. Its functions run inside `open`, or later. */
  arrives<T>(response: number, open: () => T): T {
    this.#arriving = response;
    try {
      return open();
    } finally {
      this.#arriving = undefined;
    }
  }

  /** The request is not answered yet. Called where it has arrived. */
  keep(response: number): void {
    if (!this.#open.has(response)) this.#open.set(response, scopeHere());
  }

  /** The context of a request, or of the program if the request is not known. */
  of(response: number | null): AsyncResource {
    if (response === null) return scopeFrom(this.#program);
    const known = this.#open.get(response) ?? this.#left.get(response);
    if (known !== undefined) return known;
    if (response !== this.#arriving) return scopeFrom(this.#program);
    this.keep(response);
    return this.of(response);
  }

  /** The response is complete. */
  ended(response: number): void {
    this.#open.delete(response);
    this.#left.delete(response);
  }

  /** The client has left; its request may go on. */
  left(response: number): void {
    const scope = this.#open.get(response);
    if (scope === undefined) return;
    this.#open.delete(response);
    this.#left.set(response, scope);
    const [oldest] = this.#left.keys();
    if (this.#left.size > LEFT && oldest !== undefined) this.#left.delete(oldest);
  }
}
