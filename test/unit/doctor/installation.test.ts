import { expect, test } from 'vitest';
import { isSound } from '../../../src/doctor/examine.ts';
import type { SourceName } from '../../../src/doctor/sources.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import type { TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { REPORTED_AT, replicaKey } from '../../../src/resources/activity-lease.ts';
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

const withSshHost =
  (value: string) =>
  ({ spec }: Scaled): object => {
    const [berth] = spec.template.spec.containers;
    const env = [{ name: 'BERTH_SSH_PUBLIC_HOST', value }];
    return { spec: { ...spec, template: { ...spec.template, spec: { containers: [{ ...berth, env }] } } } };
  };
const serviceOf = (role: string, type: string, status: object): Planted =>
  each('ownServices', (one: { metadata: { name: string } }) =>
    one.metadata.name === `berth-${role}` ? { ...one, spec: { type }, status } : one,
  );

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

/** A policy more in the namespace of the tenant, or in another one. */
const policy = (spec: object, name = 'more'): Planted =>
  objects(({ networkPolicies }) => ({
    networkPolicies: [...networkPolicies, { metadata: { name, namespace: 'tenant' }, spec } as KubeObject],
  }));
const KEPT_DISK = {
  metadata: { name: 'two-disk', namespace: 'tenant', labels: { 'berth.dev/retained-from': 'two' } },
  spec: { resources: { requests: { storage: '40Gi' } } },
};
const ALL = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
const out = (...egress: object[]): Planted => policy({ ...ALL, egress });
const daemonSet = (name: string, namespace: string, numberReady: number): Planted =>
  objects(() => ({ daemonSets: [{ metadata: { name, namespace }, status: { numberReady } } as KubeObject] }));
const into = (...ingress: object[]): Planted => policy({ ...ALL, ingress });
const block = (cidr: string, ...except: string[]): object => ({ ipBlock: { cidr, except } });
const PRIVATE = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
];
const nodeAt = (address: string): Planted =>
  each('nodes', (one: { status: object }) => ({
    ...one,
    status: { ...one.status, addresses: [{ type: 'ExternalIP', address }] },
  }));
const chartPolicy = (change: (spec: { policyTypes: string[]; egress: object[] }) => object): Planted =>
  each('networkPolicies', (one: { metadata: { name: string }; spec: never }) =>
    one.metadata.name === 'berth-instances' ? { ...one, spec: change(one.spec) } : one,
  );
/** A policy beside NetworkPolicies, in the namespace of the tenant where it is in one. */
const besides = (source: SourceName, spec: object, namespace?: string): Planted =>
  objects(() => ({ [source]: [{ metadata: { name: 'more', ...(namespace && { namespace }) }, spec } as KubeObject] }));
const CILIUM_OPEN = { endpointSelector: {}, egress: [{ toEntities: ['all'] }] };
const reports = (annotations: object): Planted =>
  objects(({ sshReports }) => ({
    sshReports: sshReports.map(({ metadata }) => ({ metadata: { ...metadata, annotations } })) as KubeObject[],
  }));

function inNamespace(namespace: string, status?: object): KubeObject {
  const one = gpuInstance('one');
  return { ...one, metadata: { ...one.metadata, namespace }, ...(status && { status }) };
}

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
  [
    'an address of SSH that only pods find',
    'ways-in InsideOnly warning',
    roleWith('controller', withSshHost('berth-ssh.berth-system.svc')),
  ],
  [
    'the same by its whole name',
    'ways-in InsideOnly warning',
    roleWith('controller', withSshHost('berth-ssh.berth-system.svc.cluster.local')),
  ],
  ['a load balancer that gives no address', 'ways-in NoAddress warning', serviceOf('ssh', 'LoadBalancer', {})],
  [
    'the same of the HTTP interface, where a balancer answered without any',
    'ways-in NoAddress warning',
    serviceOf('api', 'LoadBalancer', { loadBalancer: { ingress: [] } }),
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
  [
    'a policy of Cilium in the namespace of a tenant',
    'other-policies OtherPolicyOpens warning',
    besides('ciliumPolicies', CILIUM_OPEN, 'tenant'),
  ],
  [
    'a policy of Cilium with several sets of rules',
    'other-policies OtherPolicyOpens warning',
    objects(() => ({
      ciliumPolicies: [{ metadata: { name: 'more', namespace: 'tenant' }, specs: [CILIUM_OPEN] } as KubeObject],
    })),
  ],
  [
    'a policy of Calico in the namespace of a tenant',
    'other-policies OtherPolicyOpens warning',
    besides('calicoPolicies', { ingress: [{ action: 'Deny' }, { action: 'Allow' }] }, 'tenant'),
  ],
  [
    'a policy of Antrea in the namespace of a tenant',
    'other-policies OtherPolicyOpens warning',
    besides('antreaPolicies', { egress: [{ action: 'Allow' }] }, 'tenant'),
  ],
  ...['ciliumClusterPolicies', 'calicoClusterPolicies', 'antreaClusterPolicies', 'adminPolicies'].map(
    (source): [string, string, Planted] => [
      `one of ${source}`,
      'other-policies OtherPolicyNotRead unknown',
      besides(source as SourceName, { egress: [{ action: 'Allow' }] }),
    ],
  ),
  [
    'one of the administrators in the later version',
    'other-policies OtherPolicyNotRead unknown',
    besides('clusterPolicies', { tier: 'Admin', ingress: [{ action: 'Accept' }] }),
  ],
  ['a role without NetworkPolicy', 'network RoleOpen warning', without('networkPolicies', 'berth-api')],
  ['a tenant without NetworkPolicy', 'network TenantOpen error', without('networkPolicies', 'berth-instances')],
  [
    'a tenant whose policy is of the type Ingress',
    'network TenantOpen error',
    chartPolicy(({ egress: _egress, ...spec }) => ({ ...spec, policyTypes: ['Ingress'] })),
  ],
  [
    'a tenant whose policy is of the type Egress',
    'network TenantOpen error',
    chartPolicy((spec) => ({ ...spec, ingress: [], policyTypes: ['Egress'] })),
  ],
  [
    'a policy that closes one instance, and no other',
    'network TenantOpen error',
    chartPolicy((spec) => ({ ...spec, podSelector: { matchLabels: { 'berth.dev/instance': 'one' } } })),
  ],
  [
    'a namespace that is open, rents, and needs no label',
    'network TenantOpen error',
    objects((sound) => ({
      policies: sound.policies.filter(({ metadata }) => metadata.name !== 'berth-tenants'),
      bindings: sound.bindings.filter(({ metadata }) => metadata.name !== 'berth-tenants'),
      namespaces: [...sound.namespaces, { metadata: { name: 'free' } }],
      instances: [inNamespace('free')],
    })),
  ],
  ['everything let out', 'network EgressOpen error', out({})],
  ['every address let out on a port', 'network EgressOpen error', out({ ports: [{ port: 80 }] })],
  ['the ports of the API server let out', 'network EgressOpen error', out({ ports: [{ port: 6000, endPort: 7000 }] })],
  ['every IPv4 address let out', 'network EgressOpen error', out({ to: [block('0.0.0.0/0')] })],
  ['every IPv6 address let out', 'network EgressOpen error', out({ to: [block('::/0')] })],
  [
    'everything but metadata let out',
    'network EgressOpen error',
    out({ to: [block('0.0.0.0/0', '169.254.169.254/32')] }),
  ],
  [
    'IPv6 let out but what is private, and NAT64 to metadata with it',
    'network EgressOpen error',
    out({ to: [block('::/0', 'fc00::/7', 'fe80::/10', '64:ff9b:1::/48')] }),
  ],
  ['NAT64 of the site let out to', 'network EgressOpen error', out({ to: [block('64:ff9b:1::/96')] })],
  [
    'half of the networks of pods let out',
    'network EgressOpen error',
    out({ to: [block('10.244.0.0/23', '10.244.0.0/25')] }),
  ],
  [
    'another address of the metadata service let out',
    'network EgressOpen error',
    out({ to: [block('169.254.0.0/16', '169.254.169.254/32')], ports: [{ port: 80 }] }),
  ],
  [
    'a network of nodes let out to on a port',
    'network EgressOpen warning',
    out({ to: [block('192.168.3.0/24')], ports: [{ port: 2049 }] }),
  ],
  ['a network of nodes let out to', 'network EgressOpen error', out({ to: [block('192.168.3.0/24')] })],
  [
    'the Service of the API server let out to',
    'network EgressOpen error',
    out({ to: [block('10.96.0.0/12')], ports: [{ port: 443 }] }),
  ],
  ['pods of all namespaces let out to', 'network EgressOpen error', out({ to: [{ namespaceSelector: {} }] })],
  [
    'pods of all instances let out to',
    'network EgressOpen error',
    out({
      to: [
        {
          namespaceSelector: { matchLabels: { 'berth.dev/tenant': 'true' } },
          podSelector: { matchExpressions: [{ key: 'berth.dev/instance', operator: 'Exists' }] },
        },
      ],
    }),
  ],
  [
    'a policy for one instance that lets it out',
    'network EgressOpen error',
    policy({ podSelector: { matchLabels: { 'berth.dev/instance': 'one' } }, policyTypes: ['Egress'], egress: [{}] }),
  ],
  ['everybody let in', 'network IngressOpen error', into({})],
  ['every address let in', 'network IngressOpen error', into({ from: [block('0.0.0.0/0')] })],
  ['every address let in by IPv6', 'network IngressOpen error', into({ from: [block('::/0')] })],
  [
    'pods of tenants let in',
    'network IngressOpen error',
    into({ from: [{ namespaceSelector: { matchExpressions: [{ key: 'berth.dev/tenant', operator: 'Exists' }] } }] }),
  ],
  ['everybody let in on a port', 'network IngressOpen warning', into({ ports: [{ port: 8888 }] })],
  ['a node with a public address', 'network EgressOpen warning', nodeAt('34.1.2.3')],
  ['a node with a public address of IPv6', 'network EgressOpen warning', nodeAt('2600:1f14::7')],
  [
    'pods with public addresses',
    'network EgressOpen error',
    each('nodes', (one: { spec: object }) => ({ ...one, spec: { ...one.spec, podCIDRs: ['2600:1f14:5::/64'] } })),
  ],
  [
    'an instance with a public address',
    'network EgressOpen error',
    objects(() => ({ instances: [inNamespace('tenant', { podIP: '34.5.6.7' })] })),
  ],
  [
    'Services with public addresses',
    'network EgressOpen error',
    objects(() => ({ serviceNetworks: [{ metadata: { name: 'k' }, spec: { cidrs: ['34.7.0.0/24'] } } as KubeObject] })),
  ],
  [
    'an API server with a public address',
    'network EgressOpen warning',
    each('apiServers', (one: object) => ({ ...one, endpoints: [{ addresses: ['34.1.1.1'] }], ports: [{ port: 443 }] })),
  ],
  ['nobody who says who uses instances', 'activity ReporterMissing error', objects(() => ({ sshReports: [] }))],
  ['a role that never said who uses instances', 'activity ReporterMissing error', reports({})],
  [
    'a role that said who uses instances, and does not any more',
    'activity ReporterMissing error',
    reports({ [REPORTED_AT]: '2026-11-23T11:00:00Z' }),
  ],
  [
    'a replica that went without a word',
    'activity ReporterSilent warning',
    reports({ [replicaKey('a')]: '{"since":"2026-11-23T10:00:00Z","until":"2026-11-23T11:50:00Z","version":"1"}' }),
  ],
  [
    "a key in Berth's own namespace",
    'own-namespace KeyInOwnNamespace error',
    objects(() => ({ apiKeys: [{ metadata: { name: 'admin', namespace: 'berth-system' } }] })),
  ],
  [
    "an instance in Berth's own namespace",
    'own-namespace InstanceInOwnNamespace error',
    objects((sound) => ({
      namespaces: [...sound.namespaces, { metadata: { name: 'berth-system' } }],
      instances: [inNamespace('berth-system')],
    })),
  ],
  [
    'a network plugin that enforces nothing',
    'network NotEnforced error',
    daemonSet('kube-flannel-ds', 'kube-flannel', 1),
  ],
  ['an unknown network plugin', 'network EnforcementNotKnown unknown', objects(() => ({ daemonSets: [] }))],
  [
    "a tenant's program by the name of a plugin",
    'network EnforcementNotKnown unknown',
    daemonSet('cilium', 'tenant', 3),
  ],
  ['a network plugin that does not run', 'network EnforcementNotKnown unknown', daemonSet('cilium', 'kube-system', 0)],
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
  [
    'API keys in a namespace that is no tenant',
    'tenants NotATenant warning',
    objects((sound) => ({
      namespaces: [...sound.namespaces, { metadata: { name: 'default' } }],
      apiKeys: [{ metadata: { name: 'left', namespace: 'default' } }],
    })),
  ],
  [
    'a second release, ready and without a leader',
    'roles SecondRelease error',
    objects(({ deployments }) => ({
      deployments: [
        ...deployments,
        ...deployments
          .filter(({ metadata }) => metadata.name === 'berth-controller')
          .map((one) => ({ ...one, metadata: { ...one.metadata, namespace: 'other-system' } })),
      ],
    })),
  ],
  ['Prometheus that scrapes something else', 'monitors NoMonitor warning', { absent: [] }],
  [
    'a disk whose instance went without the controller',
    'disks DiskWithoutInstance warning',
    objects(() => ({
      keptDisks: [
        {
          metadata: {
            name: 'one-disk',
            namespace: 'tenant',
            labels: { 'berth.dev/retained-from': 'one', 'berth.dev/disk-policy': 'Delete' },
          },
        },
      ],
    })),
  ],
  [
    'a disk that its owner keeps, and no ceiling over such disks',
    'disks KeptDisksUnbounded warning',
    objects(() => ({ keptDisks: [KEPT_DISK] })),
  ],
  ['no DCGM exporter', 'exporters NoExporter warning', objects(() => ({ exporters: [] }))],
  [
    "a tenant's pod that poses as DCGM exporter",
    'exporters NoExporter warning',
    each('exporters', (one: { metadata: object }) => ({ ...one, metadata: { ...one.metadata, namespace: 'tenant' } })),
  ],
])('%s is found, and nothing else: %s', (_fault, expected, planted) => expectOnly(planted, expected));

test.each<[harmless: string, planted: Planted]>([
  [
    'a disk that its owner keeps, under a ceiling over disks',
    objects(({ tenantLimits }) => ({
      keptDisks: [KEPT_DISK],
      tenantLimits: tenantLimits.map((limit) => ({ ...limit, spec: { diskGb: 100 } as TenantLimit['spec'] })),
    })),
  ],
  [
    'a disk that has the label, and whose instance is there',
    objects(({ instances }) => {
      const two = gpuInstance('two');
      const inTenant = { ...two, metadata: { ...two.metadata, namespace: 'tenant' } };
      return { keptDisks: [KEPT_DISK], instances: [...instances, inTenant] };
    }),
  ],
  ['name resolution anywhere', out({ ports: [{ port: 53, protocol: 'UDP' }, { port: 53 }] })],
  ['all public addresses', out({ to: [block('0.0.0.0/0', ...PRIVATE)] })],
  ['a public address', out({ to: [block('8.8.8.8/32')] })],
  ['a way between instances of a tenant', into({ from: [{ podSelector: {} }] })],
  [
    'an ingress controller that is let in',
    into({ from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }] }),
  ],
  [
    'a policy for pods that are no instances',
    policy({
      podSelector: { matchLabels: { app: 'web' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{}],
      egress: [{}],
    }),
  ],
  ['rules of a type that the policy is not of', policy({ podSelector: {}, policyTypes: ['Ingress'], egress: [{}] })],
  ["keys in a tenant's namespace", objects(() => ({ apiKeys: [{ metadata: { name: 'key', namespace: 'tenant' } }] }))],
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
  ['a name of the operator that ends as those of Services', roleWith('controller', withSshHost('svc.example.com'))],
  [
    'a load balancer with an address',
    serviceOf('ssh', 'LoadBalancer', { loadBalancer: { ingress: [{ hostname: 'lb.example.com' }] } }),
  ],
  ['a port of the nodes', serviceOf('ssh', 'NodePort', {})],
  [
    'a ServiceMonitor that selects Berth',
    scraped(({ ownServices }) => ({
      serviceMonitors: [
        {
          metadata: { name: 'm', namespace: 'monitoring' },
          spec: {
            namespaceSelector: { any: true },
            selector: {
              matchLabels: {
                'app.kubernetes.io/name': ownServices[0]?.metadata.labels?.['app.kubernetes.io/name'] ?? 'none',
              },
            },
          },
        } as KubeObject,
      ],
    })),
  ],
  ['a policy of Cilium elsewhere', besides('ciliumPolicies', CILIUM_OPEN, 'other')],
  [
    'a policy of Cilium that closes',
    besides('ciliumPolicies', { ingress: [{}], egressDeny: [{ toEntities: ['all'] }] }, 'tenant'),
  ],
  [
    'a policy of Calico that closes, or leaves it to NetworkPolicies',
    besides('calicoPolicies', { ingress: [{ action: 'Deny' }], egress: [{ action: 'Pass' }] }, 'tenant'),
  ],
  ['one of the administrators that closes', besides('adminPolicies', { ingress: [{ action: 'Deny' }] })],
])('%s is no fault', (_name, planted) => expect(findingsOf(planted)).toEqual([]));

test('disks that are kept are counted by tenant with their size, the most first', () => {
  const disk = (namespace: string, name: string, storage: string, labels: object = {}) => ({
    metadata: { name, namespace, labels: { 'berth.dev/retained-from': 'x', ...labels } },
    spec: { resources: { requests: { storage } } },
  });
  const keptDisks = [
    disk('a', 'one-disk', '10Gi'),
    disk('b', 'one-disk', '40Gi'),
    disk('b', 'two-disk', '1Ti'),
    disk('c', 'lost-disk', '5Gi', { 'berth.dev/disk-policy': 'Delete' }),
  ];
  const messages = findingsOf(objects(() => ({ keptDisks }))).map(({ message }) => message);
  expect(messages.join()).toContain('no ceiling bounds them: b (2 with 1064 GB), a (1 with 10 GB).');
  expect(messages.join()).toContain('did not see their owners delete them: c (1 with 5 GB).');
});
