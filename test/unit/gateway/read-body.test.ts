import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BodyTooLargeError, OverloadedError, readBody } from '../../../src/gateway/calls/read-body.ts';
import { BodyBudget, type BodyHold } from '../../../src/gateway/limits/body-budget.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { countStructure } from '../../../src/gateway/calls/json-structure.ts';

const MIB = 2 ** 20;

/** Sends a body to the reader, whose end the caller waits for. */
function begin(budget: BodyBudget, { tenant = 'a', most = 512 * MIB } = {}) {
  const request = Object.assign(new PassThrough(), { headers: {} });
  const hold = budget.hold(tenant, most);
  const clock = fakeClock();
  const reading = { limit: 32 * MIB, hold, clock };
  return { request, hold, clock, answer: readBody(request as unknown as IncomingMessage, reading) };
}

async function read(body: string, budget: BodyBudget, owner?: { tenant?: string; most?: number }): Promise<BodyHold> {
  const { request, hold, answer } = begin(budget, owner);
  request.end(body);
  await answer;
  return hold;
}

/** Whether the budget holds nothing. */
function isWhole(budget: BodyBudget, max: number): boolean {
  const hold = budget.hold('nobody', max);
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

it('stops counting at the limit, and survives what is not JSON', () => {
  expect(countStructure(Buffer.from('[[[[['), 3)).toBe(4);
  expect(countStructure(Buffer.from(`["${'x'.repeat(100)}`), 9)).toBe(1);
  expect(countStructure(Buffer.from(`["${'x'.repeat(61)}\\`), 9)).toBe(1);
});

it('refuses a body of millions of tiny objects before it is parsed, and holds nothing of it', async () => {
  const budget = new BodyBudget(64 * MIB);
  const body = `{"model":"m","x":[${'{},'.repeat(10 * MIB)}{}]}`;
  const refused = await read(body, budget).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(BodyTooLargeError);
  expect((refused as Error).message).toContain('more than 500000 objects, arrays and commas');
  expect(isWhole(budget, 64 * MIB)).toBe(true);
});

it('takes from the budget what a body needs when it is parsed', async () => {
  const budget = new BodyBudget(64 * MIB);
  const body = `[${'{},'.repeat(200_000)}{}]`;
  const hold = await read(body, budget);
  expect(hold.held).toBe(body.length + 64 * 400_002);
  const second = await read(body, budget);
  await expect(read(body, budget)).rejects.toBeInstanceOf(OverloadedError);
  hold.release();
  second.release();
  // A second release gives nothing back twice.
  hold.release();
  expect(isWhole(budget, 64 * MIB)).toBe(true);
});

it('takes the length alone of a body of ordinary length, until much is held', async () => {
  const budget = new BodyBudget(64 * MIB);
  const body = `[${'{},'.repeat(1000)}{}]`;
  expect((await read(body, budget)).held).toBe(body.length);
  budget.hold('b', 64 * MIB).take(16 * MIB);
  expect((await read(body, budget)).held).toBe(body.length + 64 * 2002);
});

it('holds for a tenant no more than its share, and says who can raise it', async () => {
  const budget = new BodyBudget(64 * MIB);
  const share = { tenant: 'a', most: 2 * MIB };
  await read('x'.repeat(MIB), budget, share);
  const refused = await read('x'.repeat(MIB), budget, share).catch((error: unknown) => error);
  expect(refused).toMatchObject({ name: 'LimitError', limit: 'http.bodyMib' });
  expect((refused as Error).message).toMatch(/2 MiB.*operator.*http\.bodyMib.*TenantPolicy/);
  await expect(read('x'.repeat(3 * MIB), budget, share)).rejects.toBeInstanceOf(BodyTooLargeError);
  await expect(read('x'.repeat(8 * MIB), budget, { tenant: 'b', most: 16 * MIB })).resolves.toBeDefined();
});

it('counts the pieces of a body that comes byte by byte, and frees them at its end', async () => {
  const budget = new BodyBudget(64 * MIB);
  const { request, hold, answer } = begin(budget);
  for (let count = 0; count < 1000; count += 1) request.write('1');
  await settle();
  expect(hold.held).toBeGreaterThan(100_000);
  request.end();
  await answer;
  expect(hold.held).toBe(1000);
});

it('cuts a body that stalls, and gives its bytes back', async () => {
  const budget = new BodyBudget(64 * MIB);
  const { request, clock, answer } = begin(budget);
  const refused = answer.catch((error: unknown) => error);
  request.write('x'.repeat(16 * MIB));
  await clock.advance(9_999);
  expect(isWhole(budget, 64 * MIB)).toBe(false);
  await clock.advance(1);
  expect(await refused).toMatchObject({ name: 'DialectError', status: 408 });
  expect(isWhole(budget, 64 * MIB)).toBe(true);
  expect(clock.pending).toBe(0);
});

it.each([
  ['drips a byte every second', 1, 1000, 12_000],
  ['sends 32 KiB every second', 32_768, 1000, 21_000],
  ['sends 256 KiB every 9 s', 262_144, 9000, 20_000],
])('cuts a client that %s', async (_name, bytes, every, latest) => {
  const { request, clock, answer } = begin(new BodyBudget(64 * MIB));
  const refused = answer.catch((error: unknown) => error);
  for (let at = 0; at < latest; at += every) {
    request.write('x'.repeat(bytes));
    await clock.advance(every);
  }
  expect(await refused).toMatchObject({ status: 408 });
});

it('cuts every body after 55 s, and reads one at 600 KiB per second to its end before', async () => {
  const endless = begin(new BodyBudget(64 * MIB));
  const refused = endless.answer.catch((error: unknown) => error);
  for (let second = 0; second < 55; second += 1) {
    endless.request.write('x'.repeat(100_000));
    await endless.clock.advance(1000);
  }
  expect(await refused).toMatchObject({ status: 408 });
  const honest = begin(new BodyBudget(64 * MIB));
  for (let second = 0; second < 50; second += 1) {
    honest.request.write('x'.repeat(600_000));
    await honest.clock.advance(1000);
  }
  honest.request.end();
  expect(await honest.answer).toHaveLength(30_000_000);
  expect(honest.clock.pending).toBe(0);
});
