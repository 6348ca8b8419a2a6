import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ensurePriorityClasses } from '../../../src/controllers/priority-classes.ts';
import { pullPod } from '../../../src/controllers/images/pull-pod.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import { NAMESPACES, type Pod } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { gpuPool } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about pods, with the pods that bring images to nodes.

const OWN = 'berth-system';
const ACCOUNT = 'berth-another';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const POLICIES = ['berth-controller', 'berth-pods', 'berth-image-pulls'];
const KINDS = {
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};
const read = (file: string): string => readFileSync(join(ROOT, 'deploy/base', file), 'utf8');
const CHART = parseAllDocuments(read('admission.yaml')).map(
  (one) => one.toJS() as { kind: keyof typeof KINDS; metadata: { name: string }; spec: object },
);
const toolsImage = /name: BERTH_TOOLS_IMAGE\s+value: "?([^"\s]+)/.exec(read('controller.yaml'))?.[1] ?? '';

const good = pullPod({
  pool: { ...gpuPool('p'), metadata: { name: 'p', uid: 'f6e3b1f0-0000-4000-8000-000000000000' } },
  name: 'berth-pull-1',
  node: 'n',
  image: 'debian:12',
  namespace: OWN,
  toolsImage,
});
type Spec = NonNullable<Pod['spec']>;
type Container = Spec['containers'][number];
const [main] = good.spec?.containers ?? [];
const [tools] = good.spec?.initContainers ?? [];

function withSpec(spec: object): object {
  return { ...good, spec: { ...good.spec, ...spec } };
}

function withMain(container: Partial<Container>): object {
  return withSpec({ containers: [{ ...main, ...container }] });
}

let client: KubeClient;

/** What the API server says to Berth's controller about a pod, with the rights of an administrator. */
async function make(pod: object): Promise<string> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  const user = `system:serviceaccount:${OWN}:berth-controller`;
  const who = ['--kubeconfig', kubeconfig, '--as', user, '--as-group', 'system:masters'];
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...pod });
  const { code, stderr } = await run(program, [...who, 'create', '--dry-run=server', '-f', '-'], { input });
  return code === 0 ? 'done' : stderr;
}

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await ensurePriorityClasses(client, new AbortController().signal);
  await client.create(NAMESPACES, { metadata: { name: OWN } }).catch((error: unknown) => {
    if (!(error instanceof AlreadyExistsError)) throw error;
  });
  // Kubernetes looks for the account before it asks the policies.
  await client.raw('POST', `/api/v1/namespaces/${OWN}/serviceaccounts`, { metadata: { name: ACCOUNT } });
  for (const object of CHART.filter(({ metadata }) => POLICIES.includes(metadata.name))) {
    await client.raw('POST', `${ADMISSION}/${KINDS[object.kind]}`, object);
  }
  await waitFor('the policies to be in force', async () => {
    const answers = [
      await make(withSpec({ hostNetwork: true })),
      await make({ ...good, metadata: { namespace: OWN, name: 'a' } }),
    ];
    return answers.every((answer) => answer.includes('denied request'));
  });
});

afterAll(async () => {
  for (const name of POLICIES) {
    for (const kind of Object.values(KINDS)) await client.raw('DELETE', `${ADMISSION}/${kind}/${name}`);
  }
  await client.raw('DELETE', `/api/v1/namespaces/${OWN}/serviceaccounts/${ACCOUNT}`);
  await client.close();
});

describe('the controller', () => {
  test('makes the pods that pull images, also private ones', async () => {
    expect(toolsImage).not.toBe('');
    expect(await make(good)).toBe('done');
    expect(await make(withSpec({ imagePullSecrets: [{ name: 'own' }] }))).toBe('done');
  });

  const elsewhere = { ...good, metadata: { ...good.metadata, namespace: 'default' } };
  const secret = { valueFrom: { secretKeyRef: { name: 'berth-ssh-host-key', key: 'any' } } };
  test.each<[string, object, string]>([
    ['in the namespace of a tenant', elsewhere, "Berth's controller"],
    ['without the mark', { ...good, metadata: { ...good.metadata, labels: {} } }, "Berth's controller"],
    ['without a pool', { ...good, metadata: { ...good.metadata, ownerReferences: [] } }, 'belongs to a GPUPool'],
    [
      'with a device',
      { ...good, metadata: { ...good.metadata, annotations: { 'cdi.k8s.io/a': 'nvidia.com/gpu=all' } } },
      'annotation that chooses devices',
    ],
    ['with the network of the node', withSpec({ hostNetwork: true }), 'no host namespace'],
    ['with a token', withSpec({ automountServiceAccountToken: true }), 'no host namespace, no account'],
    ['with another account', withSpec({ serviceAccountName: ACCOUNT }), 'no host namespace, no account'],
    [
      'with a Secret as a volume',
      withSpec({
        volumes: [...(good.spec?.volumes ?? []), { name: 's', secret: { secretName: 'berth-ssh-host-key' } }],
      }),
      'no volume but an empty one',
    ],
    ['with the priority of an instance', withSpec({ priorityClassName: 'berth-on-demand' }), 'the PriorityClass'],
    ['with a GPU', withMain({ resources: { limits: { 'nvidia.com/gpu': '1' } } }), 'without capabilities'],
    [
      'as root',
      withMain({ securityContext: { ...main?.securityContext, runAsNonRoot: false } }),
      'without capabilities',
    ],
    ['with a Secret as a variable', withMain({ env: [{ name: 'A', ...secret }] }), 'without capabilities'],
    ['with a program of its own', withMain({ command: ['sh', '-c', 'id'] }), 'runs one program'],
    ['with the program of the image', withMain({ volumeMounts: [] }), 'runs one program'],
    ['with a second container', withSpec({ containers: [main, { ...main, name: 'b' }] }), 'runs one program'],
    ['with tools of its own', withSpec({ initContainers: [{ ...tools, image: 'evil:1' }] }), 'runs one program'],
  ])('makes none %s', async (_what, pod, refusal) => {
    expect(await make(pod)).toContain(refusal);
  });
});
