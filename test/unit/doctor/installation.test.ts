import { expect, test } from 'vitest';
import { isSound } from '../../../src/doctor/examine.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import {
  each,
  expectOnly,
  findingsOf,
  objects,
  type Planted,
  reportOf,
  without,
} from '../../support/sound-installation.ts';

function webhook(over: object = {}): KubeObject {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
  return { metadata: { name: 'guard' }, webhooks: [{ name: 'guard.example.com', rules, ...over }] } as KubeObject;
}

interface Scaled {
  metadata: { name: string };
  spec: { replicas: number; template: { spec: { containers: { name: string; image: string }[] } } };
}
const roleWith = (role: string, change: (one: Scaled) => object): Planted =>
  each('deployments', (one: Scaled) => (one.metadata.name === `berth-${role}` ? { ...one, ...change(one) } : one));

function renewed(renewTime: string): object {
  return { spec: { holderIdentity: 'x', leaseDurationSeconds: 8, renewTime } };
}

interface Defined {
  spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, { properties: object }> } } }[] };
}
const withSpec = (change: (spec: { properties: object }) => object): Planted =>
  each('definitions', (one: Defined) => {
    const copy = structuredClone(one);
    const { properties } = copy.spec.versions[0]?.schema.openAPIV3Schema ?? { properties: {} };
    if (properties['spec'] !== undefined) Object.assign(properties['spec'], change(properties['spec']));
    return copy;
  });

const scraped = (change: Parameters<typeof objects>[0]): Planted => ({ ...objects(change), absent: [] });

test('nothing is found on a sound installation', () => {
  expect(findingsOf()).toEqual([]);
  expect(isSound(reportOf())).toBe(true);
});

test.each<[fault: string, found: string, planted: Planted]>([
  [
    'an old Kubernetes',
    'versions KubernetesTooOld error',
    { circumstances: { server: { gitVersion: 'v1.29.4', date: undefined } } },
  ],
  [
    'an image of another version',
    'versions ImagesDiffer warning',
    roleWith('api', ({ spec }) => ({
      spec: { ...spec, template: { ...spec.template, spec: { containers: [{ name: 'berth', image: 'berth:2' }] } } },
    })),
  ],
  ['a definition that is gone', 'definitions CRDMissing error', without('definitions', 'gpupools.berth.dev')],
  ['older definitions', 'definitions CRDOlder error', withSpec(() => ({ properties: {} }))],
  [
    'newer definitions',
    'definitions CRDNewer warning',
    withSpec(({ properties }) => ({ properties: { ...properties, later: {} } })),
  ],
  ['a role that is not ready', 'roles RoleNotReady error', roleWith('ssh', () => ({ status: {} }))],
  [
    'a role with one replica too few',
    'roles RoleNotReady warning',
    roleWith('ssh', () => ({ status: { readyReplicas: 1 } })),
  ],
  [
    'a role at zero',
    'roles RoleSwitchedOff error',
    roleWith('api', ({ spec }) => ({ spec: { ...spec, replicas: 0 }, status: {} })),
  ],
  ['a role without Deployment', 'roles RoleMissing error', without('deployments', 'berth-ssh')],
  ['no leader', 'roles NoLeader error', objects(() => ({ leases: [] }))],
  [
    'a leader that is silent',
    'roles LeaderSilent error',
    each('leases', (one: object) => ({
      ...one,
      ...renewed('2026-11-23T11:00:00.000000Z'),
      metadata: { name: 'berth-controller', namespace: 'berth-system' },
    })),
  ],
  [
    'a clock of this machine',
    'clocks ClockOfThisMachine warning',
    { circumstances: { answeredAt: Date.parse('2026-11-23T12:01:00Z'), readAt: Date.parse('2026-11-23T12:01:00Z') } },
  ],
  [
    'a clock of a node',
    'clocks ClockOfNode warning',
    each('nodeLeases', (one: object) => ({ ...one, ...renewed('2026-11-23T12:00:30.000000Z') })),
  ],
  [
    'a clock of the leader',
    'clocks ClockOfLeader warning',
    each('leases', (one: object) => ({ ...one, ...renewed('2026-11-23T12:00:30.000000Z') })),
  ],
  ['no policy', 'admission PolicyMissing error', without('policies', 'berth-pods')],
  ['a policy without binding', 'admission PolicyNotBound error', without('bindings', 'berth-tenants')],
  [
    'a binding that only warns',
    'admission PolicyNotBound error',
    each('bindings', (one: { spec: object; metadata: { name: string } }) =>
      one.metadata.name === 'berth-exec' ? { ...one, spec: { ...one.spec, validationActions: ['Warn'] } } : one,
    ),
  ],
  ['a role without NetworkPolicy', 'network RoleOpen warning', without('networkPolicies', 'berth-api')],
  ['a tenant without NetworkPolicy', 'network TenantOpen error', without('networkPolicies', 'berth-instances')],
  [
    'a network plugin that enforces nothing',
    'network NotEnforced error',
    objects(() => ({ daemonSets: [{ metadata: { name: 'kube-flannel-ds' } }] })),
  ],
  ['an unknown network plugin', 'network EnforcementNotKnown unknown', objects(() => ({ daemonSets: [] }))],
  [
    'a webhook that fails closed',
    'webhooks WebhookFailsClosed warning',
    objects(() => ({ validatingWebhooks: [webhook()] })),
  ],
  [
    'a webhook that changes pods',
    'webhooks MutatingWebhook warning',
    objects(() => ({ mutatingWebhooks: [webhook({ failurePolicy: 'Ignore' })] })),
  ],
  [
    'a webhook for all namespaces but one',
    'webhooks WebhookFailsClosed warning',
    objects(() => ({
      validatingWebhooks: [
        webhook({
          namespaceSelector: {
            matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] }],
          },
        }),
      ],
    })),
  ],
  [
    'a webhook about all kinds',
    'webhooks WebhookFailsClosed warning',
    objects(() => ({
      validatingWebhooks: [webhook({ rules: [{ apiGroups: ['*'], operations: ['*'], resources: ['*/*'] }] })],
    })),
  ],
  ['no TenantLimit', 'tenants NoTenantLimit error', objects(() => ({ tenantLimits: [] }))],
  ['no ResourceQuota', 'tenants NoQuota error', objects(() => ({ quotas: [] }))],
  [
    'a TenantPolicy that cannot be read',
    'tenants PolicyUnreadable error',
    objects(() => ({ tenantPolicies: [{ metadata: { name: 'gold' }, spec: { gpus: 'many' } } as KubeObject] })),
  ],
  [
    'instances in a namespace that is no tenant',
    'tenants NotATenant warning',
    objects((sound) => ({
      namespaces: [...sound.namespaces, { metadata: { name: 'default' } }],
      instances: [gpuInstance('left')],
    })),
  ],
  ['Prometheus that scrapes something else', 'monitors NoMonitor warning', { absent: [] }],
  ['no DCGM exporter', 'exporters NoExporter warning', objects(() => ({ exporters: [] }))],
  [
    "a tenant's pod that poses as DCGM exporter",
    'exporters NoExporter warning',
    each('exporters', (one: { metadata: object }) => ({ ...one, metadata: { ...one.metadata, namespace: 'tenant' } })),
  ],
])('%s is found, and nothing else: %s', (_fault, expected, planted) => expectOnly(planted, expected));

test.each<[harmless: string, planted: Planted]>([
  [
    'a webhook that asks for a label which instances lack',
    objects(() => ({ mutatingWebhooks: [webhook({ objectSelector: { matchLabels: { inject: 'true' } } })] })),
  ],
  [
    "a webhook outside of tenants' namespaces",
    objects(() => ({
      validatingWebhooks: [
        webhook({ namespaceSelector: { matchExpressions: [{ key: 'berth.dev/tenant', operator: 'DoesNotExist' }] } }),
      ],
    })),
  ],
  ['a webhook that fails open', objects(() => ({ validatingWebhooks: [webhook({ failurePolicy: 'Ignore' })] }))],
  [
    'a tenant of a moment ago',
    objects((sound) => ({
      namespaces: sound.namespaces.map((one) => ({
        metadata: { ...one.metadata, creationTimestamp: '2026-11-23T11:59:00Z' },
      })),
      tenantLimits: [],
      quotas: [],
    })),
  ],
  [
    'a ServiceMonitor that selects Berth',
    scraped(({ metricsServices }) => ({
      serviceMonitors: [
        {
          metadata: { name: 'm', namespace: 'monitoring' },
          spec: {
            namespaceSelector: { any: true },
            selector: {
              matchLabels: {
                'app.kubernetes.io/name': metricsServices[0]?.metadata.labels?.['app.kubernetes.io/name'] ?? 'none',
              },
            },
          },
        } as KubeObject,
      ],
    })),
  ],
])('%s is no fault', (_name, planted) => expect(findingsOf(planted)).toEqual([]));
