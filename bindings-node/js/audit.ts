/** Calls the audit function with the records of requests, on the event loop, in batches. */
import type { Server } from './binding.js';
import { type Logger, unrecorded } from './log.js';
import type { JsonObject } from './results.js';

/** Gets the record of each request: `time`, `principal`, `method`, `uri`, `outcome` and more. */
export type AuditFunction = (entry: JsonObject) => void;

/** Calls `call` with each record. Returns a function that passes on pending records at once. */
export function audited(native: Server, call: AuditFunction, logger: Logger): () => void {
  const take = (): void => {
    for (const line of native.takeAuditRecords().split('\n')) {
      if (line !== '') attempt(call, JSON.parse(line), logger);
    }
  };
  native.watchAuditRecords(take);
  return take;
}

function attempt(call: AuditFunction, entry: JsonObject, logger: Logger): void {
  try {
    call(entry);
  } catch (error) {
    unrecorded(logger, error);
  }
}
