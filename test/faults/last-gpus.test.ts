import { expect, inject, test } from 'vitest';
import type { Answer } from '../support/http/client.ts';
import { rushForTheLast, startRush } from '../support/http/rush.ts';
import { waitFor } from '../support/wait-for.ts';
import { SHARE } from './support/seed.ts';

const ROUNDS = 4 * SHARE;
const GPUS = 8;
const CALLERS = 100;
/** The slowest reaper: 30 s until an answer is due, 5 s until the first look and 5 s until the next, and 15 s to spare. */
const REAPED_MS = 55_000;

test('again and again, 200 callers at once get the last 8 GPUs once each', { timeout: 60_000 * ROUNDS }, async () => {
  await using rush = await startRush(inject('cluster').kubeconfig);
  for (let round = 0; round < ROUNDS; round += 1) await rushForTheLast(rush);
});

test(
  'a GPU is not rented for a request that a killed replica had not answered yet',
  { timeout: 3 * REAPED_MS },
  async () => {
    await using rush = await startRush(inject('cluster').kubeconfig);
    const { api, controller, call, offer, instances } = rush;
    // It decides nothing meanwhile: whoever dies between its mark and its answer has answered.
    controller.child.kill('SIGSTOP');
    const asked = Array.from({ length: CALLERS }, () =>
      call('POST', '/instances', { ask_id: offer }).catch((): undefined => undefined),
    );
    await waitFor('instances of both replicas without an answer', async () => (await instances()).length >= GPUS);
    api.processes[0].child.kill('SIGKILL');
    controller.child.kill('SIGCONT');
    const answers = (await Promise.all(asked)).filter((answer): answer is Answer => answer !== undefined);
    // A client that lost its connection has no answer. Every other client has one of two answers.
    expect(answers.length).toBeLessThan(CALLERS);
    expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([]);
    const rented = answers.filter(({ status }) => status === 201).map(({ id }) => id);
    expect(rented.length).toBeLessThanOrEqual(GPUS);
    await waitFor('only what was answered', async () => (await instances()).length === rented.length, REAPED_MS);
    expect(new Set(await instances())).toEqual(new Set(rented));
  },
);
