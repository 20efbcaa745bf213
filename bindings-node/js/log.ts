/** What the author hears, on standard error; and what a handler tells the client, through `ctx.log`. */

import { unexpected } from './check.js';
import { jsonText } from './json.js';

/** The severities of log messages, mildest first. */
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** How severe a log message is. */
export type LogLevel = (typeof LEVELS)[number];

/** Tells at one level: `data` is any JSON value, `logger` the name of what logs. */
export type LogAt = (data: unknown, logger?: string) => void;

/**
 * Tells the client of a request what its handler is doing: `ctx.log('info', …)` or `ctx.log.info(…)`. Nothing is sent
 * that it did not ask for.
 */
export type Log = ((level: LogLevel, data: unknown, logger?: string) => void) & { readonly [L in LogLevel]: LogAt };

/** What sends a message: a level, JSON text, and the name of a logger. */
export type SendLog = (level: string, data: string, logger: string | undefined) => void;

/** `ctx.log` around what sends. */
export function logOf(send: SendLog): Log {
  const log = (level: LogLevel, data: unknown, logger?: string): void => {
    if (!LEVELS.includes(level)) throw unexpected('level', String(level), LEVELS, { warn: 'did you mean "warning"?' });
    send(level, data === undefined ? 'null' : jsonText(data), logger);
  };
  const levels = LEVELS.map((level) => [level, (data: unknown, logger?: string) => log(level, data, logger)]);
  return Object.assign(log, Object.fromEntries(levels)) as Log;
}

/** Where the author's messages go; `console` is one. A second argument is what was thrown. */
export interface Logger {
  warn(message: string, thrown?: unknown): void;
  error(message: string, thrown?: unknown): void;
  /** Hears of what is usual, such as a resource that was not found. Optional; that of `console` is not called. */
  info?(message: string): void;
}

const SELF = 'mcp-resources: ';

/** What a handler threw: the stack is the author's, the client hears only that the read failed. */
export function failed(logger: Logger, name: string, what: string, error: unknown): void {
  logger.error(`${SELF}${name} failed: ${what}`, error);
}

/** A handler found no such resource, and said why: the client is not told. */
export function absent(logger: Logger, name: string, { what, why }: { what: string; why: string }): void {
  // The console's goes to standard output, where a server over stdio writes its answers.
  if (why !== '' && logger.info !== console.info) logger.info?.(`${SELF}${name}: ${what}: not found: ${why}`);
}

/** An answer that the request cannot have. */
export function misused(logger: Logger, what: string): void {
  logger.error(SELF + what);
}

/** A request was refused that an option would let in. */
export function refused(logger: Logger, what: string): void {
  logger.warn(SELF + what);
}

/** A handler that kept the event loop from everything else. */
export function held(logger: Logger, name: string, milliseconds: number): void {
  const span = Math.round(milliseconds);
  logger.warn(`${SELF}${name} has held the event loop for ${span} ms; everything else waited`);
}

/** Something kept the event loop from everything else: probably a handler that was at work. */
export function stalled(logger: Logger, names: string, milliseconds: number): void {
  const span = Math.round(milliseconds);
  logger.warn(`${SELF}the event loop was held for ${span} ms while ${names} was at work`);
}

/** What may not be what the author meant. */
export function warned(logger: Logger, server: string, warning: string): void {
  logger.warn(`${SELF}${server}: ${warning}`);
}

/** A token could not be verified: whether it is valid is not known. */
export function unverified(logger: Logger, error: unknown): void {
  logger.error(`${SELF}a token could not be verified`, error);
}

/** The function that takes what is recorded has failed: an entry may be lost. */
export function unrecorded(logger: Logger, error: unknown): void {
  logger.error(`${SELF}a record of a request could not be kept`, error);
}
