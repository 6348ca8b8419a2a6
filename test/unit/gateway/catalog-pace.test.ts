import { afterEach, expect, it, vi } from 'vitest';
import { Registry } from 'prom-client';
import { fakeClock } from '../../support/fake-clock.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { gatewayOn, quiet } from '../../support/model-gateway.ts';

afterEach(() => vi.useRealTimers());

/** Makes the catalogue of a tenant that changes a Service every 5 ms for 10 s. Resolves with how often. */
async function timesMade(tookMs: number): Promise<number> {
  const clock = fakeClock();
  const cluster = new ModelCluster();
  let made = 0;
  const has = (): boolean => {
    made += 1;
    clock.stall(tookMs);
    return true;
  };
  const tenants = { has, onChange: () => () => undefined };
  const change = (turn: number): void =>
    cluster.serve({ name: 'llm', namespace: 'hostile', ports: [], annotations: { turn: `${turn}` } });
  change(0);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const gateway = gatewayOn(cluster, { registry: new Registry(), log: quiet, clock, tenants });
  for (let turn = 1; turn <= 2000; turn += 1) {
    change(turn);
    vi.advanceTimersByTime(5);
    clock.stall(5);
  }
  vi.useRealTimers();
  await gateway.stop();
  return made;
}

it('a catalogue that is costly to make takes a fifth of the time, whoever changes what is in it', async () => {
  const made = await timesMade(50);
  expect(made).toBeGreaterThan(30);
  expect(made * 50).toBeLessThanOrEqual((10_000 + made * 50) / 4);
});

it('one that costs little is made at once', async () => {
  expect(await timesMade(0)).toBeGreaterThan(300);
});

it('none rests for longer than a second', async () => {
  expect(await timesMade(10_000)).toBeGreaterThanOrEqual(9);
});
