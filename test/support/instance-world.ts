import type { Node, Pod } from '../../src/kube/types.ts';
import type { WithStored } from '../../src/controllers/gpu-instance/act/observe.ts';
import type { Observed } from '../../src/controllers/gpu-instance/decide/observed.ts';
import { withSilences } from '../../src/controllers/gpu-instance/decide/silences.ts';
import { mayRun } from '../../src/inventory/nodes/pod-end.ts';
import type { Settings } from '../../src/controllers/gpu-instance/decide/settings.ts';
import { claimText } from '../../src/resources/pod/claim-on-pod.ts';
import { claimOn, gpuInstance, gpuNode } from './inventory-world.ts';

/** Half an hour after everything in these worlds was made. */
export const NOW = Date.UTC(2026, 0, 1, 0, 30);
export const EARLIER = '2026-01-01T00:00:00Z';

const SETTINGS: Settings = {
  image: 'debian:12',
  runtype: 'ssh',
  command: [],
  args: [],
  onStart: '',
  env: [],
  imagePullSecrets: [],
  ports: [],
  diskGb: 10,
};

type Status = NonNullable<Pod['status']>;

/** The pod of the first start of instance `one`. */
export function startedPod(status: Status = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    metadata: {
      name: 'one-1',
      namespace: 'default',
      uid: 'pod-1',
      annotations: { 'berth.dev/claim': claimText('uid-one') },
      ...metadata,
    },
    spec: { containers: [{ name: 'main', image: 'debian:12' }], nodeName: 'n' },
    status,
  };
}

/** The pod of the first start of instance `one`, to which the scheduler has given no node. */
export function unboundPod(condition: { message?: string } = {}): Pod {
  const conditions = [{ ...SCHEDULED, status: 'False', reason: 'Unschedulable', ...condition }];
  const { spec, ...pod } = startedPod({ conditions });
  return { ...pod, spec: { containers: spec?.containers ?? [] } };
}

export function readyNode(name = 'n', ready = 'True'): Node {
  const node = gpuNode(name);
  return {
    ...node,
    status: { ...node.status, conditions: [{ type: 'Ready', status: ready, lastTransitionTime: EARLIER }] },
  };
}

export const SCHEDULED = { type: 'PodScheduled', status: 'True', lastTransitionTime: EARLIER };
export const READY = { type: 'Ready', status: 'True', lastTransitionTime: EARLIER };

/** What is seen of instance `one` with a claim on node `n`, unless told otherwise. */
export function observed(over: Partial<Observed> = {}): WithStored {
  const stored =
    over.instance ??
    gpuInstance(
      'one',
      {},
      { claim: claimOn('n'), incarnation: 1, podName: 'one-1', diskPersistent: false, diskGb: 10 },
    );
  const now = over.now ?? NOW;
  const pods = over.pods ?? (over.pod ? [over.pod] : []);
  const node = 'node' in over ? over.node : readyNode();
  return {
    pods,
    running: pods.filter((pod) => mayRun(pod, node)),
    pod: undefined,
    node,
    template: undefined,
    settings: SETTINGS,
    keys: { missing: [], usable: 1 },
    disk: undefined,
    exporter: undefined,
    login: undefined,
    jupyter: undefined,
    monitor: undefined,
    trouble: undefined,
    sessions: undefined,
    keepsLog: false,
    overspent: undefined,
    now,
    stored,
    ...over,
    instance: withSilences(stored, { node, pod: over.pod }, now),
  };
}
