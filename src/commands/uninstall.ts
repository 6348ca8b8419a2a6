import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { COMPONENT } from '../doctor/facts.ts';
import { count } from '../doctor/print.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { everyObject } from '../kube/client/every.ts';
import { isDeniedByPolicy, NotFoundError } from '../kube/errors.ts';
import { type Deployment, DEPLOYMENTS } from '../kube/installation-types.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  LEASES,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PRIORITY_CLASSES,
  RESOURCE_QUOTAS,
  type ResourceType,
} from '../kube/types.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { CUSTOM_RESOURCES } from '../resources/index.ts';
import { GPU_INSTANCES } from '../resources/instances/gpu-instance.ts';
import { GPU_POOLS, HAD_POOL } from '../resources/gpu-pool.ts';
import { REGISTRY_CREDENTIALS } from '../resources/registry-credential.ts';
import { DISK_POLICY_LABEL, RETAINED_LABEL } from '../resources/pod/disk.ts';
import { TENANT_LIMITS } from '../resources/tenants/tenant-limit.ts';
import { TENANT_LABEL, TENANT_POLICIES } from '../resources/tenants/tenant-policy.ts';
import { TOKEN_RECORDS } from '../resources/token-record.ts';
import { USAGE_RECORDS } from '../resources/usage-record.ts';
import { UsageError, withClient } from './with-client.ts';

const USAGE = 'Usage: berth uninstall --dry-run | --yes [--bills]';

/** What was billed. It goes only when it is asked for. */
const BILLS: readonly ResourceType[] = [USAGE_RECORDS, TOKEN_RECORDS];
/** The admission policies read them: they go with their definitions, after the policies. */
const READ_BY_POLICIES: readonly ResourceType[] = [TENANT_LIMITS, TENANT_POLICIES];
const PRIORITIES = ['berth-on-demand', 'berth-interruptible'];
const OURS = 'app.kubernetes.io/managed-by=berth';
const LOOK_MS = 2000;
/** Looks for which an API server may go on with policies that are gone: it reads them about each second. */
const POLICY_LOOKS = 15;
/** Kinds whose objects the controller lets go when it has dealt with what is left of them. */
const SETTLED: readonly ResourceType[] = [GPU_INSTANCES, REGISTRY_CREDENTIALS];
/** Looks without a change after which something is in the way. */
const STUCK = 30;
/** How often they may come back before somebody else is said to make them. */
const MOST_ROUNDS = 3;

type Client = Pick<KubeClient, 'list' | 'delete' | 'get'>;

/** What there is to remove, and what is left. */
export interface Holdings {
  /** Deployments of controllers: one, or none when Berth is gone already. */
  controllers: readonly Deployment[];
  /** How many objects of each kind there are, by plural name. Kinds that the API server does not know are absent. */
  counts: ReadonlyMap<string, number>;
  tenants: readonly string[];
  /** Disks that stay, `NAMESPACE/NAME`. */
  disks: readonly string[];
  /** How many disks go with their instances, as diskPolicy says. */
  goingDisks: number;
}

/** A release of Helm. */
interface Release {
  name: string;
  namespace: string;
}

export interface Deps {
  client: Client;
  clock: Clock;
  /** Gets a line whenever something is done or waited for. */
  say: (line: string) => void;
  /** Runs helm with these words; rejects with its words when it fails. */
  helm: (args: readonly string[]) => Promise<void>;
}

/** Of kinds of Berth. */
function isAmong({ plural }: ResourceType, types: readonly ResourceType[]): boolean {
  return types.some((one) => one.plural === plural);
}

async function all<T extends KubeObject>(client: Client, type: ResourceType<T>, labelSelector?: string): Promise<T[]> {
  try {
    const found: T[] = [];
    for await (const object of everyObject(client, type, labelSelector === undefined ? {} : { labelSelector })) {
      found.push(object);
    }
    return found;
  } catch (error) {
    if (error instanceof NotFoundError) return [];
    throw error;
  }
}

async function sumOf(client: Client, type: ResourceType): Promise<number> {
  let sum = 0;
  for await (const _ of everyObject(client, type)) sum += 1;
  return sum;
}

function goesWithInstance({ metadata: { labels = {} } }: KubeObject): boolean {
  return labels[DISK_POLICY_LABEL] === 'Delete' && labels[RETAINED_LABEL] === undefined;
}

export async function readHoldings(client: Client): Promise<Holdings> {
  const counts = new Map<string, number>();
  for (const type of CUSTOM_RESOURCES) {
    try {
      counts.set(type.plural, await sumOf(client, type));
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
  }
  const controllers = await all(client, DEPLOYMENTS, `app.kubernetes.io/part-of=berth,${COMPONENT}=controller`);
  const tenants = await all(client, NAMESPACES, `${TENANT_LABEL}=true`);
  const disks = await all(client, PERSISTENT_VOLUME_CLAIMS, DISK_POLICY_LABEL);
  const retained = await all(client, PERSISTENT_VOLUME_CLAIMS, RETAINED_LABEL);
  const going = disks.filter(goesWithInstance);
  const staying = [...disks.filter((disk) => !goesWithInstance(disk)), ...retained];
  return {
    controllers,
    counts,
    tenants: tenants.map(({ metadata }) => metadata.name).toSorted(),
    disks: [...new Set(staying.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))].toSorted(),
    goingDisks: going.length,
  };
}

/** The release that made the controller; undefined when Helm did not. */
function releaseOf({ metadata }: Deployment): Release | undefined {
  const name = metadata.annotations?.['meta.helm.sh/release-name'];
  return name === undefined || metadata.namespace === undefined ? undefined : { name, namespace: metadata.namespace };
}

/** Why nothing may be removed yet; undefined when all may go. */
function obstacle({ controllers, counts }: Holdings): string | undefined {
  const left = SETTLED.map((type) => ({ type, sum: counts.get(type.plural) ?? 0 })).filter(({ sum }) => sum > 0);
  const [controller, second] = controllers;
  if (second !== undefined)
    return 'There is more than one controller of Berth in the cluster: berth doctor names them.';
  if (left.length === 0) return undefined;
  const there = left.map(({ type, sum }) => `${sum} ${type.plural}`).join(' and ');
  const why = `only a running controller bills and deletes instances and the Secrets of registries, and there are ${there}`;
  if (controller === undefined) return `Berth is gone, but ${why}: install the chart again, then run this again.`;
  if ((controller.status?.readyReplicas ?? 0) > 0) return undefined;
  return `No controller is ready, but ${why}: kubectl describe deployment ${controller.metadata.name} -n ${controller.metadata.namespace}`;
}

function isKept(type: ResourceType, isBilling: boolean): boolean {
  return !isBilling && isAmong(type, BILLS);
}

function leftLines({ tenants, disks, counts }: Holdings, isBilling: boolean): string[] {
  const bills = BILLS.map(({ plural }) => `${counts.get(plural) ?? 0} ${plural}`).join(' and ');
  return [
    ...(isBilling ? [] : [`  ${bills} with their definitions: what was billed (--bills removes them too)`]),
    `  ${count(tenants.length, 'namespace')} of tenants${tenants.map((one) => ` ${one}`).join('')}`,
    `  ${count(disks.length, 'disk')} of instances${disks.map((one) => ` ${one}`).join('')}`,
    "  Berth's own namespace",
  ];
}

/** For people: what goes, in order, and what stays. */
export function printPlan(holdings: Holdings, isBilling: boolean): string {
  const [controller] = holdings.controllers;
  const release = controller && releaseOf(controller);
  const going = CUSTOM_RESOURCES.filter((type) => !isKept(type, isBilling) && holdings.counts.has(type.plural));
  const sums = going.map(({ plural }) => `  ${String(holdings.counts.get(plural)).padStart(7)} ${plural}`);
  const how =
    release === undefined
      ? 'nothing that Helm installed'
      : `the release ${release.name} in namespace ${release.namespace}`;
  return [
    'Goes, instances first, each billed to its end:',
    ...sums,
    `  ${String(holdings.goingDisks).padStart(7)} disks of these instances, as their diskPolicy says`,
    `  ${how}, definitions, quotas and priority classes`,
    'Stays:',
    ...leftLines(holdings, isBilling),
    '',
  ].join('\n');
}

/** Waits until no object of a kind is there. Says how many are left whenever that changes. */
async function untilFree({ client, clock, say }: Deps, type: ResourceType, noun: string): Promise<void> {
  let before: number | undefined;
  for (let same = 0; ; same += 1) {
    const left = await all(client, type);
    if (left.length === 0) return;
    if (left.length !== before) {
      say(`${count(left.length, noun)} left`);
      same = 0;
    }
    if (same === STUCK) {
      const { namespace, name } = left[0]?.metadata ?? { name: '' };
      say(
        `still there: ${namespace}/${name}. kubectl describe ${type.kind.toLowerCase()} and berth doctor say what holds it`,
      );
    }
    before = left.length;
    await clock.sleep(LOOK_MS);
  }
}

/** A client whose deletions wait until each API server knows that the policies of Berth are gone. */
function pastPolicies({ client, clock, say }: Deps): Client {
  let looks = 0;
  return {
    ...client,
    async delete(type, ref, options) {
      for (;;) {
        try {
          await client.delete(type, ref, options);
          return;
        } catch (error) {
          if (!isDeniedByPolicy(error) || looks === POLICY_LOOKS) throw error;
          if (looks === 0) say('the API server still has the policies that went: waits for it');
          looks += 1;
          await clock.sleep(LOOK_MS);
        }
      }
    },
  };
}

async function deleteAll(client: Client, type: ResourceType, objects: readonly KubeObject[]): Promise<void> {
  for (const { metadata } of objects) {
    const { namespace, name, uid } = metadata;
    await client.delete(type, { namespace, name }, uid === undefined ? {} : { uid });
  }
}

async function deleteKinds({ client, say }: Deps, types: readonly ResourceType[]): Promise<void> {
  for (const type of types) {
    const objects = await all(client, type);
    if (objects.length > 0) say(`deletes ${objects.length} ${type.plural}`);
    await deleteAll(client, type, objects);
  }
}

/** Whether nothing is there that needs a controller to go. */
async function isFree(client: Client): Promise<boolean> {
  for (const type of SETTLED) if ((await all(client, type)).length > 0) return false;
  return true;
}

/** Without a key nobody makes another instance over HTTP: `others` go between two looks. */
async function removeInstances(deps: Deps, others: readonly ResourceType[]): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    await deleteKinds(deps, [GPU_INSTANCES]);
    await untilFree(deps, GPU_INSTANCES, 'instance');
    await deleteKinds(deps, others);
    await untilFree(deps, REGISTRY_CREDENTIALS, 'registry credential');
    if (await isFree(deps.client)) return;
  }
  throw new Error(
    'Others make instances or credentials of registries while they are deleted, as a GitOps controller does: stop that first.',
  );
}

/**
 * Removes Berth and what it made, in the order in which each part can still do its work. What is gone already is no
 * fault, so that it can be run again after an interruption. Throws the client's errors, and Error with the next step.
 */
export async function uninstall(deps: Deps, holdings: Holdings, isBilling: boolean): Promise<void> {
  const { say } = deps;
  const why = obstacle(holdings);
  if (why !== undefined) throw new Error(why);
  const [controller] = holdings.controllers;
  const release = controller && releaseOf(controller);
  if (release !== undefined) await deps.helm(['status', release.name, '--namespace', release.namespace]);
  const later = [GPU_INSTANCES, GPU_POOLS, ...BILLS, ...READ_BY_POLICIES];
  await removeInstances(
    deps,
    CUSTOM_RESOURCES.filter((type) => !isAmong(type, later)),
  );
  await deleteKinds(deps, [...(isBilling ? BILLS : []), GPU_POOLS]);
  if (release !== undefined) {
    say(`helm uninstall ${release.name}`);
    await deps.helm(['uninstall', release.name, '--namespace', release.namespace, '--wait']);
  } else if (controller !== undefined) {
    throw new Error(
      `Berth was installed without Helm, and nothing but its roles is left: kubectl delete the manifests that you applied, then run this again.`,
    );
  }
  say('definitions, quotas, priority classes');
  const client = pastPolicies(deps);
  const gone = CUSTOM_RESOURCES.filter((type) => !isKept(type, isBilling));
  for (const { plural, group } of gone) {
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${group}` });
  }
  await deleteAll(client, RESOURCE_QUOTAS, await all(client, RESOURCE_QUOTAS, OURS));
  // The pools went with Berth: an installation to come is to make its first one.
  const noted = (await all(client, LEASES)).filter(({ metadata }) => metadata.annotations?.[HAD_POOL] !== undefined);
  await deleteAll(client, LEASES, noted);
  for (const name of PRIORITIES) await client.delete(PRIORITY_CLASSES, { name });
}

async function runHelm(args: readonly string[]): Promise<void> {
  try {
    const child = spawn('helm', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const [words, [code]] = await Promise.all([text(child.stderr), once(child, 'close') as Promise<[number | null]>]);
    if (code !== 0) throw new Error(`helm ${args[0]} failed: ${words.trim().slice(0, 1000)}`);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    throw new Error('This machine has no program helm, which made the release. Install it, then run this again.', {
      cause: error,
    });
  }
}

/**
 * `berth uninstall`: removes Berth from the cluster of the kubeconfig, with its rights. Leaves namespaces, disks and,
 * without --bills, what was billed. Throws UsageError, the client's errors, and Error with the next step.
 */
export async function uninstallCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<string> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'dry-run': { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      bills: { type: 'boolean', default: false },
    },
  });
  const isDry = values['dry-run'];
  if (isDry === values.yes) throw new UsageError(USAGE);
  return withClient(env, async (client) => {
    const holdings = await readHoldings(client);
    if (isDry) {
      const why = obstacle(holdings);
      return `${printPlan(holdings, values.bills)}${why === undefined ? '' : `\nNot now: ${why}\n`}`;
    }
    await uninstall({ client, clock: systemClock(), say, helm: runHelm }, holdings, values.bills);
    const after = await readHoldings(client);
    return ['Removed. Stays:', ...leftLines(after, values.bills), ''].join('\n');
  });
}
