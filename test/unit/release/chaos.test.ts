import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Accepted } from '../../chaos/accepted.ts';
import { chooseVictim } from '../../chaos/killer.ts';
import { Customer } from '../../chaos/load.ts';
import { randomFrom } from '../../support/random.ts';
import { type Call, type Kill, Log } from '../../chaos/record.ts';
import { killTable, outage } from '../../chaos/report.ts';
import { newIdentity } from '../../e2e/support/ssh.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A customer of an interface that gives these answers, one after the other, and the last one for ever. */
async function customerOf(answers: readonly [status: number, body: unknown][], there: string | undefined) {
  const left = [...answers];
  const server = createServer((request, response: ServerResponse) => {
    request.resume();
    const [status, body] = (left.length > 1 ? left.shift() : left[0]) ?? [500, {}];
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => void server.close());
  const log = new Log();
  const accepted = new Accepted();
  const signal = AbortSignal.timeout(10_000);
  const customer = new Customer({
    log,
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: 'any',
    identity: newIdentity(),
    ssh: { host: '127.0.0.1', port: 1 },
    product: 'L4',
    gpus: 8,
    accepted,
    lookUp: () => Promise.resolve(there),
    stopping: signal,
    deadline: signal,
  });
  return { log, customer, signal, accepted };
}

test('a 201 for what is not there is a wrong answer', async () => {
  const { log, customer } = await customerOf([[201, { id: 'i-1', name: 'a' }]], undefined);
  expect(await customer.rent('a')).toBeUndefined();
  expect(log.wrong).toHaveLength(1);
});

test('what was rented is accepted until its owner gives it back', async () => {
  const { customer, accepted } = await customerOf(
    [
      [201, { id: 'i-1', name: 'a' }],
      [200, {}],
      [404, {}],
    ],
    'uid',
  );
  await customer.rent('a', { type: 1 });
  expect([[...accepted.names], accepted.steady.size]).toEqual([[['uid', 'alice/i-1']], 0]);
  await customer.giveBack('i-1');
  expect(accepted.names.size).toBe(0);
});

test('the same instance for two requests is a wrong answer', async () => {
  const { log, customer } = await customerOf([[201, { id: 'i-1', name: 'a' }]], 'uid');
  expect(await customer.rent('a')).toBe('i-1');
  await customer.rent('a');
  expect(log.wrong).toHaveLength(1);
});

test('a call is repeated after a 5xx, which is no wrong answer', async () => {
  const { log, customer } = await customerOf(
    [
      [503, {}],
      [201, { id: 'i-1', name: 'a' }],
    ],
    'uid',
  );
  expect(await customer.rent('a')).toBe('i-1');
  expect(log.wrong).toEqual([]);
  expect(log.calls.map(({ failure }) => failure !== undefined)).toEqual([true, false]);
});

test('an instance that is not there before it is given back is lost', async () => {
  const { log, customer } = await customerOf(
    [
      [200, {}],
      [404, {}],
    ],
    undefined,
  );
  customer.alive.set('i-1', 'uid');
  await customer.giveBack('i-1');
  expect(log.wrong).toEqual(['i-1 is lost: undefined instead of uid']);
});

test('a 404 that comes while the instance is there is a wrong answer', async () => {
  const { log, customer } = await customerOf(
    [
      [200, {}],
      [404, {}],
    ],
    'uid',
  );
  customer.alive.set('i-1', 'uid');
  await customer.giveBack('i-1');
  expect(log.wrong).toEqual(['GET of i-1 answered 404 and the instance is there']);
});

test.each([
  [
    'more GPUs than there are',
    [200, { data: [{ gpu_name: 'L4', gpu_count: 1, available: 9 }] }] as const,
    'offered' as const,
  ],
  ['a good key refused', [401, {}] as const, 'offered' as const],
  ['an answer of another model', [200, { model: 'other' }] as const, 'chat' as const],
  ['a stream that ends early as if all were well', [200, 'data: {}\n\n'] as const, 'streamedChat' as const],
])('%s is a wrong answer', async (_, [status, body], way) => {
  const { log, customer } = await customerOf([[status, body]], undefined);
  await log.call<unknown>('HTTP', (signal) => customer[way](signal));
  expect(log.wrong).toHaveLength(1);
});

test('a seed decides the victims', () => {
  const victims = (seed: number): unknown[] => {
    const random = randomFrom(seed);
    return Array.from({ length: 200 }, () => chooseVictim(random));
  };
  expect(victims(7)).toEqual(victims(7));
  expect(victims(7)).not.toEqual(victims(8));
  // Two programs, four roles in two ways, pods by force, two kinds of nodes, and restores of two policies in three orders.
  expect(new Set(victims(7).map((victim) => JSON.stringify(victim))).size).toBe(19);
});

test('an outage lasts from the kill to the last call that failed before the next one, or hung', () => {
  const kills: Kill[] = [
    { at: 100, target: 'kubelet', how: 'killed, away for 1.0 s' },
    { at: 1000, target: 'api pod', how: 'deleted' },
  ];
  const call = (start: number, end: number, failure?: string): Call => ({ way: 'SSH', start, end, failure });
  // The longest good call takes 300, so one that was under way for 50 failed by the second kill, and one of 600 hung.
  const calls = [call(50, 90, 'before'), call(90, 150, 'x'), call(200, 500), call(950, 1500, 'x'), call(1600, 1700)];
  expect(outage(calls, kills[0] as Kill, kills[1])).toBe(50);
  expect(outage(calls, kills[1] as Kill, undefined)).toBe(500);
  calls.push(call(400, 1400, 'x'));
  expect(outage(calls, kills[0] as Kill, kills[1])).toBe(1300);
  expect(killTable(calls, kills).at(-1)).toBe(
    '| kubelet killed | 1 |  | 0.0 s / 0.0 s |  | 1.3 s / 1.3 s |  | 0.0 s / 0.0 s |  |',
  );
  const back = [{ ...(kills[0] as Kill), readyAt: 1300 }, ...kills.slice(1)];
  const after =
    '| kubelet killed | 1 | 1.2 s / 1.2 s | 0.0 s / 0.0 s | 0.0 s / 0.0 s | 1.3 s / 1.3 s | 0.1 s / 0.1 s |';
  expect(killTable(calls, back).at(-1)).toBe(`${after} 0.0 s / 0.0 s | 0.0 s / 0.0 s |`);
});
