/** The end of a server by a signal or by the program. */
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Registers a function for the end by the program. Returns a function that removes it. */
export type Ending = (stop: () => void) => () => void;

/** Calls back at the first signal; the second ends the process at once. Returns a function that removes the handlers. */
export function onSignals(interrupt: () => void): () => void {
  for (const name of SIGNALS) process.once(name, interrupt);
  return () => {
    for (const name of SIGNALS) process.removeListener(name, interrupt);
  };
}

/** The end of serving, which `ending` or a signal causes: resolved with whether it was a signal. */
export async function until(ending: Ending): Promise<boolean> {
  let stop = (_isInterrupted: boolean): void => {};
  const stopped = new Promise<boolean>((resolve) => {
    stop = resolve;
  });
  const ends = [ending(() => stop(false)), onSignals(() => stop(true))];
  const isInterrupted = await stopped;
  for (const end of ends) end();
  return isInterrupted;
}

/**
 * Ends a process that was told to, or whose handlers did not hear that they were cancelled, if something would keep it
 * alive.
 */
export function exitAfter(milliseconds: number): void {
  setTimeout(() => process.exit(), milliseconds).unref();
}
