// What the tests have in common: a server with a client in the same process, and what is written to stderr meanwhile.
import assert from 'node:assert/strict';
import { ResourceServer } from 'mcp-resources';
import { Client, ServerError } from 'mcp-resources/testing';

/**
 * A server of its own for a test.
 * @param {import('mcp-resources').ServerOptions} [options]
 */
export function server(options) {
  return new ResourceServer({ name: 'test', version: '1.0.0' }, options);
}

/**
 * Talks to a server, and ends the conversation.
 * @template T
 * @param {ResourceServer} to
 * @param {(client: Client) => Promise<T>} body
 * @param {import('mcp-resources/testing').ClientOptions} [options]
 * @returns {Promise<T>}
 */
export async function talk(to, body, options) {
  const client = await Client.connect(to, options);
  try {
    return await body(client);
  } finally {
    client.close();
  }
}

/** The contents of `a://b`, read by a handler. */
export async function read(handler, details = {}) {
  const made = server();
  made.resource('a://b', details, handler);
  return talk(made, (client) => client.read('a://b'));
}

/** The text of a resource. */
export function readText(from, uri) {
  return talk(from, (client) => client.readText(uri));
}

/** The error that a read is answered with. */
export function refusal(from, uri, options) {
  return talk(from, (client) => failure(client.read(uri)), options);
}

/** The error that a promise is rejected with: one of the server's. */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ServerError, String(error?.stack));
    return error;
  }
  return assert.fail('it was answered');
}

/** What is written to stderr while `body` runs. */
export async function heard(body) {
  const { write } = process.stderr;
  let text = '';
  process.stderr.write = (chunk) => {
    text += chunk;
    return true;
  };
  try {
    const result = await body();
    return { result, text };
  } finally {
    process.stderr.write = write;
  }
}
