import { NAMESPACE, TENANT } from './release.ts';
import type { World } from './world.ts';

/** Something that somebody tries with rights that are not his, or that he has for another purpose. */
export interface Attack {
  title: string;
  /** User name to act as; a cluster administrator without. */
  as?: string;
  command: readonly string[];
  input?: object;
  /** Words of the refusal. */
  refusal: string;
}

export interface Targets {
  /** An instance of the tenant, and its uid. */
  instance: { name: string; uid: string };
  /** A pod of the tenant that is no instance's. */
  otherPod: string;
  /** A pod of Berth's own. */
  ownPod: string;
  /** Somebody with the cluster's role `admin` in the tenant's namespace. */
  admin: string;
}

/** A tenant's namespace for which somebody forgot the Pod Security level. */
export const LENIENT = 'lenient';

const ROLES = ['controller', 'api', 'ssh'];
const account = (role: string): string => `system:serviceaccount:${NAMESPACE}:berth-${role}`;
const CREATE = ['create', '-f', '-'];
/** A POST, as it comes from a client that does not ask first whether there is such a pod. */
const post = (namespace: string, path: string): string[] => [
  'create',
  '--raw',
  `/api/v1/namespaces/${namespace}/pods/${path}`,
  '-f',
  '-',
];

/** A pod that Pod Security does not look at, so that what refuses it is Berth's own policy. */
function pod(metadata: object, spec: object = {}, container: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: LENIENT, name: 'attack', ...metadata },
    spec: { automountServiceAccountToken: false, ...spec, containers: [{ name: 'main', image: 'any', ...container }] },
  };
}

function custom(kind: string, namespace: string, spec: object): object {
  return { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { namespace, name: 'attack' }, spec };
}

function byHand({ instance, admin }: Targets): Attack[] {
  const claim = JSON.stringify({ status: { claim: { node: 'elsewhere' } } });
  const write = ['patch', 'gpuinstance', instance.name, '-n', TENANT, '--subresource=status', '--type=merge'];
  const claimIt = { command: [...write, '-p', claim] };
  const withoutFinalizers = JSON.stringify({ metadata: { finalizers: null } });
  const bill = { instance: instance.name };
  const rent = { command: CREATE, input: custom('GPUInstance', 'default', { gpu: { count: 1 } }) };
  return [
    {
      title: 'an administrator claims a GPU',
      ...claimIt,
      refusal: "only Berth's controller writes gpuinstances/status",
    },
    { title: 'a tenant claims a GPU', as: admin, ...claimIt, refusal: 'resource "gpuinstances/status"' },
    { title: 'the api role claims a GPU', as: account('api'), ...claimIt, refusal: 'resource "gpuinstances/status"' },
    {
      title: 'a tenant writes a bill',
      as: admin,
      command: CREATE,
      input: custom('UsageRecord', TENANT, bill),
      refusal: 'cannot create resource "usagerecords"',
    },
    {
      title: 'a tenant takes off what keeps an instance until its bill is written',
      as: admin,
      command: ['patch', 'gpuinstance', instance.name, '-n', TENANT, '--type=merge', '-p', withoutFinalizers],
      refusal: 'delete the instance and let Berth settle its bill',
    },
    { title: 'somebody rents where no tenant is', ...rent, refusal: 'namespace default is no tenant of Berth' },
    {
      title: 'a tenant makes a pod that sees the disk of the node',
      as: admin,
      command: CREATE,
      input: pod({ namespace: TENANT }, { volumes: [{ name: 'root', hostPath: { path: '/' } }] }),
      refusal: 'violates PodSecurity',
    },
  ];
}

function asController({ instance, otherPod }: Targets): Attack[] {
  const as = account('controller');
  const owned = { ownerReferences: [{ apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', ...instance }] };
  const labelled = { labels: { 'berth.dev/instance': instance.name } };
  const refusal = 'an instance gets no host network, process or IPC namespace, no host path';
  const escapes: [string, object][] = [
    ["the node's network", pod(owned, { hostNetwork: true })],
    ["the node's processes", pod(owned, { hostPID: true })],
    ["the node's IPC", pod(owned, { hostIPC: true })],
    ["the node's disk", pod(owned, { volumes: [{ name: 'root', hostPath: { path: '/' } }] })],
    ['all privileges', pod(owned, {}, { securityContext: { privileged: true } })],
    ['a token', pod(owned, { automountServiceAccountToken: true })],
  ];
  return [
    {
      title: 'the controller makes a pod of its own',
      as,
      command: CREATE,
      input: pod({}),
      // Two policies refuse it, either of which may be the first.
      refusal: "Berth's controller ",
    },
    {
      title: 'the controller makes a pod that only looks like an instance',
      as,
      command: CREATE,
      input: pod(labelled),
      refusal: "Berth's controller makes pods for GPUInstances only",
    },
    ...escapes.map(([what, input]) => ({
      title: `the controller makes a pod with ${what}`,
      as,
      command: CREATE,
      input,
      refusal,
    })),
    {
      title: "the controller deletes somebody else's pod",
      as,
      command: ['delete', 'pod', otherPod, '-n', TENANT],
      refusal: "Berth's controller touches only what belongs to a GPUInstance",
    },
  ];
}

function asGateway({ otherPod, ownPod }: Targets): Attack[] {
  const as = account('ssh');
  const own = 'Berth does not enter pods of the cluster';
  return [
    {
      title: 'the ssh role enters a container that is no instance',
      as,
      command: post(TENANT, `${otherPod}/exec?container=server&command=true&stdout=true`),
      refusal: 'Berth enters the container `main` of instances only',
    },
    {
      title: 'the ssh role enters a pod of Berth',
      as,
      command: post(NAMESPACE, `${ownPod}/exec?container=main&command=true&stdout=true`),
      refusal: own,
    },
    {
      title: 'the ssh role reaches a port of a pod of Berth',
      as,
      command: post(NAMESPACE, `${ownPod}/portforward?ports=9090`),
      refusal: own,
    },
  ];
}

function forSecrets(): Attack[] {
  const metadata = {
    namespace: NAMESPACE,
    name: 'berth-token',
    annotations: { 'kubernetes.io/service-account.name': 'berth-controller' },
  };
  const input = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token', metadata };
  return ROLES.flatMap((role) => [
    {
      title: `the ${role} role has the token of another one written into a Secret`,
      as: account(role),
      command: CREATE,
      input,
      refusal: 'Berth makes the Secrets berth-ssh-host-key and berth-dashboard-session, and no others',
    },
    {
      title: `the ${role} role reads a tenant's Secrets`,
      as: account(role),
      command: ['get', 'secrets', '-n', TENANT],
      refusal: 'cannot list resource "secrets"',
    },
  ]);
}

/** What a role would try after it was taken over, and what people would. */
export function attacks(targets: Targets): Attack[] {
  return [...byHand(targets), ...asController(targets), ...asGateway(targets), ...forSecrets()];
}

/** Tries all of it. Returns what was not refused, or not for the expected reason. */
export async function tryAll(world: World, all: readonly Attack[]): Promise<string[]> {
  const unexpected: string[] = [];
  for (const { title, as, command, input, refusal } of all) {
    const who = as === undefined ? [] : ['--as', as];
    const { code, stdout, stderr } = await world.kubectl([...command, ...who], JSON.stringify(input ?? {}));
    if (code === 0 || !stderr.includes(refusal)) unexpected.push(`${title}: ${stdout}${stderr}`);
  }
  return unexpected;
}
