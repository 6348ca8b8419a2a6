import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type KubeConnection, loadKubeConfig } from '../../../src/kube/config/config.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { findObject } from '../../../src/kube/client/find-object.ts';
import { NODES, SECRETS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { Chance } from '../../simulation/clock/chance.ts';
import { shortest } from '../../simulation/shrink.ts';
import { differenceOf, type Difference } from '../../simulation/truth/compare.ts';
import { Modelled } from '../../simulation/truth/modelled.ts';
import { Real } from '../../simulation/truth/real.ts';
import { Performer } from '../../simulation/truth/side.ts';
import { SILENT_NODE, type Step, stepsOf } from '../../simulation/truth/steps.ts';
import { testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

// The API server of simulated worlds, which is a model, and a real one get the same random calls.

const LIVES = Number(process.env['BERTH_LIVES'] ?? 1);
/** New ones by hand, with BERTH_LIVES: they still find a corner now and then that nobody has looked into. */
const SEED = Number(process.env['BERTH_SEED'] ?? (LIVES > 1 ? Date.now() % 100_000 : 10));
const SEQUENCES = 20 * LIVES;
const STEPS = 30;
/** Sequences that are under way at the same time. */
const LANES = 4;
/** Looks at shorter sequences, until what is left of a failure is told. */
const LOOKS = 30;
/** Some seconds, or with a failure and LOOKS at it, minutes. */
const LIMIT_MS = 600_000 * Math.max(1, LIVES);

let connection: KubeConnection;
let client: KubeClient;
let addsFinalizer = false;

beforeAll(async () => {
  process.stdout.write(`seed ${SEED}: BERTH_SEED repeats it\n`);
  connection = await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig });
  client = createKubeClient(connection, { clock: systemClock() });
  await client.create(NODES, { metadata: { name: SILENT_NODE } });
  addsFinalizer = await hasFinalizer();
  await collectsInstances();
}, 120_000);

afterAll(async () => {
  await client.delete(NODES, { name: SILENT_NODE });
  await client.close();
});

/** Resolves once the garbage collector knows instances as owners: some half a minute after their kind was defined. */
async function collectsInstances(): Promise<void> {
  await using tenant = await testNamespace();
  const { group, version, kind } = GPU_INSTANCES;
  const owner = { apiVersion: `${group}/${version}`, kind, name: 'none', uid: randomUUID() };
  const metadata = { namespace: tenant.name, name: 'orphan', ownerReferences: [owner] };
  await client.create(SECRETS, { metadata });
  await waitFor('an orphan to be collected', async () => (await findObject(client, SECRETS, metadata)) === undefined);
}

/** Whether admission gives a new instance its finalizer here. */
async function hasFinalizer(): Promise<boolean> {
  const real = await Real.open(connection);
  const step: Step = {
    do: 'create',
    kind: 'instance',
    name: 'a',
    body: { metadata: {}, spec: { gpu: { count: 1 } } },
    by: 'one',
  };
  const { seen } = await new Performer(real).perform(step, undefined);
  await real.close();
  return JSON.stringify(seen).includes(FINALIZER);
}

async function tried(steps: readonly Step[]): Promise<Difference | undefined> {
  const real = await Real.open(connection);
  try {
    return await differenceOf(new Modelled(addsFinalizer), real, steps);
  } finally {
    await real.close();
  }
}

function textOf(steps: readonly Step[], { step, model, truth }: Difference): string {
  const lines = [...steps, 'differs at', step, 'model:', model, 'truth:', truth];
  return lines.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n');
}

/** The steps of one number that differ, as few as are found. */
async function failureOf(number: number): Promise<string | undefined> {
  const steps = stepsOf(new Chance(SEED * 1_000 + number), STEPS);
  let difference = await tried(steps);
  if (difference === undefined) return undefined;
  const left = await shortest(
    steps,
    async (some) => {
      const found = await tried(some);
      difference = found ?? difference;
      return found !== undefined;
    },
    LOOKS,
  );
  return textOf(left, difference);
}

test(
  `${SEQUENCES} random sequences of calls come to the same on the model and on a real API server`,
  async () => {
    const numbers = Array.from({ length: SEQUENCES }, (_, index) => index).values();
    const failures: string[] = [];
    const lane = async (): Promise<void> => {
      for (const number of numbers) {
        const failure = await failureOf(number);
        if (failure !== undefined) failures.push(`sequence ${number}:\n${failure}`);
        // One is made short at a time.
        if (failures.length > 0) return;
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    expect(failures.join('\n\n')).toBe('');
  },
  LIMIT_MS,
);
