/**
 * Modules that not every server needs, and what they import: each is loaded at its first use, so that a server on a pipe
 * starts sooner.
 */
export const late = {
  attach: () => require('./attach.js') as typeof import('./attach.js'),
  embeddedListens: () => require('./embedded-listens.js') as typeof import('./embedded-listens.js'),
  endpoint: () => require('./endpoint.js') as typeof import('./endpoint.js'),
  fetch: () => require('./fetch.js') as typeof import('./fetch.js'),
  http: () => require('./http.js') as typeof import('./http.js'),
  nodeHandler: () => require('./node-handler.js') as typeof import('./node-handler.js'),
  nodeHttp: () => require('node:http') as typeof import('node:http'),
  sdk: () => require('./sdk.js') as typeof import('./sdk.js'),
  stdio: () => require('./stdio.js') as typeof import('./stdio.js'),
  tools: () => require('./tools.js') as typeof import('./tools.js'),
  ui: () => require('./ui.js') as typeof import('./ui.js'),
};
