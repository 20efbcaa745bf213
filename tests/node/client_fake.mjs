// A server over stdio that is not ours: it writes down what it is told, and misbehaves as its argument says.
// usage: client_fake.mjs modern|legacy|garbage|endless|silent
import { createInterface } from 'node:readline';

const [mode] = process.argv.slice(2);
const isModern = mode !== 'legacy';
const told = [];
const CAPABILITIES = { resources: { subscribe: true, listChanged: true } };
const HELLO = { capabilities: CAPABILITIES, serverInfo: { name: 'fake', version: '1' } };
const ODD = [null, 7, 'text', [], {}, { uri: 5, name: 'a' }, { name: 'no uri' }, { uri: null, name: 'b' }];

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function result(id, members) {
  send({ id, result: { ...(isModern && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }), ...members } });
}

function read(id, uri) {
  if (uri === 'told://all') result(id, { contents: [{ uri, text: JSON.stringify(told) }] });
  else if (uri === 'big://1') send({ id, error: { code: -32099, message: 'a\u0007b', data: { more: [1] } } });
  else if (uri === 'odd://1') result(id, { contents: 'none' });
  else if (uri === 'other://1')
    result(id, {
      contents: [
        { uri: 'secret://1', text: 'hidden' },
        { uri, text: 'shown' },
      ],
    });
  else if (uri.startsWith('text://')) result(id, { contents: [{ uri, text: 'here' }] });
  else send({ id, error: { code: isModern ? -32602 : -32002, message: 'gone', data: { uri } } });
}

function list(id, { cursor, _meta = {} }) {
  if (_meta.progressToken !== undefined) {
    send({
      method: 'notifications/progress',
      params: { progressToken: _meta.progressToken, progress: 1, message: cursor },
    });
  }
  if (mode === 'endless') result(id, { resources: [{ uri: `text://${id}`, name: 'a' }], nextCursor: `${id}` });
  else
    result(id, {
      resources: [...ODD, { uri: 'text://1', name: 'a', title: 9, size: 'big', _meta: [] }],
      nextCursor: cursor === undefined ? 'two' : undefined,
    });
}

function answer({ id, method, params = {} }) {
  told.push(method);
  if (mode === 'silent') return;
  if (mode === 'garbage')
    process.stdout.write(
      'starting…\n{"jsonrpc":\n[]\n\u0000\n{"jsonrpc":"2.0","id":999,"result":{}}\n{"jsonrpc":"2.0","method":"notifications/odd","params":[]}\n',
    );
  if (method === 'server/discover' && isModern) result(id, { supportedVersions: ['2026-07-28'], ...HELLO });
  else if (method === 'initialize') result(id, { protocolVersion: '2025-11-25', ...HELLO });
  else if (method === 'resources/read') read(id, params.uri);
  else if (method === 'resources/list') list(id, params);
  else if (method === 'resources/subscribe' || method === 'resources/unsubscribe') result(id, {});
  else if (method === 'subscriptions/listen') {
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
    send({
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta, notifications: params.notifications },
    });
  } else if (id !== undefined) send({ id, error: { code: -32601, message: 'no such method' } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method !== undefined) answer(message);
});
