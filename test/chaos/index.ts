import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { KubeError, NotFoundError } from '../../src/kube/errors.ts';
import { PODS, SERVICES } from '../../src/kube/types.ts';
import { REAL_GPU, REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { runMain } from '../../tools/lib/failure.ts';
import { builtDriver, type BuiltE2eCluster } from '../e2e/support/built-driver.ts';
import { tenant } from '../e2e/support/http.ts';
import { deployModel } from '../e2e/support/model.ts';
import { NAMESPACE, Release, TENANT } from '../e2e/support/release.ts';
import { newIdentity, type SshPlace } from '../e2e/support/ssh.ts';
import { setStage } from '../e2e/support/stage.ts';
import { type Observer, startObserver } from '../faults/support/observer.ts';
import { phase } from '../support/phases.ts';
import { waitFor } from '../support/wait-for.ts';
import { killAtRandom } from './killer.ts';
import { Customer, type LoadOptions, runLoad } from './load.ts';
import { randomFrom } from '../support/random.ts';
import { Log } from './record.ts';
import { callTable, failureLines, killTable, lateFailureLines, slowFailureLines } from './report.ts';

// Chaos: the released chart on a real node, a steady load, and random kills of Berth's pods, the kubelet and the API
// server. `npm run chaos`; BERTH_CHAOS_SECONDS (600) says how long, BERTH_CHAOS_SEED repeats the kills of a run.

const SECONDS = Number(process.env['BERTH_CHAOS_SECONDS'] ?? 600);
const SEED = Number(process.env['BERTH_CHAOS_SEED'] ?? randomInt(2 ** 31));
const GPUS = 8;
/** Milliseconds after the last kill for the load to end and for the cluster to come to rest. */
const PATIENCE = 240_000;
const MINUTES = 60_000;

/** Asks the API server until it answers: at times it is down. */
async function untilAnswered<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof KubeError) || error instanceof NotFoundError) throw error;
      await delay(500, undefined, { signal });
    }
  }
}

async function uidOf(client: KubeClient, name: string): Promise<string | undefined> {
  return client
    .get(GPU_INSTANCES, { namespace: TENANT, name })
    .then(({ metadata }) => metadata.uid)
    .catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
}

async function podUid(client: KubeClient, instance: string): Promise<string | undefined> {
  const { items } = await client.list(PODS, { namespace: TENANT, labelSelector: `berth.dev/instance=${instance}` });
  return items[0]?.metadata.uid;
}

async function addressOf(client: KubeClient, name: string): Promise<{ host: string; port: number }> {
  const { spec } = await client.get(SERVICES, { namespace: NAMESPACE, name });
  return { host: spec?.clusterIP ?? '', port: spec?.ports?.[0]?.port ?? 0 };
}

/** What is wrong when the cluster has come to rest. */
async function atRest(observer: Observer, customer: Customer): Promise<string[]> {
  const check = async (): Promise<string[]> => observer.atRest(await customer.offered(AbortSignal.timeout(20_000)));
  const end = performance.now() + MINUTES;
  let found = await check();
  while (found.length > observer.violations.length && performance.now() < end) {
    await delay(1000);
    found = await check();
  }
  return found;
}

/** The tenant of the load, and the instance that stays during the whole run. */
interface Load {
  options: LoadOptions;
  customer: Customer;
  resident: string;
  place: SshPlace;
}

/** Makes a tenant with a model and an instance, and waits until all of Berth works. */
async function prepareLoad({ client }: BuiltE2eCluster, log: Log, stopping: AbortSignal): Promise<Load> {
  const api = await addressOf(client, 'berth-api');
  const base = `http://${api.host}:${api.port}`;
  const user = await tenant(client, TENANT, base);
  const identity = newIdentity();
  await deployModel(client, TENANT);
  const deadline = AbortSignal.timeout((SECONDS + 300) * 1000 + PATIENCE);
  const options: LoadOptions = {
    log,
    base,
    token: user.token,
    identity,
    ssh: await addressOf(client, 'berth-ssh'),
    gpus: GPUS,
    lookUp: (id) => untilAnswered(() => uidOf(client, id), deadline),
    stopping,
    deadline,
  };
  const customer = new Customer(options);
  await waitFor('all GPUs are offered', async () => {
    const { status } = await user.call('GET', '/api/v1/offers');
    return status === 200 && (await customer.offered(deadline)) === GPUS;
  });
  await user.call('POST', '/api/v1/ssh-keys', { name: 'chaos', public_key: identity.publicKey });
  await waitFor('the model answers', () => customer.chat(deadline).catch(() => undefined), 4 * MINUTES);
  const resident = await customer.rent('resident');
  if (resident === undefined) throw new Error('The first instance was refused.');
  const place = await customer.running(resident);
  if (place === undefined) throw new Error('The first instance failed.');
  return { options, customer, resident, place };
}

/** Runs the load and the kills, and finds out what is wrong after them. */
async function runChaos(cluster: BuiltE2eCluster, load: Load, killing: AbortController): Promise<Outcome> {
  const { client } = cluster;
  const { options, customer, resident, place } = load;
  const { log } = options;
  const firstPod = await podUid(client, resident);
  await using observer = await startObserver(client, { namespace: TENANT, nodes: [REAL_NODE], gpusPerNode: GPUS });
  log.begin();
  const timer = setTimeout(() => killing.abort(), SECONDS * 1000);
  const kills = killAtRandom({ cluster, client, log, random: randomFrom(SEED), stopping: killing.signal });
  await Promise.all([kills, runLoad(customer, options, place)]);
  clearTimeout(timer);
  const lastPod = await podUid(client, resident);
  const residentMoved = firstPod === lastPod ? [] : [`the resident instance's pod changed: ${firstPod} to ${lastPod}`];
  const before = await atRest(observer, customer);
  await customer.giveBack(resident);
  const after = await atRest(observer, customer);
  const { items } = await client.list(GPU_INSTANCES, { namespace: TENANT });
  const left = items.map(({ metadata }) => metadata.name);
  return { log, customer, violations: [...new Set([...before, ...after])], residentMoved, left };
}

async function main(): Promise<void> {
  process.stderr.write(`Chaos: seed ${SEED}, ${SECONDS} s; BERTH_CHAOS_SEED=${SEED} repeats the kills.\n`);
  const { cluster, helm, chart } = await setStage('chaos', (options) =>
    builtDriver({ ...options, gpu: { ...REAL_GPU, count: GPUS } }),
  );
  const killing = new AbortController();
  try {
    await phase('install', () => new Release({ helm, kubeconfig: cluster.kubeconfig, chart }).upgrade());
    const load = await prepareLoad(cluster, new Log(), killing.signal);
    const outcome = await runChaos(cluster, load, killing);
    if (!print(outcome)) process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
}

interface Outcome {
  log: Log;
  customer: Customer;
  violations: readonly string[];
  residentMoved: readonly string[];
  left: readonly string[];
}

/** Prints what happened. Returns false when something went wrong that must not. */
function print({ log, customer, violations, residentMoved, left }: Outcome): boolean {
  const { calls, kills, wrong } = log;
  const lost = wrong.filter((text) => text.includes(' is lost: '));
  const leaked = [...violations, ...left.map((name) => `instance ${name} is left over`)];
  const wrongAnswers = wrong.filter((text) => !lost.includes(text));
  const counts = `${customer.created} instances rented, ${customer.full} refused because no place was free`;
  const lines = [
    `Seed ${SEED}, ${SECONDS} s, ${kills.length} kills; ${counts}.`,
    '',
    ...killTable(calls, kills),
    '',
    ...callTable(calls),
    '',
    ...failureLines(calls),
    '',
    'Failed calls that hung for more than five seconds:',
    ...slowFailureLines(log, 5_000),
    '',
    'Calls that failed and began more than three seconds after the last kill, or after its victim was ready again:',
    ...lateFailureLines(log, 3_000),
    '',
  ];
  const verdicts = [
    { title: 'lost instances', found: lost },
    { title: 'leaked pods, disks, GPUs or instances', found: leaked },
    { title: 'wrong answers', found: wrongAnswers },
    { title: 'running instances that were disturbed', found: residentMoved },
  ];
  for (const { title, found } of verdicts) lines.push(`${title}: ${found.length}`, ...found.map((text) => `  ${text}`));
  const failed = verdicts.filter(({ found }) => found.length > 0).length;
  console.log([...lines, `${verdicts.length - failed} passed, ${failed} failed`].join('\n'));
  return failed === 0;
}

await runMain(main);
// After a failure the load may still wait for answers.
process.exit();
