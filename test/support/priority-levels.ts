import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import type { KubeConnection } from '../../src/kube/config/config.ts';
import type { Refusal } from './refusals.ts';
import { connectAs } from './role-account.ts';
import type { TestNamespace } from './test-cluster.ts';

const API_VERSION = 'flowcontrol.apiserver.k8s.io/v1';
const GREEDY = 'greedy';
/** Later than any version there is: the API server waits three seconds for it, and then says that it has none. */
const NEVER = '9000000000000000';
/** While one of these calls waits, the others find the level full. */
const GREEDY_CALLS = 3;

interface Level {
  /** Service accounts. What they do with instances and pods counts. */
  accounts: readonly string[];
  /** The smallest counts. Those of Kubernetes for service accounts begin at 9000. */
  precedence: number;
  /** Part of the API server's places. 0 leaves one place, for one request at a time. */
  shares: number;
}

/** Makes a priority level, and the FlowSchema that leads there. */
async function addLevel(
  { client, name: namespace }: TestNamespace,
  { accounts, precedence, shares }: Level,
): Promise<{ name: string; remove: () => Promise<void> }> {
  const name = `level-${randomBytes(4).toString('hex')}`;
  const base = `/apis/${API_VERSION}`;
  const limited = { nominalConcurrencyShares: shares, borrowingLimitPercent: 0, limitResponse: { type: 'Reject' } };
  const subjects = accounts.map((one) => ({ kind: 'ServiceAccount', serviceAccount: { namespace, name: one } }));
  const scope = { namespaces: ['*'], clusterScope: true };
  const resources = ['gpuinstances', 'gpuinstances/status', 'pods'];
  const resourceRules = [{ apiGroups: ['', 'berth.dev'], resources, verbs: ['*'], ...scope }];
  await client.raw('POST', `${base}/prioritylevelconfigurations`, {
    apiVersion: API_VERSION,
    kind: 'PriorityLevelConfiguration',
    metadata: { name },
    spec: { type: 'Limited', limited },
  });
  await client.raw('POST', `${base}/flowschemas`, {
    apiVersion: API_VERSION,
    kind: 'FlowSchema',
    metadata: { name },
    spec: {
      matchingPrecedence: precedence,
      priorityLevelConfiguration: { name },
      rules: [{ subjects, resourceRules }],
    },
  });
  return {
    name,
    async remove() {
      await client.raw('DELETE', `${base}/flowschemas/${name}`);
      await client.raw('DELETE', `${base}/prioritylevelconfigurations/${name}`);
    },
  };
}

/** Takes the one place of a level again and again, until the signal aborts. */
async function takePlace(connection: KubeConnection, namespace: string, signal: AbortSignal): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/pods?resourceVersion=${NEVER}&resourceVersionMatch=NotOlderThan`;
  const headers = await connection.headers();
  while (!signal.aborted) {
    const answer = await connection.calls.request({ method: 'GET', path, headers, signal }).catch(unlessOf(signal));
    await answer?.body.dump();
    await delay(10);
  }
}

function unlessOf(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}

export interface FullLevel extends Refusal {
  /** Takes the service account out of it. */
  giveOwnLevel: () => Promise<void>;
}

/** A priority level that a service account shares with another client, which fills it: the API server answers 429. */
export async function fillLevel(space: TestNamespace, berth: string): Promise<FullLevel> {
  const { client, name: namespace } = space;
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }];
  const connection = await connectAs(client, inject('cluster').kubeconfig, { namespace, name: GREEDY, rules });
  const shared = await addLevel(space, { accounts: [berth, GREEDY], precedence: 500, shares: 0 });
  const levels = [shared];
  const stop = new AbortController();
  const calls = Promise.all(Array.from({ length: GREEDY_CALLS }, () => takePlace(connection, namespace, stop.signal)));
  const remove = async (): Promise<void> => {
    stop.abort();
    await calls;
    await connection.close();
    for (const level of levels.splice(0)) await level.remove();
  };
  return {
    name: shared.name,
    giveOwnLevel: async () => {
      levels.push(await addLevel(space, { accounts: [berth], precedence: 400, shares: 30 }));
    },
    remove,
    [Symbol.asyncDispose]: remove,
  };
}
