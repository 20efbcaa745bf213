// Bearer tokens: what verifiers give, how long it is kept, and the core's own verifiers.
import assert from 'node:assert/strict';
import { createHmac, createPrivateKey, sign } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { get } from 'node:https';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { InvalidTokenError, JwtVerifier, RegistrationError, StaticTokens } from 'mcp-resources';
import { heard, server } from './helpers.mjs';
import { answer, messages, next, WAYS } from './web.mjs';

const keyFile = (name) => fileURLToPath(new URL(`../rust/src/sockets/keys/${name}`, import.meta.url));
const SIGNER = createPrivateKey(readFileSync(keyFile('signer.pem')));
const JWKS = JSON.parse(readFileSync(keyFile('jwks.json'), 'utf8'));
const RESOURCE = 'http://localhost/mcp';
const ISSUER = 'https://id.example.com';

/** Reads `me://x` with a token: the status, and what the handler was told. */
async function ask(caller, token) {
  const response = await caller.send('resources/read', { uri: 'me://x' }, { token });
  const told = await answer(response);
  return [response.status, response.status === 200 ? JSON.parse(told.result.contents[0].text) : undefined];
}

function me() {
  const made = server();
  const told = ({ principal, scopes, claims }) => JSON.stringify({ principal, scopes, claims });
  made.resource('me://x', (_, ctx) => told(ctx));
  return made;
}

function auth(verify, more = {}) {
  return { auth: { resource: RESOURCE, authorizationServers: [ISSUER], verify, ...more } };
}

const seconds = () => Date.now() / 1000;
const base64 = (text) => Buffer.from(text).toString('base64url');

/** A token with what a good one has, changed. */
function token(header = {}, claims = {}) {
  const good = { sub: 'ada', iss: ISSUER, aud: RESOURCE, exp: seconds() + 600, scope: 'a b' };
  return signed(JSON.stringify({ alg: 'ES256', kid: 'test', ...header }), { ...good, ...claims });
}

function signed(header, claims) {
  const message = `${base64(header)}.${base64(JSON.stringify(claims))}`;
  const signature = sign('sha256', Buffer.from(message), { key: SIGNER, dsaEncoding: 'ieee-p1363' });
  return `${message}.${signature.toString('base64url')}`;
}

/** The claims of a good token under a header of its own, signed with a secret or not at all. */
function forged(header, secret) {
  const message = `${base64(JSON.stringify(header))}.${token().split('.')[1]}`;
  return `${message}.${secret ? createHmac('sha256', secret).update(message).digest('base64url') : ''}`;
}

for (const [way, serving] of Object.entries(WAYS)) {
  test(`${way}: a verified token is kept until it expires (R-202)`, async () => {
    const asked = [];
    const verify = (given) => {
      asked.push(given);
      return { subject: given, expires: { kept: seconds() + 60, past: seconds() - 1 }[given] };
    };
    await serving(me(), auth(verify), async (caller) => {
      const statuses = [];
      for (const given of ['kept', 'kept', 'once', 'once', 'past']) statuses.push((await ask(caller, given))[0]);
      assert.deepEqual(statuses, [200, 200, 200, 200, 401]);
    });
    assert.deepEqual(asked, ['kept', 'once', 'once', 'past']);
  });

  test(`${way}: a revoked subject is verified again (R-202)`, async () => {
    const [asked, withdrawn, made] = [[], new Set(), me()];
    const verify = (given) => {
      asked.push(given);
      if (withdrawn.has(given)) throw new InvalidTokenError();
      return { subject: given, expires: seconds() + 60 };
    };
    await serving(made, auth(verify), async (caller) => {
      for (const given of ['eve', 'bob', 'eve', 'bob']) assert.equal((await ask(caller, given))[0], 200, given);
      withdrawn.add('eve');
      made.revoke('eve');
      assert.equal((await ask(caller, 'eve'))[0], 401);
      assert.equal((await ask(caller, 'bob'))[0], 200);
    });
    assert.deepEqual(asked, ['eve', 'bob', 'eve']);
  });

  test(`${way}: what a verifier gives is checked`, async () => {
    const bad = {
      number: [{ subject: 'ada', scopes: ['a', 7] }, /item 1 is of type number/],
      object: [{ subject: 'ada', scopes: {} }, /expected a list of strings, and not of type object/],
      none: [undefined, /verify returned of type undefined/],
      subject: [{ subject: 7 }, /the subject of a verified token is of type number/],
      expires: [{ subject: 'ada', expires: Number.NaN }, /expires of a verified token is NaN/],
    };
    const good = {
      text: { subject: 'ada', scopes: ' a  b ' },
      odd: { subject: 'ada', scopes: ['a b', 'c', ''], claims: { org: 'x', n: [1] } },
    };
    const options = auth((given) => good[given] ?? bad[given][0], { impliedScopes: [['c', 'd']] });
    await serving(me(), options, async (caller) => {
      assert.deepEqual(await ask(caller, 'text'), [200, { principal: 'ada', scopes: ['a', 'b'] }]);
      const odd = { principal: 'ada', scopes: ['c', 'd'], claims: { org: 'x', n: [1] } };
      assert.deepEqual(await ask(caller, 'odd'), [200, odd]);
      for (const [given, [, message]] of Object.entries(bad)) {
        const { text } = await heard(async () => assert.equal((await ask(caller, given))[0], 503, given));
        assert.match(text, message);
      }
    });
  });

  test(`${way}: static tokens`, async () => {
    const tokens = {
      t0ken: { subject: 'ada', scopes: 'a b', claims: { org: 'x' } },
      old: { subject: 'bob', expires: seconds() - 1 },
    };
    const verifier = new StaticTokens(tokens);
    await serving(me(), auth(verifier, { requiredScopes: ['a'] }), async (caller) => {
      const told = { principal: 'ada', scopes: ['a', 'b'], claims: { org: 'x' } };
      assert.deepEqual(await ask(caller, 't0ken'), [200, told]);
      for (const bad of ['t0ke', 't0ken1', 'T0KEN', 'old']) assert.equal((await ask(caller, bad))[0], 401, bad);
    });
    assert.deepEqual((await verifier.verify('t0ken')).scopes, ['a', 'b']);
    await assert.rejects(verifier.verify('x'), InvalidTokenError);
  });

  test(`${way}: neither a header nor an algorithm of a token's own is believed (R-202)`, async () => {
    const verifier = new JwtVerifier({ issuer: ISSUER, audience: [RESOURCE, 'other'], keys: JWKS });
    const claims = JSON.parse(Buffer.from(token().split('.')[1], 'base64url').toString());
    const bad = [
      forged({ alg: 'HS256', kid: 'test' }, JSON.stringify(JWKS)),
      forged({ alg: 'HS256', kid: 'test' }, JWKS.keys[0].x),
      forged({ alg: 'none' }),
      forged({ alg: 'ES256', kid: 'test' }),
      signed('{"alg":"ES256","kid":"other","kid":"test"}', claims),
      token({ kid: 'other' }),
      token({ crit: ['exp'] }),
      token({ typ: 'dpop+jwt' }),
      token({}, { aud: ['http://localhost/elsewhere'] }),
      token({}, { iss: 'https://evil.example.com' }),
      token({}, { exp: seconds() - 61.5 }),
      token({}, { nbf: seconds() + 90 }),
      token({}, { sub: '' }),
      'garbage',
    ];
    await serving(me(), auth(verifier), async (caller) => {
      const [status, told] = await ask(caller, token({ typ: 'at+jwt' }, { aud: ['x', RESOURCE] }));
      assert.deepEqual([status, told.principal, told.scopes, told.claims.iss], [200, 'ada', ['a', 'b'], ISSUER]);
      assert.equal((await ask(caller, token({}, { aud: 'other' })))[0], 200);
      for (const one of bad) assert.equal((await ask(caller, one))[0], 401, one);
    });
  });

  test(`${way}: a listen ends with its token (R-202)`, async () => {
    const made = me();
    made.resource('note://a', () => 'x');
    const verify = () => ({ subject: 'ada', expires: seconds() + 1 });
    await serving(made, auth(verify), async (caller) => {
      const notifications = { resourceSubscriptions: ['note://a'] };
      const listen = messages(await caller.send('subscriptions/listen', { notifications }, { token: 't' }));
      assert.equal((await next(listen)).method, 'notifications/subscriptions/acknowledged');
      assert.ok((await next(listen)).result);
      assert.ok((await listen.next()).done);
    });
  });

  test(`${way}: the keys of an issuer are fetched`, async () => {
    const asked = [];
    const issuer = createServer((request, response) => {
      asked.push(request.url);
      response.writeHead(request.url === '/keys' ? 200 : 503).end(JSON.stringify(JWKS));
    }).listen(0, '127.0.0.1');
    await once(issuer, 'listening');
    const url = `http://127.0.0.1:${issuer.address().port}`;
    const verifier = (path) => new JwtVerifier({ issuer: ISSUER, audience: RESOURCE, jwksUrl: `${url}/${path}` });
    try {
      await serving(me(), auth(verifier('keys')), async (caller) => {
        const many = [...Array(8).keys()].map((jti) => ask(caller, token({}, { jti })));
        assert.deepEqual(
          (await Promise.all(many)).map(([status]) => status),
          Array(8).fill(200),
        );
        assert.equal((await ask(caller, token({ kid: 'invented' })))[0], 401);
      });
      assert.deepEqual(asked, ['/keys']);
      await serving(me(), auth(verifier('none')), async (caller) => assert.equal((await ask(caller, token()))[0], 503));
    } finally {
      issuer.close();
    }
  });
}

test('what a verifier cannot use', () => {
  const make = (options) => () => new JwtVerifier({ issuer: ISSUER, audience: RESOURCE, ...options });
  for (const [options, message] of [
    [{}, /give keys or jwksUrl/],
    [{ keys: JWKS, jwksUrl: 'https://x' }, /give keys or jwksUrl/],
    [{ keys: { keys: [] } }, /none for signatures/],
    [{ keys: '{' }, /the keys cannot be used/],
    [{ jwksUrl: 'http://id.example.com/keys' }, /must begin with https:/],
    [{ keys: JWKS, algorithms: ['HS256'] }, /unexpected algorithm "HS256"; expected one of RS256/],
    [{ keys: JWKS, algorithms: [] }, /no algorithm is named/],
    [{ keys: JWKS, algorithms: 'ES256' }, /algorithms: expected a list of strings, such as \["ES256"\]/],
  ]) {
    assert.throws(make(options), { name: 'TypeError', message });
  }
  assert.throws(() => new StaticTokens({ 'a secret': { subject: 'ada' } }), /tokens: expected each to be made of/);
});

test('options that are no lists', () => {
  const verify = new StaticTokens({});
  for (const [more, message] of [
    [{ authorizationServers: ISSUER }, /authorizationServers: expected a list of strings, such as \["https:/],
    [{ requiredScopes: 'a b' }, /requiredScopes: expected a list of strings/],
    [{ scopesSupported: ['a', 7] }, /scopesSupported: expected a list of strings; item 1 is of type number/],
  ]) {
    assert.throws(() => server().nodeHandler(auth(verify, more)), { name: 'TypeError', message });
  }
  for (const scopes of ['a b', 7, ['a', 7]]) {
    assert.throws(
      () => server().resource('x://{y}', { scopes }, () => ''),
      /scopes is .*, expected an array of strings/,
    );
  }
});

test('a limit that is none', () => {
  for (const value of [-1, 1.5, Number.NaN, 2 ** 60, '1', null, true]) {
    const shown = typeof value === 'string' ? `"${value}"` : value;
    const message = `the limit "message" is ${shown}; expected a whole number from 0 to 9007199254740991`;
    assert.throws(() => server({ limits: { message: value } }), { name: 'RangeError', message });
  }
});

test('TLS', async () => {
  const tls = { cert: keyFile('certificate.pem'), key: keyFile('tls.pem') };
  await WAYS.run(server(), { tls, health: '/health' }, async ({ url }) => {
    assert.match(url, /^https:/);
    const request = get(url.replace('/mcp', '/health'), { ca: readFileSync(tls.cert), agent: false });
    const [response] = await once(request, 'response');
    assert.equal((await response.toArray()).join(''), 'ok\n');
  });
  for (const [wrong, message] of [
    [{ ...tls, key: keyFile('none.pem') }, /none\.pem: expected a private key in PEM/],
    [{ ...tls, cert: tls.key }, /tls\.pem: expected certificates in PEM/],
    [{ ...tls, key: keyFile('signer.pem') }, /signer\.pem: expected the private key of the certificate/],
  ]) {
    const ended = server().run({ http: { port: 0, tls: wrong } });
    await assert.rejects(ended, (error) => error instanceof RegistrationError && message.test(error.message));
  }
  await assert.rejects(server().run({ http: { port: 0, tls: { cert: tls.cert } } }), TypeError);
});
