import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { keyOf, SERVICES } from '../../src/kube/types.ts';
import { REAL_GPU, REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { runMain } from '../../tools/lib/failure.ts';
import { builtDriver, type BuiltE2eCluster } from '../e2e/support/built-driver.ts';
import { tenant } from '../e2e/support/http.ts';
import { deployModel } from '../e2e/support/model.ts';
import { NAMESPACE, OTHER, Release, TENANT } from '../e2e/support/release.ts';
import { newIdentity, type SshPlace } from '../e2e/support/ssh.ts';
import { setStage } from '../e2e/support/stage.ts';
import { addFleet, type Fleet } from '../faults/support/fleet.ts';
import { type Observer, startObserver } from '../faults/support/observer.ts';
import { phase } from '../support/phases.ts';
import { waitFor } from '../support/wait-for.ts';
import { Accepted } from './accepted.ts';
import { untilAnswered } from './ask.ts';
import { runFleetLoad } from './fleet-load.ts';
import { killAtRandom } from './killer.ts';
import { Customer, type LoadOptions, runLoad } from './load.ts';
import { randomFrom } from '../support/random.ts';
import { Log } from './record.ts';
import { watchPrograms } from './programs.ts';
import { callTable, failureLines, killTable, lateFailureLines, slowFailureLines } from './report.ts';
import { Witness } from './witness.ts';

// Chaos: the released chart on a real node and two simulated ones, a steady load, and random faults: kills of Berth's
// pods, the kubelet and the API server, pods deleted by force, drains and restores. `npm run chaos`; BERTH_CHAOS_SECONDS (600) says how long, BERTH_CHAOS_SEED repeats the faults of a run.

const SECONDS = Number(process.env['BERTH_CHAOS_SECONDS'] ?? 600);
const SEED = Number(process.env['BERTH_CHAOS_SEED'] ?? randomInt(2 ** 31));
const GPUS = 8;
const NAMESPACES = [TENANT, OTHER];
/** Milliseconds between two looks at what was accepted. */
const LOOK = 1000;
/** Milliseconds after the last fault for the load to end and for the cluster to come to rest. */
const PATIENCE = 240_000;
const MINUTES = 60_000;

async function uidOf(client: KubeClient, name: string): Promise<string | undefined> {
  return client
    .get(GPU_INSTANCES, { namespace: TENANT, name })
    .then(({ metadata }) => metadata.uid)
    .catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
}

async function addressOf(client: KubeClient, name: string): Promise<{ host: string; port: number }> {
  const { spec } = await client.get(SERVICES, { namespace: NAMESPACE, name });
  return { host: spec?.clusterIP ?? '', port: spec?.ports?.[0]?.port ?? 0 };
}

/** What is wrong when the cluster has come to rest: GPUs that are offered, held or lost, by node. */
async function atRest(observer: Observer, offered: (signal: AbortSignal) => Promise<number>): Promise<string[]> {
  const check = async (): Promise<string[]> => observer.atRest(await offered(AbortSignal.timeout(20_000)));
  const end = performance.now() + MINUTES;
  let found = await check();
  while (found.length > observer.violations.length && performance.now() < end) {
    await delay(1000);
    found = await check();
  }
  return found;
}

/** Looks at every accepted instance until the signal aborts. */
async function keepLooking(witness: Witness, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    // While nobody answers, nobody says that anything is lost.
    await witness.look().catch(() => undefined);
    await delay(LOOK, undefined, { signal: ended }).catch(() => undefined);
  }
}

/** The tenant of the load, and the instance that stays during the whole run. */
interface Load {
  options: LoadOptions;
  customer: Customer;
  resident: string;
  place: SshPlace;
}

/** Makes a tenant with a model and an instance, and waits until all of Berth works. */
async function prepareLoad({ client }: BuiltE2eCluster, accepted: Accepted, stopping: AbortSignal): Promise<Load> {
  const api = await addressOf(client, 'berth-api');
  const base = `http://${api.host}:${api.port}`;
  const user = await tenant(client, TENANT, base);
  const identity = newIdentity();
  await deployModel(client, TENANT);
  const deadline = AbortSignal.timeout((SECONDS + 300) * 1000 + PATIENCE);
  const options: LoadOptions = {
    log: new Log(),
    accepted,
    product: REAL_GPU.product,
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

/** Everything that is judged during the run, and what the faults are to do. */
interface Stand {
  cluster: BuiltE2eCluster;
  load: Load;
  fleet: Fleet;
  accepted: Accepted;
  /** Ends the faults and the load. */
  killing: AbortController;
}

/** The load and the faults, until the time is over and all that is under way has ended. Returns what restores broke. */
async function loadAndFaults({ cluster, load, fleet, accepted, killing }: Stand): Promise<string[]> {
  const { client, kubectl, kubeconfig } = cluster;
  const { options, customer, place } = load;
  const { log, deadline } = options;
  const broken: string[] = [];
  const common = { client, accepted, stopping: killing.signal, deadline };
  const timer = setTimeout(() => killing.abort(), SECONDS * 1000);
  const { product, gpusPerNode } = fleet;
  const faults = killAtRandom({
    ...common,
    cluster,
    log,
    random: randomFrom(SEED),
    namespaces: NAMESPACES,
    namespace: TENANT,
    kubectl,
    kubeconfig,
    simulated: fleet.nodes,
    broken,
  });
  const onFleet = runFleetLoad({ ...common, namespace: OTHER, product, gpusPerNode, seed: SEED });
  try {
    await Promise.all([faults, runLoad(customer, options, place), onFleet]);
  } finally {
    clearTimeout(timer);
    killing.abort();
  }
  return broken;
}

/** Runs the load and the faults, and finds out what is wrong during them and after them. */
async function runChaos(stand: Stand): Promise<Outcome> {
  const { cluster, load, fleet, accepted } = stand;
  const { client, initPid } = cluster;
  const { options, customer, resident } = load;
  const { log } = options;
  const real = { namespace: TENANT, nodes: [REAL_NODE], gpusPerNode: GPUS };
  await using witness = await Witness.start(client, { namespaces: NAMESPACES, accepted });
  await using observer = await startObserver(client, real);
  await using onFleet = await startObserver(client, { namespace: OTHER, nodes: fleet.nodes });
  const watching = new AbortController();
  const programs = watchPrograms(initPid, watching.signal);
  const looking = keepLooking(witness, watching.signal);
  log.begin();
  const broken = await loadAndFaults(stand);
  const offers = [
    [observer, (signal: AbortSignal) => customer.offered(signal)],
    [onFleet, (signal: AbortSignal) => customer.offered(signal, fleet.product)],
  ] as const;
  const rest = async () => (await Promise.all(offers.map(([of, offered]) => atRest(of, offered)))).flat();
  const before = await rest();
  await witness.look();
  const standing = await witness.atRest();
  await customer.giveBack(resident);
  const after = await rest();
  watching.abort();
  await looking;
  const { shared, looks, seen } = await programs;
  const { bills, victims, starts } = await witness.atRest();
  // A judge who sees nothing finds nothing.
  const doubled = seen === 0 ? ['nobody saw a program on a GPU'] : shared;
  const wrongBills = [...new Set([...standing.bills, ...bills])];
  const left = await Promise.all(
    NAMESPACES.map(async (namespace) => (await client.list(GPU_INSTANCES, { namespace })).items),
  );
  return {
    log,
    counts: [
      `${customer.created} instances rented, ${customer.full} refused because no place was free`,
      `${starts} starts seen; ${looks} looks at programs, on ${seen} GPUs`,
    ],
    verdicts: [
      { title: 'lost instances', found: [...log.wrong.filter(isLost), ...witness.lost] },
      {
        title: 'leaked pods, disks, GPUs or instances, and GPUs that several held',
        found: [...new Set([...before, ...after]), ...left.flat().map((one) => `${keyOf(one)} is left over`)],
      },
      { title: 'GPUs with programs of several instances', found: doubled },
      { title: 'wrong answers', found: [...log.wrong.filter((text) => !isLost(text)), ...witness.untold] },
      { title: 'wrong bills', found: wrongBills },
      { title: 'preemptions for nothing, or twice for one request', found: victims },
      { title: 'disks that came back without their bytes', found: broken },
      { title: 'running instances that were disturbed', found: witness.disturbed },
    ],
  };
}

async function main(): Promise<void> {
  process.stderr.write(`Chaos: seed ${SEED}, ${SECONDS} s; BERTH_CHAOS_SEED=${SEED} repeats the faults.\n`);
  const { cluster, helm, chart } = await setStage('chaos', (options) =>
    builtDriver({ ...options, gpu: { ...REAL_GPU, count: GPUS } }),
  );
  const killing = new AbortController();
  try {
    await phase('install', () => new Release({ helm, kubeconfig: cluster.kubeconfig, chart }).upgrade());
    const accepted = new Accepted();
    const load = await prepareLoad(cluster, accepted, killing.signal);
    // The load's GPUs are offered, so the pool of the real node is there before this one.
    const fleet = await addFleet(cluster.client, 'chaos', { nodes: 2, gpusPerNode: 4 });
    const outcome = await runChaos({ cluster, load, fleet, accepted, killing });
    if (!print(outcome)) process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
}

interface Outcome {
  log: Log;
  counts: readonly string[];
  verdicts: readonly { title: string; found: readonly string[] }[];
}

const isLost = (text: string): boolean => text.includes(' is lost: ');

/** Prints what happened. Returns false when something went wrong that must not. */
function print({ log, counts, verdicts }: Outcome): boolean {
  const { calls, kills } = log;
  const lines = [
    `Seed ${SEED}, ${SECONDS} s, ${kills.length} faults; ${counts.join('; ')}.`,
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
    'Calls that failed and began more than three seconds after the last fault, or after its victim was ready again:',
    ...lateFailureLines(log, 3_000),
    '',
  ];
  for (const { title, found } of verdicts) lines.push(`${title}: ${found.length}`, ...found.map((text) => `  ${text}`));
  const failed = verdicts.filter(({ found }) => found.length > 0).length;
  console.log([...lines, `${verdicts.length - failed} passed, ${failed} failed`].join('\n'));
  return failed === 0;
}

await runMain(main);
// After a failure the load may still wait for answers.
process.exit();
