import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { originOf, portHostOf, portOf } from '../../../src/ports/address.ts';
import { toClient, toPod, type Routing } from '../../../src/ports/headers.ts';
import { isCrossOrigin } from '../../../src/ports/host-pages.ts';
import { OpenStreams } from '../../../src/ports/open-streams.ts';
import { accessWhile } from '../../support/access.ts';
import { readAccessToken, signAccessToken, signingKey, type AccessToken } from '../../../src/ports/access-token.ts';

const UID = '0f7b3f3e-3c44-4b6e-9a51-5a1b9f8d2c10';
const CALL: Routing = { kind: 'path', prefix: '/api/v1/instances/i/proxy/8080', port: 8080 };
const HOST: Routing = { kind: 'host' };
const SENDER = { address: '192.0.2.7', protocol: 'https' } as const;

function request(headers: Record<string, string>, method = 'GET'): IncomingMessage {
  const headersDistinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  return { method, headers, headersDistinct } as unknown as IncomingMessage;
}

describe('hosts of ports', () => {
  const base = new URL('https://apps.example.com:8443');

  it('are read as they are made, in any case, with any port and with a dot at the end', () => {
    const origin = new URL(originOf({ port: 7860, uid: UID }, base));
    expect(origin.origin).toBe(`https://7860-${UID}.apps.example.com:8443`);
    for (const host of [origin.host, origin.hostname.toUpperCase(), `${origin.hostname}.`, `${origin.hostname}:1`]) {
      expect(portHostOf(host, base)).toEqual({ port: 7860, uid: UID });
    }
  });

  it.each([
    undefined,
    '',
    'apps.example.com',
    `7860-${UID}`,
    `7860-${UID}.apps.example.com.evil.test`,
    `7860-${UID}.xapps.example.com`,
    `0-${UID}.apps.example.com`,
    `70000-${UID}.apps.example.com`,
    `x.7860-${UID}.apps.example.com`,
  ])('%s is none', (host) => expect(portHostOf(host, base)).toBeUndefined());

  it.each(['0', '08', '65536', '-1', '1e3', ' 80', '80a', ''])('%j is no port', (text) =>
    expect(portOf(text)).toBeUndefined(),
  );
});

describe('access tokens', () => {
  const key = signingKey(randomBytes(32));
  const about = { namespace: 't', instance: 'i', uid: UID, port: 8080, keyId: 'k', path: '/' };
  const token: AccessToken = { kind: 'ticket', id: 'a', ...about, expires: 1000 };
  const text = signAccessToken(token, key);

  it('are good for what they say, until they are over', () => {
    expect(readAccessToken(text, { key, kind: 'ticket', now: 999 })).toEqual(token);
    expect(readAccessToken(text, { key, kind: 'ticket', now: 1000 })).toBeUndefined();
    expect(readAccessToken(text, { key, kind: 'cookie', now: 0 })).toBeUndefined();
    expect(readAccessToken(text, { key: signingKey(randomBytes(32)), kind: 'ticket', now: 0 })).toBeUndefined();
  });

  it('are nothing when what they say was changed, or for any other text', () => {
    const [payload = '', mac = ''] = text.split('.');
    fc.assert(
      fc.property(fc.nat(payload.length - 1), fc.constantFrom('A', 'b', '9', '_'), (at, by) => {
        const other = payload.slice(0, at) + by + payload.slice(at + 1);
        fc.pre(other !== payload);
        expect(readAccessToken(`${other}.${mac}`, { key, kind: 'ticket', now: 0 })).toBeUndefined();
      }),
    );
    fc.assert(
      fc.property(fc.string(), (other) => {
        expect(readAccessToken(other, { key, kind: 'ticket', now: 0 })).toBeUndefined();
      }),
    );
  });
});

describe('what the pod gets', () => {
  const all = {
    host: 'berth.example.com',
    authorization: 'Bearer berth_secret',
    'x-api-key': 'berth_secret',
    cookie: 'berth_session=secret; mine=1; __Host-berth_port=secret; berth_port=secret',
    connection: 'close, X-Secret',
    'x-secret': 'hop',
    te: 'trailers',
    'proxy-authorization': 'Basic x',
    'x-forwarded-for': '10.0.0.1',
    forwarded: 'for=10.0.0.1',
    origin: 'https://berth.example.com',
    accept: 'text/html',
  };

  it('is never a credential of Berth, nor what belongs to the connection', () => {
    for (const routing of [CALL, HOST]) {
      const headers = toPod(request(all), routing, SENDER);
      expect(JSON.stringify(headers)).not.toContain('secret');
      expect(headers).toMatchObject({ cookie: 'mine=1', accept: 'text/html', 'x-forwarded-for': '192.0.2.7' });
      for (const name of ['connection', 'x-secret', 'te', 'proxy-authorization', 'forwarded', 'authorization']) {
        expect(headers).not.toHaveProperty(name);
      }
    }
  });

  it('is the credential of a page on its own host, and none in a call', () => {
    const own = { ...all, authorization: 'Bearer eyJ' };
    expect(toPod(request(own), HOST, SENDER)['authorization']).toBe('Bearer eyJ');
    expect(toPod(request(own), CALL, SENDER)).not.toHaveProperty('authorization');
  });

  it('says where it was asked', () => {
    expect(toPod(request(all), CALL, SENDER)).toMatchObject({
      host: 'localhost:8080',
      'x-forwarded-host': 'berth.example.com',
      'x-forwarded-prefix': '/api/v1/instances/i/proxy/8080',
    });
    expect(toPod(request(all), HOST, SENDER)).toMatchObject({ host: 'berth.example.com', origin: all.origin });
  });
});

describe('what the client gets', () => {
  it('cannot act on the origin of Berth', () => {
    const headers = {
      'content-type': ['text/html'],
      'content-security-policy': ['script-src *'],
      'access-control-allow-origin': ['https://evil.test'],
      'access-control-allow-credentials': ['true'],
      'clear-site-data': ['"*"'],
      'set-cookie': ['berth_session=forged', 'mine=1'],
      'service-worker-allowed': ['/'],
      'strict-transport-security': ['max-age=1'],
      connection: ['x-hop'],
      'x-hop': ['1'],
    };
    expect(toClient(headers, CALL)).toEqual({
      'content-type': 'text/html',
      'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    });
  });

  it.each([
    ['/lab?x=1#y', '/api/v1/instances/i/proxy/8080/lab?x=1#y'],
    ['http://localhost:8080/lab', '/api/v1/instances/i/proxy/8080/lab'],
    ['tree', 'tree'],
    ['https://evil.test/', undefined],
    ['//evil.test/', undefined],
    ['/\\evil.test/', undefined],
    // Relative on a page of http, and another host on one of https.
    ['http:evil.test/', undefined],
    ['HTTP:evil.test/', undefined],
    ['\\lab', '/api/v1/instances/i/proxy/8080/lab'],
    ['data:text/html,x', undefined],
    ['http://localhost:9/', undefined],
  ])('is never sent elsewhere by a call: %s', (location, expected) => {
    expect(toClient({ location: [location] }, CALL)['location']).toBe(expected);
  });

  it('is for no page of another host, unless the pod says so', () => {
    expect(toClient({}, HOST)['cross-origin-resource-policy']).toBe('same-origin');
    const own = { 'cross-origin-resource-policy': ['cross-origin'] };
    expect(toClient(own, HOST)['cross-origin-resource-policy']).toBe('cross-origin');
  });

  it('keeps the cookies of the page on its host, and none that looks like ours', () => {
    const cookies = ['a=1; Domain=apps.example.com; Path=/', 'berth_port=x', ' __Host-berth_port=x', 'b=2'];
    expect(toClient({ 'set-cookie': cookies }, HOST)['set-cookie']).toEqual(['a=1; Path=/', 'b=2']);
  });
});

describe('who asked for it', () => {
  const host = 'p.localhost:8080';
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  it.each([
    [{}, 'GET', false],
    [{ 'sec-fetch-site': 'same-origin' }, 'POST', false],
    [{ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, 'GET', false],
    [link, 'GET', false],
    [link, 'POST', true],
    [{ ...link, 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'iframe' }, 'GET', true],
    [{ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }, 'GET', true],
    [{ origin: 'http://p.localhost:8080' }, 'POST', false],
    [{ origin: 'http://q.localhost:8080' }, 'GET', true],
    [{ origin: 'null' }, 'POST', true],
    // Over plain HTTP browsers do not say the site, and Origin alone with what can write.
    [{}, 'DELETE', true],
  ])('%j %s is from elsewhere: %s', (headers, method, expected) => {
    expect(isCrossOrigin(request({ host, ...headers }, method))).toBe(expected);
  });
});

describe('open streams', () => {
  it('are bounded for each pod, and end with the key of their user', async () => {
    const good = new Set(['a', 'b']);
    const { access, recheck } = accessWhile(({ keyId }) => (good.has(keyId) ? undefined : 'It is over.'));
    const streams = new OpenStreams(access);
    const open = Array.from({ length: 128 }, () => streams.open({ keyId: 'a', namespace: 't' }, 'pod'));
    expect(() => streams.open({ keyId: 'b', namespace: 't' }, 'pod')).toThrow(/128 connections/);
    const other = streams.open({ keyId: 'b', namespace: 't' }, 'other');
    open[0]?.close();
    open[0]?.close();
    const last = streams.open({ keyId: 'a', namespace: 't' }, 'pod');
    good.delete('a');
    await recheck();
    expect([last.signal.aborted, other.signal.aborted]).toEqual([true, false]);
  });
});
