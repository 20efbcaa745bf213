/** What a client needs and a server does not: loaded with the first client. */
export const lateClient = {
  stream: () => require('./client-stream.js') as typeof import('./client-stream.js'),
  wire: () => require('./client-wire.js') as typeof import('./client-wire.js'),
};
