#!/usr/bin/env node
// The program `mcp-resources`: the native command, without the rest of the package.
import { binding } from './binding.js';

// Node's own handlers raise a signal again, so a second one that calls them would never end. Where the last listener is
// taken away, there is none.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  const listener = (): void => {};
  process.on(signal, listener);
  process.off(signal, listener);
}
process.exit(binding.main(['mcp-resources', ...process.argv.slice(2)]));
