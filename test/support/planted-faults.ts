import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../../src/doctor/finding.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import {
  MUTATING_WEBHOOKS,
  VALIDATING_WEBHOOKS,
  type WebhookConfiguration,
} from '../../src/kube/installation-types.ts';
import { type KubeObject, NAMESPACES, type Node, NODES, type ResourceType } from '../../src/kube/types.ts';
import { RESOURCE_SLICES } from '../../src/kube/devices.ts';
import { GPU_POOLS, type GpuPool, gpuPoolSpecSchema } from '../../src/resources/gpu-pool.ts';
import { run } from '../../tools/lib/shell.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface DoctorRun {
  code: number | null;
  findings: Finding[];
  /** Names of the checks that found nothing. */
  sound: string[];
}

/** Runs `berth doctor` as an operator does, with this kubeconfig. */
export async function runDoctor(kubeconfig: string, args: readonly string[] = []): Promise<DoctorRun> {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const { code, stdout, stderr } = await run(process.execPath, [MAIN, 'doctor', '--output', 'json', ...args], { env });
  if (stdout === '') throw new Error(`berth doctor: ${stderr}`);
  const { findings, sound } = JSON.parse(stdout) as Omit<DoctorRun, 'code'>;
  return { code, findings, sound };
}

/** What a finding is about, for comparison: its check, its reason and its objects. */
export function factsOf({ check, reason, objects }: Finding): string {
  return [check, reason, ...objects].join(' ');
}

export interface PlantedFaults extends AsyncDisposable {
  /** What must be found, as check, reason and object. */
  expected: readonly (readonly [check: string, reason: string, object: string])[];
}

function webhooks(namespace: string, rest: object): WebhookConfiguration['webhooks'] {
  return [
    {
      name: 'guard.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      // Nothing answers there, and nothing is asked: the test makes no pod in its namespace.
      clientConfig: { url: 'https://127.0.0.1:1/' },
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      ...rest,
    },
  ];
}

/** Plants a dozen faults on nodes, pools and a tenant of its own, and takes them away when it is disposed. */
export async function plantFaults(client: KubeClient): Promise<PlantedFaults> {
  const id = randomBytes(4).toString('hex');
  const [empty, tainted, cordoned, sliced] = ['a', 'b', 'c', 'd'].map((one) => `doctor-${id}-${one}`) as [
    string,
    string,
    string,
    string,
  ];
  const [first, second, tenant] = [`doctor-${id}-1`, `doctor-${id}-2`, `doctor-${id}`];
  const made: [ResourceType, string][] = [];
  async function create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<void> {
    await client.create(type, object);
    made.unshift([type, object.metadata.name]);
  }
  async function node(
    name: string,
    { labels, ...spec }: { labels?: Record<string, string> } & NonNullable<Node['spec']>,
  ) {
    await create(NODES, { metadata: { name, labels: { 'berth.dev/doctor': id, ...labels } }, spec });
  }
  async function give(name: string): Promise<void> {
    const amounts = { 'nvidia.com/gpu': '2', cpu: '8', memory: '32Gi', pods: '10' };
    const body = { status: { capacity: amounts, allocatable: amounts } };
    await client.patch(NODES, { name }, body, { type: 'merge', subresource: 'status' });
  }
  async function pool(name: string, spec: Partial<GpuPool['spec']>): Promise<void> {
    const all = gpuPoolSpecSchema.parse({ nodeSelector: { 'berth.dev/doctor': id }, ...spec });
    await create(GPU_POOLS, { metadata: { name }, spec: all });
  }
  await node(empty, { labels: { 'nvidia.com/gpu.present': 'true' } });
  const known = {
    'nvidia.com/gpu.product': 'NVIDIA-L4',
    'nvidia.com/gpu.memory': '23034',
    'nvidia.com/gpu.count': '2',
  };
  await node(tainted, { labels: known, taints: [{ key: 'team', value: 'ml', effect: 'NoSchedule' }] });
  await node(cordoned, { unschedulable: true });
  for (const name of [tainted, cordoned]) await give(name);
  await node(sliced, {});
  await create(RESOURCE_SLICES, {
    metadata: { name: sliced },
    spec: {
      driver: 'gpu.nvidia.com',
      nodeName: sliced,
      pool: { name: sliced, generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'gpu-0', attributes: { type: { string: 'gpu' } } }],
    },
  });
  await pool(first, { disk: { maxGb: 10, storageClassName: 'gone' }, runtimeClassName: 'gone' });
  await pool(second, {});
  await create(NAMESPACES, { metadata: { name: tenant, labels: { 'berth.dev/tenant': 'true' } } });
  const closed = webhooks(tenant, { failurePolicy: 'Fail' });
  await create(VALIDATING_WEBHOOKS, { metadata: { name: tenant }, webhooks: closed ?? [] });
  const mutating = webhooks(tenant, { failurePolicy: 'Ignore' });
  await create(MUTATING_WEBHOOKS, { metadata: { name: tenant }, webhooks: mutating ?? [] });
  return {
    expected: [
      ['gpu-nodes', 'NoGPUs', `node/${empty}`],
      ['gpu-nodes', 'Tainted', `node/${tainted}`],
      ['gpu-nodes', 'Cordoned', `node/${cordoned}`],
      ['devices', 'NotSold', `node/${sliced}`],
      ['node-labels', 'NoProduct', `node/${cordoned}`],
      ['pools', 'Overlap', `gpupool/${first}`],
      ['pools', 'NoPrice', `gpupool/${first}`],
      ['pools', 'StorageClassMissing', `gpupool/${first}`],
      ['pools', 'RuntimeClassMissing', `gpupool/${first}`],
      ['pools', 'NoNodes', `gpupool/${second}`],
      ['isolation', 'NotConfirmed', `gpupool/${first}`],
      ['network', 'TenantOpen', `namespace/${tenant}`],
      ['webhooks', 'WebhookFailsClosed', `validatingwebhookconfiguration/${tenant}`],
      ['webhooks', 'MutatingWebhook', `mutatingwebhookconfiguration/${tenant}`],
    ],
    async [Symbol.asyncDispose]() {
      for (const [type, name] of made) await client.delete(type, { name });
    },
  };
}

/** Those of the planted faults that no finding is about. */
export function notFound({ expected }: PlantedFaults, findings: readonly Finding[]): string[] {
  return expected
    .filter(([check, reason, object]) => {
      return !findings.some((one) => one.check === check && one.reason === reason && one.objects.includes(object));
    })
    .map((one) => one.join(' '));
}
