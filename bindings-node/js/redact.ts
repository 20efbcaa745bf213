/** Calls the `redact` function with contents that do not come from a handler. */
import { entries } from './answers.js';
import type { Entry } from './binding.js';
import { shown } from './check.js';
import type { Peers } from './driver.js';
import { failed } from './log.js';
import { Contents } from './results.js';

/** Makes the function that the compiled part calls with contents: it returns `null` on errors, and does not hold the server. */
export function redactor(
  peers: WeakRef<Peers>,
): (uri: string, contents: Entry[], driver: number | null, response: number | null) => Entry[] | null {
  return (uri, contents, driver, response) => {
    const own = peers.deref();
    if (own?.redact === undefined) return null;
    const scope = driver === null ? undefined : own.at(driver)?.scopeOf(response);
    const look = (entry: Entry): Contents => redacted(own, uri, entry);
    try {
      return entries(
        own,
        contents.map((entry) => (scope === undefined ? look(entry) : scope.runInAsyncScope(look, undefined, entry))),
        { name: 'redact', json: undefined },
      );
    } catch (error) {
      failed(own.logger, 'redact', uri, error);
      return null;
    }
  };
}

function redacted({ redact }: Peers, uri: string, { text, bytes, meta, ...about }: Entry): Contents {
  const own = new Contents(text ?? bytes, { ...about, meta: meta && JSON.parse(meta) });
  const passed: unknown = redact?.(own.uri ?? uri, own);
  if (passed instanceof Contents) return passed;
  throw new TypeError(`redact returned ${shown(passed)}, expected Contents`);
}
