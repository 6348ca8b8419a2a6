import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BodyBudget, BodyTooLargeError, OverloadedError, readBody } from '../../../src/gateway/calls/read-body.ts';
import { countStructure } from '../../../src/gateway/calls/json-structure.ts';

const MIB = 2 ** 20;

function read(body: string, budget: BodyBudget) {
  const request = Object.assign(new PassThrough(), { headers: {} });
  const answer = readBody(request as unknown as IncomingMessage, 32 * MIB, budget);
  request.end(body);
  return answer;
}

/** Whether the budget holds nothing. */
function isWhole(budget: BodyBudget, max: number): boolean {
  const all = budget.take(max);
  if (all) budget.release(max);
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
  const { bytes, heldBytes } = await read(body, budget);
  expect(heldBytes).toBe(bytes.length + 64 * 400_002);
  await expect(read(body, budget)).resolves.toBeDefined();
  await expect(read(body, budget)).rejects.toBeInstanceOf(OverloadedError);
  budget.release(2 * heldBytes);
  expect(isWhole(budget, 64 * MIB)).toBe(true);
});

it('takes the length alone of a body of ordinary length, until much is held', async () => {
  const budget = new BodyBudget(64 * MIB);
  const body = `[${'{},'.repeat(1000)}{}]`;
  expect((await read(body, budget)).heldBytes).toBe(body.length);
  budget.take(16 * MIB);
  expect((await read(body, budget)).heldBytes).toBe(body.length + 64 * 2002);
});
