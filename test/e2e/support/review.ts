import type { KubeClient } from '../../../src/kube/client.ts';
import { PODS } from '../../../src/kube/types.ts';
import { type Access, type Grant, grantsOf, type Rule, unusedGrants, usesOf } from '../../support/audit.ts';
import { NAMESPACE, type Release, ROLES } from './release.ts';

interface Role {
  metadata: { name: string; namespace?: string };
  rules: Rule[];
}

/**
 * Rights that are needed though this test does not see them used. A right that is missing here and in the audit log is
 * one too many.
 */
const UNSEEN: Readonly<Record<string, string>> = {
  'update gpuinstances/finalizers': 'asked for by an admission plug-in that is off by default, without a request',
  'create pods/exec': 'asked for beside get by a second look-up of the API server, which the audit log does not tell',
  'create pods/portforward': 'the same',
  'create secrets': 'makes the host key or the session key, in whichever replica starts first',
  'patch events': 'counts up an Event that happens again within minutes',
  'get pods': 'reads a pod whose creation was answered AlreadyExists, after a crash between two writes',
  'controller: get gpuinstances': 'reads what the cache may not show yet, before an instance is deleted for ever',
  'get persistentvolumes': 'reads which nodes a disk is tied to, at the second start of an instance',
  'api: get sshkeys': 'reads a key that another replica made a moment ago',
};

/** The watch caches list where the API server cannot stream lists (before Kubernetes 1.34, or switched off). */
const isFallback = ({ verb }: Grant): boolean => verb === 'list';

const nameOf = ({ verb, resource }: Access | Grant): string => `${verb} ${resource}`;

const isUnseen = (grant: Grant): boolean => nameOf(grant) in UNSEEN || `${grant.role}: ${nameOf(grant)}` in UNSEEN;

export interface UseReport {
  /** What a role asked for and did not get. */
  refused: string[];
  /** What a role got and did not ask for. */
  unused: string[];
}

/** Compares what the chart's roles grant with what the audit log says was asked. */
export async function reportUse(release: Release, log: string): Promise<UseReport> {
  const roles = [...(await release.objects<Role>('ClusterRole')), ...(await release.objects<Role>('Role'))];
  const refused: string[] = [];
  const unused: string[] = [];
  for (const role of ROLES) {
    const account = `berth-${role}`;
    const uses = usesOf(log, `system:serviceaccount:${NAMESPACE}:${account}`);
    const grants = roles
      .filter(({ metadata }) => metadata.name === account)
      .flatMap(({ metadata, rules }) => grantsOf(role, rules, metadata.namespace));
    refused.push(...new Set(uses.refused.map((access) => `${role}: ${nameOf(access)}`)));
    const idle = unusedGrants(grants, uses.used).filter((grant) => !isFallback(grant) && !isUnseen(grant));
    unused.push(...new Set(idle.map((grant) => `${role}: ${nameOf(grant)}`)));
  }
  return { refused, unused };
}

async function textOf(client: KubeClient, path: string): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of await client.stream(path, {}, {})) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** Everything of ours that people other than the owner may read. The host key's Secret is where a private key belongs. */
const OBJECTS = [
  '/apis/berth.dev/v1alpha1/gpuinstances',
  '/apis/berth.dev/v1alpha1/sshkeys',
  '/apis/berth.dev/v1alpha1/apikeys',
  '/apis/berth.dev/v1alpha1/usagerecords',
  '/api/v1/pods',
  '/api/v1/events',
  '/api/v1/configmaps',
];

/** Where one of the secrets stands in clear text, in objects, logs and metrics. */
export async function findSecrets(client: KubeClient, secrets: readonly string[]): Promise<string[]> {
  const { items } = await client.list(PODS, { namespace: NAMESPACE, labelSelector: 'berth.dev/metrics=true' });
  const logs = items.map(({ metadata }) => `/api/v1/namespaces/${NAMESPACE}/pods/${metadata.name}/log`);
  const metrics = items.map(
    ({ metadata }) => `/api/v1/namespaces/${NAMESPACE}/pods/${metadata.name}:9090/proxy/metrics`,
  );
  const found: string[] = [];
  for (const path of [...OBJECTS, ...logs, ...metrics]) {
    const text = await textOf(client, path);
    if (text === '') found.push(`${path} is empty`);
    if (secrets.some((secret) => text.includes(secret))) found.push(path);
  }
  return found;
}
