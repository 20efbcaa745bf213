/** Log messages: those for you, through the option `logger`, and those for clients, through `ctx.log`. */

import { unexpected } from './check.js';
import { jsonText } from './json.js';

/** The levels of log messages, least severe first. */
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** The level of a log message. */
export type LogLevel = (typeof LEVELS)[number];

/** Sends a log message at one level. `data` is any JSON value, `logger` the name of the part of your program that logs. */
export type LogAt = (data: unknown, logger?: string) => void;

/**
 * Sends log messages to the client of a request: `ctx.log('info', data)` or `ctx.log.info(data)`. A client gets only
 * messages of the levels that it asked for.
 */
export type Log = ((level: LogLevel, data: unknown, logger?: string) => void) & { readonly [L in LogLevel]: LogAt };

/** Sends a log message: a level, JSON text, and the name of a logger. */
export type SendLog = (level: string, data: string, logger: string | undefined) => void;

/** Makes `ctx.log` from a function that sends. */
export function logOf(send: SendLog): Log {
  const log = (level: LogLevel, data: unknown, logger?: string): void => {
    if (!LEVELS.includes(level)) throw unexpected('level', String(level), LEVELS, { warn: 'did you mean "warning"?' });
    send(level, data === undefined ? 'null' : jsonText(data), logger);
  };
  const levels = LEVELS.map((level) => [level, (data: unknown, logger?: string) => log(level, data, logger)]);
  return Object.assign(log, Object.fromEntries(levels)) as Log;
}

/** Takes the log messages of the library, such as failed handlers and warnings. `console` is a logger. */
export interface Logger {
  /** Takes a warning and, if there is one, the thrown value. */
  warn(message: string, thrown?: unknown): void;
  /** Takes an error and, if there is one, the thrown value. */
  error(message: string, thrown?: unknown): void;
  /** Takes messages about normal operation, such as a resource that was not found. Optional; `console.info` is not called. */
  info?(message: string): void;
}

const SELF = 'mcp-resources: ';

/** Logs what a handler threw, with its stack. The client learns only that the request failed. */
export function failed(logger: Logger, name: string, what: string, error: unknown): void {
  logger.error(`${SELF}${name} failed: ${what}`, error);
}

/** Logs why a handler threw `ResourceNotFoundError`. The client does not get the text. */
export function absent(logger: Logger, name: string, { what, why }: { what: string; why: string }): void {
  // `console.info` writes to standard output, which carries the answers of a server on stdio.
  if (why !== '' && logger.info !== console.info) logger.info?.(`${SELF}${name}: ${what}: not found: ${why}`);
}

/** Logs an answer that does not fit the request, or that did not come in time. */
export function misused(logger: Logger, what: string): void {
  logger.error(SELF + what);
}

/** Logs a request that was refused but that an option would allow. */
export function refused(logger: Logger, what: string): void {
  logger.warn(SELF + what);
}

/** Logs a handler that blocked the event loop. */
export function held(logger: Logger, name: string, milliseconds: number): void {
  const span = Math.round(milliseconds);
  logger.warn(`${SELF}${name} blocked the event loop for ${span} ms; use await, or a worker thread`);
}

/** Logs that the event loop was blocked, probably by one of the handlers `names`. */
export function stalled(logger: Logger, names: string, milliseconds: number): void {
  const span = Math.round(milliseconds);
  logger.warn(`${SELF}the event loop was blocked for ${span} ms, probably by ${names}; use await, or a worker thread`);
}

/** Logs a registration that is probably a mistake. */
export function warned(logger: Logger, server: string, warning: string): void {
  logger.warn(`${SELF}${server}: ${warning}`);
}

/** Logs what `Auth.verify` threw, other than `InvalidTokenError`. */
export function unverified(logger: Logger, error: unknown): void {
  logger.error(`${SELF}a token could not be verified; the client got status 503`, error);
}

/** Logs what the audit function threw. */
export function unrecorded(logger: Logger, error: unknown): void {
  logger.error(`${SELF}the audit function failed, so a record may be lost`, error);
}
