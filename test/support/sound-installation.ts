import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Circumstances, examine, isSound } from '../../src/doctor/examine.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { type Objects, type SourceName, SOURCES, type Unread } from '../../src/doctor/sources.ts';
import type { Deployment } from '../../src/kube/installation-types.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { customResourceDefinition } from '../../src/resources/crd.ts';
import {
  activityLeaseOf,
  type ActivityRole,
  replicaKey,
  REPORTED_AT,
  reportText,
} from '../../src/resources/activity-lease.ts';
import { CUSTOM_RESOURCES } from '../../src/resources/index.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { gpuNode, gpuPool } from './inventory-world.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const LATELY = '2026-11-23T11:59:58.000000Z';
const WRITTEN = { managedFields: [{ manager: 'any', time: '2026-11-23T11:59:58Z' }] };

function objectsIn(folder: string): KubeObject[] {
  const files = readdirSync(join(ROOT, 'deploy', folder)).filter((name) => name !== 'kustomization.yaml');
  return files
    .flatMap((name) => parseAllDocuments(readFileSync(join(ROOT, 'deploy', folder, name), 'utf8')))
    .map((document) => document.toJS() as KubeObject);
}

const manifests = new Map(['base', 'tenant'].map((folder) => [folder, objectsIn(folder)]));

/** The objects of the chart as it is rendered without values. */
function rendered(folder: 'base' | 'tenant', kind: string): KubeObject[] {
  return manifests.get(folder)?.filter((object) => object.kind === kind) ?? [];
}

function named(name: string, namespace?: string, rest: object = {}): KubeObject {
  return { metadata: { name, ...(namespace !== undefined && { namespace }) }, ...rest };
}

function lease(name: string, namespace: string): KubeObject {
  const spec = { holderIdentity: `${name}-0`, leaseDurationSeconds: 8, renewTime: LATELY };
  return { metadata: { name, namespace, ...WRITTEN }, spec } as KubeObject;
}

function report(role: ActivityRole): KubeObject {
  const at = Date.parse(LATELY);
  const said = reportText({ since: at - 3_600_000, until: at, version: '7' });
  const annotations = { [replicaKey(`${role}-0`)]: said, [REPORTED_AT]: LATELY };
  return { metadata: { name: activityLeaseOf(role), namespace: 'berth-system', annotations } };
}

function ready(deployment: KubeObject): KubeObject {
  const { replicas = 1 } = (deployment as { spec?: { replicas?: number } }).spec ?? {};
  return { ...deployment, status: { replicas, readyReplicas: replicas } } as KubeObject;
}

/** With the host that the operator's load balancer has. */
function reached(deployment: KubeObject): KubeObject {
  const copy = structuredClone(deployment) as Deployment;
  for (const variable of copy.spec?.template.spec?.containers.flatMap(({ env = [] }) => env) ?? [])
    if (variable.name === 'BERTH_SSH_PUBLIC_HOST') variable.value = 'ssh.example.com';
  return copy;
}

type Sound = Record<SourceName, readonly KubeObject[]>;
type Lists = Partial<Sound>;

/** An installation with nothing to find: the chart's own objects, a node, a pool and a tenant. */
export function soundObjects(): Sound {
  const tenant = 'tenant';
  const pool = gpuPool('main', { prices: [{ product: '*', onDemand: '2.00', interruptible: '1.00' }] });
  const lists: Lists = {
    nodes: [gpuNode('gpu-0', { labels: { 'berth.dev/gpu-isolation': 'enforced' } })].map((node) => ({
      ...node,
      spec: { ...node.spec, podCIDRs: ['10.244.0.0/24', 'fd00:10:244::/64'] },
      status: { ...node.status, addresses: [{ type: 'InternalIP', address: '192.168.3.4' }] },
    })),
    pools: [pool],
    definitions: CUSTOM_RESOURCES.map((one) => customResourceDefinition(one) as unknown as KubeObject),
    deployments: rendered('base', 'Deployment').map(reached).map(ready),
    ownServices: rendered('base', 'Service'),
    policies: rendered('base', 'ValidatingAdmissionPolicy'),
    bindings: rendered('base', 'ValidatingAdmissionPolicyBinding'),
    networkPolicies: [...rendered('base', 'NetworkPolicy'), ...rendered('tenant', 'NetworkPolicy')].map((policy) => ({
      ...policy,
      metadata: { ...policy.metadata, namespace: policy.metadata.namespace ?? tenant },
    })),
    namespaces: [{ metadata: { name: tenant, labels: { 'berth.dev/tenant': 'true' } } }],
    tenantLimits: [named('berth', tenant)],
    quotas: [named('berth', tenant)],
    leases: [lease('berth-controller', 'berth-system')],
    sshReports: [report('ssh')],
    apiReports: [report('api')],
    nodeLeases: [lease('gpu-0', 'kube-node-lease')],
    serviceNetworks: [named('kubernetes', undefined, { spec: { cidrs: ['10.96.0.0/12'] } })],
    apiServerService: [named('kubernetes', 'default', { spec: { clusterIPs: ['10.96.0.1'], ports: [{ port: 443 }] } })],
    apiServers: [
      named('kubernetes', 'default', { endpoints: [{ addresses: ['192.168.3.2'] }], ports: [{ port: 6443 }] }),
    ],
    storageClasses: [
      { metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } },
    ],
    daemonSets: [named('calico-node', 'kube-system', { status: { numberReady: 1 } })],
    exporters: [named('dcgm-1', 'gpu-operator', { spec: { nodeName: 'gpu-0' } })],
  };
  const names = Object.keys(SOURCES) as SourceName[];
  return Object.fromEntries(names.map((name) => [name, lists[name] ?? []])) as Sound;
}

/** What a test changes of the sound installation. */
export interface Planted {
  objects?: (sound: Sound) => Lists;
  unread?: readonly [SourceName, Unread][];
  absent?: readonly SourceName[];
  circumstances?: Partial<Circumstances>;
}

/** The report about the sound installation with a fault in it. */
export function reportOf({ objects, unread = [], absent, circumstances }: Planted = {}) {
  const sound = soundObjects();
  const snapshot = {
    objects: { ...sound, ...objects?.(sound) } as unknown as Objects,
    unread: new Map(unread),
    absent: new Set(absent ?? (['serviceMonitors', 'podMonitors'] as const)),
  };
  return examine(snapshot, {
    server: { gitVersion: 'v1.36.2', date: NOW },
    answeredAt: NOW,
    readAt: NOW,
    namespace: undefined,
    ...circumstances,
  });
}

export function findingsOf(planted: Planted = {}): Finding[] {
  return reportOf(planted).checks.flatMap(({ findings }) => [...findings]);
}

/** Plants other objects. */
export function objects(change: (sound: Sound) => Lists): Planted {
  return { objects: change };
}

/** Plants a change of every object of a kind. */
export function each(name: SourceName, change: (object: never) => object): Planted {
  return objects((sound) => ({ [name]: sound[name].map((one) => change(one as never) as KubeObject) }));
}

/** Takes an object away. */
export function without(name: SourceName, gone: string): Planted {
  return objects((sound) => ({ [name]: sound[name].filter(({ metadata }) => metadata.name !== gone) }));
}

/** That a fault is found and nothing else, in whole sentences and with a command. `expected`: check, reason, severity. */
export function expectOnly(planted: Planted, expected: string): void {
  const found = findingsOf(planted);
  expect(found.map(({ check, reason, severity }) => `${check} ${reason} ${severity}`)).toEqual([expected]);
  for (const { message, why, remedy } of found) {
    for (const sentence of [message, why]) expect(sentence).toMatch(/^[A-Z].*[^ ]$/);
    expect(remedy).toMatch(/^(kubectl|helm|timedatectl) /);
    expect(`${message}${why}${remedy}`).not.toMatch(/undefined|\[object/);
  }
  expect(isSound(reportOf(planted))).toBe(!expected.endsWith(' error'));
}
