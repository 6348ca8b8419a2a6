import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BodyTooLargeError, OverloadedError, readBody } from '../../../src/gateway/calls/read-body.ts';
import { BodyShares, type BodyHold } from '../../../src/gateway/limits/body-shares.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { countNames, countStructure, isClosed } from '../../../src/lib/json-structure.ts';

const MIB = 2 ** 20;

/** Sends a body to the reader, whose end the caller waits for. */
function begin(bodies: BodyShares, { tenant = 'a', most = 512 * MIB } = {}) {
  const request = Object.assign(new PassThrough(), { headers: {} });
  const hold = bodies.hold(tenant, most);
  const clock = fakeClock();
  const reading = { limit: 32 * MIB, hold, clock };
  return { request, hold, clock, answer: readBody(request as unknown as IncomingMessage, reading) };
}

async function read(body: string, bodies: BodyShares, owner?: { tenant?: string; most?: number }): Promise<BodyHold> {
  const { request, hold, answer } = begin(bodies, owner);
  request.end(body);
  await answer;
  return hold;
}

/** Whether nothing is held. */
function isWhole(bodies: BodyShares, max: number): boolean {
  const hold = bodies.hold('nobody', max);
  const all = hold.take(max) === 'taken';
  hold.release();
  return all;
}

it('counts objects, arrays and commas outside strings', () => {
  const structures = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 0;
    const values = Object.values(value);
    return values.reduce<number>((sum, each) => sum + structures(each), Math.max(values.length, 1));
  };
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(countStructure(Buffer.from(JSON.stringify(value)), 1e6)).toBe(structures(value));
    }),
  );
  // Strings longer than the part that is read byte by byte, with quotes and backslashes at every place.
  const piece = fc.constantFrom('"', '\\', ',', '{', 'x'.repeat(30), 'ü');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 300 }), (pieces) => {
      const text = JSON.stringify([pieces.join(''), pieces.join('')]);
      expect(countStructure(Buffer.from(text), 1e6)).toBe(2);
    }),
  );
});

it('tells a whole JSON text from every start of it', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (value, nat) => {
      const json = Buffer.from(JSON.stringify(value));
      expect([isClosed(json), isClosed(json.subarray(0, 1 + (nat % (json.length - 1))))]).toEqual([true, false]);
    }),
  );
});

it('stops counting at the limit, and survives what is not JSON', () => {
  expect(countStructure(Buffer.from('[[[[['), 3)).toBe(4);
  expect(countStructure(Buffer.from(`["${'x'.repeat(100)}`), 9)).toBe(1);
  expect(countStructure(Buffer.from(`["${'x'.repeat(61)}\\`), 9)).toBe(1);
});

it('counts the different names of members', () => {
  const names = (value: unknown): string[] =>
    typeof value !== 'object' || value === null
      ? []
      : [...(Array.isArray(value) ? [] : Object.keys(value)), ...Object.values(value).flatMap(names)];
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const different = new Set(names(value).map((name) => JSON.stringify(name))).size;
      const count = countNames(Buffer.from(JSON.stringify(value, undefined, 1)), 1e6);
      // Two names may share a hash.
      expect(count).toBeLessThanOrEqual(different);
      expect(count).toBeGreaterThanOrEqual(different - 1);
    }),
  );
  const many = Array.from({ length: 30_000 }, (_, at) => `"name of ${at}":1`).join(',');
  expect(countNames(Buffer.from(`{${many}}`), 1e6)).toBeGreaterThan(29_000);
  expect(countNames(Buffer.from(`{${many}}`), 20_000)).toBe(20_001);
});

it('refuses a body of very many different names before it is parsed, and takes one of few that come often', async () => {
  const bodies = new BodyShares(64 * MIB);
  const objects = (name: (at: number) => string) =>
    `{"model":"m","x":[${Array.from({ length: 30_000 }, (_, at) => `{"${name(at)}":"a"}`).join(',')}]}`;
  await expect(
    read(
      objects((at) => `n${at}`),
      bodies,
    ),
  ).rejects.toThrow('more than 20000 different names');
  expect(isWhole(bodies, 64 * MIB)).toBe(true);
  await read(
    objects((at) => `n${at % 10_000}`),
    bodies,
  );
});

it('refuses a body of millions of tiny objects before it is parsed, and holds nothing of it', async () => {
  const bodies = new BodyShares(64 * MIB);
  const body = `{"model":"m","x":[${'{},'.repeat(10 * MIB)}{}]}`;
  const refused = await read(body, bodies).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(BodyTooLargeError);
  expect((refused as Error).message).toContain('more than 500000 objects, arrays and commas');
  expect(isWhole(bodies, 64 * MIB)).toBe(true);
});

it('takes what a body needs when it is parsed', async () => {
  const bodies = new BodyShares(64 * MIB);
  const body = `[${'{},'.repeat(200_000)}{}]`;
  const hold = await read(body, bodies);
  expect(hold.held).toBe(body.length + 64 * 400_002);
  // What one tenant may hold is what is free for others.
  await expect(read(body, bodies)).rejects.toBeInstanceOf(OverloadedError);
  const second = await read(body, bodies, { tenant: 'b' });
  await expect(read(body, bodies, { tenant: 'c' })).rejects.toBeInstanceOf(OverloadedError);
  hold.release();
  second.release();
  // A second release gives nothing back twice.
  hold.release();
  expect(isWhole(bodies, 64 * MIB)).toBe(true);
});

it('takes the length alone of a body of ordinary length, until much is held', async () => {
  const bodies = new BodyShares(64 * MIB);
  const body = `[${'{},'.repeat(1000)}{}]`;
  expect((await read(body, bodies)).held).toBe(body.length);
  bodies.hold('b', 64 * MIB).take(16 * MIB);
  expect((await read(body, bodies)).held).toBe(body.length + 64 * 2002);
});

it('holds for a tenant no more than its share, and says who can raise it', async () => {
  const bodies = new BodyShares(64 * MIB);
  const share = { tenant: 'a', most: 2 * MIB };
  await read('x'.repeat(MIB), bodies, share);
  const refused = await read('x'.repeat(MIB), bodies, share).catch((error: unknown) => error);
  expect(refused).toMatchObject({ name: 'LimitError', limit: 'http.bodyMib' });
  expect((refused as Error).message).toMatch(/2 MiB.*operator.*http\.bodyMib.*TenantPolicy/);
  await expect(read('x'.repeat(3 * MIB), bodies, share)).rejects.toBeInstanceOf(BodyTooLargeError);
  await expect(read('x'.repeat(8 * MIB), bodies, { tenant: 'b', most: 16 * MIB })).resolves.toBeDefined();
});

it('counts the pieces of a body that comes byte by byte, and frees them at its end', async () => {
  const bodies = new BodyShares(64 * MIB);
  const { request, hold, answer } = begin(bodies);
  for (let count = 0; count < 1000; count += 1) request.write('1');
  await settle();
  expect(hold.held).toBeGreaterThan(100_000);
  request.end();
  await answer;
  expect(hold.held).toBe(1000);
});

it('cuts a body that stalls, and gives its bytes back', async () => {
  const bodies = new BodyShares(64 * MIB);
  const { request, clock, answer } = begin(bodies);
  const refused = answer.catch((error: unknown) => error);
  request.write('x'.repeat(16 * MIB));
  await clock.advance(9_999);
  expect(isWhole(bodies, 64 * MIB)).toBe(false);
  await clock.advance(1);
  expect(await refused).toMatchObject({ name: 'DialectError', status: 408 });
  expect(isWhole(bodies, 64 * MIB)).toBe(true);
  expect(clock.pending).toBe(0);
});

it.each([
  ['drips a byte every second', 1, 1000, 12_000],
  ['sends 32 KiB every second', 32_768, 1000, 21_000],
  ['sends 256 KiB every 9 s', 262_144, 9000, 20_000],
])('cuts a client that %s', async (_name, bytes, every, latest) => {
  const { request, clock, answer } = begin(new BodyShares(64 * MIB));
  const refused = answer.catch((error: unknown) => error);
  for (let at = 0; at < latest; at += every) {
    request.write('x'.repeat(bytes));
    await clock.advance(every);
  }
  expect(await refused).toMatchObject({ status: 408 });
});

it('cuts every body after 55 s, and reads one at 600 KiB per second to its end before', async () => {
  const endless = begin(new BodyShares(64 * MIB));
  const refused = endless.answer.catch((error: unknown) => error);
  for (let second = 0; second < 55; second += 1) {
    endless.request.write('x'.repeat(100_000));
    await endless.clock.advance(1000);
  }
  expect(await refused).toMatchObject({ status: 408 });
  const honest = begin(new BodyShares(64 * MIB));
  for (let second = 0; second < 50; second += 1) {
    honest.request.write('x'.repeat(600_000));
    await honest.clock.advance(1000);
  }
  honest.request.end();
  expect(await honest.answer).toHaveLength(30_000_000);
  expect(honest.clock.pending).toBe(0);
});
