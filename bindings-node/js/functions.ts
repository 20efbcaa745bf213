/**
 * Prepares functions for the compiled part, once at registration. A call gets the numbers of the client and the request,
 * and the values as texts. It returns the answer if that is a text; otherwise it answers by itself, now or later.
 */

import {
  answerAccess,
  answerCall,
  answerCompletion,
  answerList,
  answerRead,
  type Decided,
  type Expand,
  fail,
} from './answers.js';
import { binding, type NativeFunction } from './binding.js';
import { shown } from './check.js';
import { Context } from './context.js';
import type { Driver, Peers } from './driver.js';
import type { JsonObject } from './results.js';
import { record, type Values } from './values.js';
import { Work } from './watchdog.js';

/** A function of any type. */
// biome-ignore lint/suspicious/noExplicitAny: the types of a function are checked where it is given
export type AnyFunction = (...given: any[]) => unknown;

/** A prepared function. It is called with the numbers of a client and a request. */
type Called = (peer: number, request: number, given: unknown[]) => string | undefined;

/** Answers a request with the result of a function. */
type Answer = (driver: Driver, request: number, value: unknown) => string | undefined;

/** Answers a request with an error. */
type Refuse = (driver: Driver, request: number, error: unknown, name: string) => undefined;

/** Prepares a reader. `json` is the media type of values that are serialized as JSON. */
export function reader(
  peers: Peers,
  name: string,
  call: AnyFunction,
  { values, json }: { readonly values?: Values | undefined; readonly json: string | undefined },
): NativeFunction {
  const answer: Answer = (driver, request, value) => answerRead(driver, request, value, { name, json });
  if (values === undefined) {
    return native(peers, name, answer, (context) => call({}, context));
  }
  return native(peers, name, answer, (context, texts) => {
    const variables = values.read(texts);
    if (!(variables instanceof Promise)) return call(variables, context);
    return variables.then((late) => call(late, context));
  });
}

/** Prepares a completer: it is called with the text typed so far, and the variables that are chosen already. */
export function completer(peers: Peers, name: string, call: AnyFunction): NativeFunction {
  return native(peers, name, answerCompletion, (context, [typed, ...pairs]) => {
    const chosen: [string, unknown][] = [];
    for (let at = 0; at < pairs.length; at += 2) chosen.push([pairs[at] as string, pairs[at + 1]]);
    return call(typed, record(chosen), context);
  });
}

/** Prepares a function that decides who may use a resource: it is called with a principal, and the variables of a URI. */
export function decider(
  peers: Peers,
  name: string,
  call: AnyFunction,
  { values, count, batch }: { readonly values: Values | undefined; readonly count: number; readonly batch: boolean },
): NativeFunction {
  const answer: Answer = (driver, request, value) => answerAccess(driver, request, value as Decided[], name);
  return native(peers, name, answer, (context, [principal, ...texts]) => {
    const asked: unknown[] = values === undefined ? [{}] : [];
    for (let at = 0; values !== undefined && at < texts.length; at += count) {
      asked.push(values.read(texts.slice(at, at + count)));
    }
    if (!batch) {
      const decide = (variables: unknown) => call(principal, variables, context);
      return settled(asked.map((one) => attempt(() => chained(one, decide))));
    }
    const all = asked.some(isThenable) ? Promise.all(asked) : asked;
    return chained(all, (every) =>
      chained(call(principal, every, context), (answers) => {
        if (!Array.isArray(answers) || answers.length !== asked.length) {
          throw new TypeError(`it returned ${shown(answers)}, expected an array of ${asked.length} booleans`);
        }
        return answers.map((value) => ({ value }));
      }),
    );
  });
}

/** The result of a call, or its error. */
function attempt(call: () => unknown): Decided | PromiseLike<Decided> {
  try {
    const value = call();
    if (!isThenable(value)) return { value };
    return value.then(
      (late) => ({ value: late }),
      (error) => ({ error }),
    );
  } catch (error) {
    return { error };
  }
}

function settled(all: (Decided | PromiseLike<Decided>)[]): unknown {
  return all.some(isThenable) ? Promise.all(all) : all;
}

/** Prepares a lister: it is called with a cursor if it pages itself. */
export function lister(peers: Peers, name: string, call: AnyFunction, expand: Expand): NativeFunction {
  const answer: Answer = (driver, request, value) => answerList(driver, request, value, expand);
  return native(peers, name, answer, (context, [cursor]) => call(cursor, context));
}

/** Prepares a custom method: it is called with the params. */
export function method(peers: Peers, name: string, call: AnyFunction): NativeFunction {
  return native(peers, name, answerCall, (context, [params]) =>
    call(params === undefined ? {} : JSON.parse(params as string), context),
  );
}

/** Prepares a tool or prompt: it is called with its arguments, as `check` gives them. */
export function named(
  peers: Peers,
  name: string,
  call: AnyFunction,
  { check, result, answer, refuse }: NamedParts,
): NativeFunction {
  const run = (context: Context, [text]: unknown[]) => {
    const checked = check(JSON.parse(text as string));
    return chained(checked, (given) => chained(call(given, context), result));
  };
  return native(peers, name, answer, run, refuse);
}

/** The parts of a tool or prompt besides its function. */
export interface NamedParts {
  /** Checks the arguments. */
  readonly check: (given: JsonObject) => unknown;
  /** Checks the result. */
  readonly result: (value: unknown) => unknown;
  readonly answer: Answer;
  readonly refuse: Refuse;
}

/** Calls `next` with a value, once it is there. */
function chained(value: unknown, next: (value: unknown) => unknown): unknown {
  return isThenable(value) ? value.then(next) : next(value);
}

function native(
  peers: Peers,
  name: string,
  answer: Answer,
  call: (context: Context, given: unknown[]) => unknown,
  refuse: Refuse = fail,
): NativeFunction {
  const work = new Work(name);
  const called: Called = (peer, request, given) => {
    const driver = peers.at(peer);
    if (driver === undefined) return undefined;
    try {
      const scope = driver.scope(request);
      const value = scope.runInAsyncScope(call, undefined, new Context(driver, request), given);
      if (typeof value === 'string' && driver.redact === undefined) return answer(driver, request, value);
      if (!isThenable(value)) return scope.runInAsyncScope(answered, undefined, driver, request, value);
      driver.suspended(work);
      const settled = (late: unknown): undefined => {
        driver.resumed(request, work);
        answered(driver, request, late);
      };
      const refused = (error: unknown): undefined => {
        driver.resumed(request, work);
        refuse(driver, request, error, name);
      };
      scope.runInAsyncScope(() => value.then(settled, refused));
    } catch (error) {
      refuse(driver, request, error, name);
    }
    return undefined;
  };
  /** Answers a call that is late: a text is passed on, since it can no longer be returned. */
  const answered = (driver: Driver, request: number, value: unknown): undefined => {
    try {
      const text = answer(driver, request, value);
      if (text !== undefined) driver.quick.text(request, text);
    } catch (error) {
      fail(driver, request, error, name);
    }
  };
  const run = weakly(new WeakRef(called));
  peers.keep(called, run);
  return new binding.NativeFunction(name, run);
}

/**
 * The compiled part holds the returned function, which must not hold the server. It is made in a separate scope, because
 * closures of one scope hold all variables that any of them uses.
 */
function weakly(kept: WeakRef<Called>): (peer: number, request: number, ...given: unknown[]) => string | undefined {
  return (peer, request, ...given) => kept.deref()?.(peer, request, given);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}

/** The name of a function; `undefined` for an anonymous one. */
export function nameOf(call: AnyFunction): string | undefined {
  return call.name === '' || call.name === 'anonymous' ? undefined : call.name;
}
