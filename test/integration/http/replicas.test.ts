import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Answer } from '../../support/http/client.ts';
import { type Rush, rushForTheLast, startRush } from '../../support/http/rush.ts';

const GPUS = 8;
/** Few for every day; test/faults has more. */
const ROUNDS = 3;

let rush: Rush;

beforeAll(async () => {
  rush = await startRush(inject('cluster').kubeconfig);
});

afterAll(async () => {
  await rush[Symbol.asyncDispose]();
});

it('200 callers at once get the last 8 GPUs once each, and nothing is left of the rest', async () => {
  for (let round = 0; round < ROUNDS; round += 1) await rushForTheLast(rush);
});

it('loses nothing and doubles nothing when a replica is killed in the middle', async () => {
  const { api, call, offer, instances } = rush;
  const keys = Array.from({ length: GPUS }, (_, index) => `order-${index}`);

  async function order(key: string): Promise<Answer> {
    for (;;) {
      const answer = await call('POST', '/instances', { ask_id: offer, name: key }, { 'idempotency-key': key }).catch(
        () => undefined,
      );
      if (answer !== undefined && answer.status < 500) return answer;
    }
  }

  const ordered = keys.map(order);
  await Promise.race(ordered);
  api.processes[0].child.kill('SIGKILL');
  const answers = await Promise.all(ordered);
  expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 201));
  const again = await Promise.all(keys.map(order));
  expect(again.map((answer) => answer.id)).toEqual(answers.map((answer) => answer.id));
  expect(new Set(await instances())).toEqual(new Set(answers.map((answer) => answer.id)));
});
