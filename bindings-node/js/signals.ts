/** The end of a server that was told to end: by a signal, or by the program. */
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Has a function called when the program ends the server; returns what takes that back. */
export type Ending = (stop: () => void) => () => void;

/** Calls back at the first signal; the second ends the process at once. Returns what takes that back. */
export function onSignals(interrupt: () => void): () => void {
  for (const name of SIGNALS) process.once(name, interrupt);
  return () => {
    for (const name of SIGNALS) process.removeListener(name, interrupt);
  };
}

/**
 * Ends a process that was told to, or whose handlers did not hear that they were cancelled, if something would keep it
 * alive.
 */
export function exitAfter(milliseconds: number): void {
  setTimeout(() => process.exit(), milliseconds).unref();
}
