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

/** The end of serving: `stop` causes it, as `ending` and, with `signals`, a signal do. `stopping` is whether a signal did. */
export function until(
  ending: Ending,
  signals: boolean,
): { readonly stopping: Promise<boolean>; readonly stop: () => void } {
  let stop = (): void => {};
  let interrupt = (): void => {};
  const stopped = new Promise<boolean>((resolve) => {
    stop = () => resolve(false);
    interrupt = () => resolve(true);
  });
  const ends = [ending(stop), ...(signals ? [onSignals(interrupt)] : [])];
  const stopping = stopped.finally(() => {
    for (const end of ends) end();
  });
  return { stopping, stop };
}

/**
 * Ends a process that was told to, or whose handlers did not hear that they were cancelled, if something would keep it
 * alive.
 */
export function exitAfter(milliseconds: number): void {
  setTimeout(() => process.exit(), milliseconds).unref();
}
