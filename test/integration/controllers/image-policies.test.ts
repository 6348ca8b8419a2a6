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
import { NAMESPACES, type Pod, PODS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { IMAGE_PULL_LABEL } from '../../../src/resources/pod/image-pull.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { gpuPool } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about pods, with the pods that bring images to nodes.

const OWN = 'berth-system';
const NAME = 'berth-pull-1';
const ACCOUNT = 'berth-another';
const CLASS = 'kata-pulls';
const CLASSES = '/apis/node.k8s.io/v1/runtimeclasses';
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
  name: NAME,
  node: 'n',
  image: 'debian:12',
  namespace: OWN,
  toolsImage,
  imagePullSecrets: [],
});
type Spec = NonNullable<Pod['spec']>;
type Container = Spec['containers'][number];
const [main] = good.spec?.containers ?? [];
const [tools] = good.spec?.initContainers ?? [];

function withSpec(spec: object): object {
  return { ...good, spec: { ...good.spec, ...spec } };
}

function withTools(container: Partial<Container>): object {
  return withSpec({ initContainers: [{ ...tools, ...container }] });
}

function withLabels(labels: object): object {
  return { ...good, metadata: { ...good.metadata, labels: { ...good.metadata.labels, ...labels } } };
}

function withMain(container: Partial<Container>): object {
  return withSpec({ containers: [{ ...main, ...container }] });
}

let client: KubeClient;

/** What the API server says to Berth's controller, with the rights of an administrator. */
async function asController(command: readonly string[], input = ''): Promise<string> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  const user = `system:serviceaccount:${OWN}:berth-controller`;
  const who = ['--kubeconfig', kubeconfig, '--as', user, '--as-group', 'system:masters'];
  const { code, stderr } = await run(program, [...who, ...command], { input });
  return code === 0 ? 'done' : stderr;
}

async function make(pod: object): Promise<string> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...pod });
  return asController(['create', '--dry-run=server', '-f', '-'], input);
}

/** A pod that pulls an image and never runs: there is no such node. */
async function pending(): Promise<AsyncDisposable> {
  // The garbage collector takes what belongs to a pool that is not there.
  await client.create(PODS, { ...good, metadata: { ...good.metadata, ownerReferences: [] } });
  return {
    async [Symbol.asyncDispose]() {
      await client.delete(PODS, { namespace: OWN, name: NAME });
      await waitFor('the pod to be gone', async () => (await client.list(PODS, { namespace: OWN })).items.length === 0);
    },
  };
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
  await client.raw('POST', CLASSES, { metadata: { name: CLASS }, handler: 'any' });
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
  await client.raw('DELETE', `${CLASSES}/${CLASS}`);
  await client.raw('DELETE', `/api/v1/namespaces/${OWN}/serviceaccounts/${ACCOUNT}`);
  await client.close();
});

describe('the controller', () => {
  test('makes the pods that pull images, also private ones', async () => {
    expect(toolsImage).not.toBe('');
    expect(await make(good)).toBe('done');
    expect(await make(withSpec({ imagePullSecrets: [{ name: 'own' }] }))).toBe('done');
  });

  test('makes them where a webhook of the cluster gives every pod a label', async () => {
    expect(await make(withLabels({ 'istio.io/rev': 'default', team: 'infra' }))).toBe('done');
  });

  const elsewhere = { ...good, metadata: { ...good.metadata, namespace: 'default' } };
  const ONE = 'runs one program';
  const mount = { name: 'berth-tools', mountPath: '/.berth', readOnly: true };
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
      'no volume but the empty one',
    ],
    ['with the priority of an instance', withSpec({ priorityClassName: 'berth-on-demand' }), 'the PriorityClass'],
    [
      'that tolerates every taint',
      withSpec({ tolerations: [{ operator: 'Exists' }] }),
      'tolerates taints by their names',
    ],
    ['under a RuntimeClass', withSpec({ runtimeClassName: CLASS }), 'names no node'],
    ['with a GPU', withMain({ resources: { limits: { 'nvidia.com/gpu': '1' } } }), 'without capabilities'],
    [
      'as root',
      withMain({ securityContext: { ...main?.securityContext, runAsNonRoot: false } }),
      'without capabilities',
    ],
    ['with a Secret as a variable', withMain({ env: [{ name: 'A', ...secret }] }), 'without capabilities'],
    ['with a program of its own', withMain({ command: ['sh', '-c', 'id'] }), ONE],
    ['with the program of the image', withMain({ volumeMounts: [] }), ONE],
    ['with a second container', withSpec({ containers: [main, { ...main, name: 'b' }] }), ONE],
    ['with arguments', withMain({ args: ['id'] }), ONE],
    ['with a second mount', withMain({ volumeMounts: [mount, { ...mount, mountPath: '/b' }] }), ONE],
    ['with a folder of the tools in their place', withMain({ volumeMounts: [{ ...mount, subPath: 'b' }] }), ONE],
    ['that writes to the tools', withMain({ volumeMounts: [{ ...mount, readOnly: false }] }), ONE],
    ['with tools of its own', withTools({ image: 'evil:1' }), ONE],
    ['with another program before', withTools({ command: ['sh', '-c', 'id'] }), ONE],
    ['with the program of the image before', withTools({ command: [] }), ONE],
    ['with arguments before', withTools({ args: ['/evil'] }), ONE],
    ['with a second program before', withSpec({ initContainers: [tools, { ...tools, name: 'b' }] }), ONE],
    ['with no program before', withSpec({ initContainers: [] }), ONE],
    ['with a program beside', withTools({ restartPolicy: 'Always' }), ONE],
    ['with the tools elsewhere', withTools({ volumeMounts: [{ ...mount, mountPath: '/b' }] }), ONE],
    [
      'with a second empty volume',
      withSpec({ volumes: [...(good.spec?.volumes ?? []), { name: 'b', emptyDir: {} }] }),
      'no volume but the empty one',
    ],
    ['that starts again', withSpec({ restartPolicy: 'Always', activeDeadlineSeconds: undefined }), 'ends once'],
    ['without an end', withSpec({ activeDeadlineSeconds: undefined }), 'ends once'],
    ['with a label of a role', withLabels({ 'app.kubernetes.io/component': 'api' }), 'its two labels'],
    ['with another value of a label', withLabels({ 'app.kubernetes.io/managed-by': 'Helm' }), 'its two labels'],
  ])('makes none %s', async (_what, pod, refusal) => {
    expect(await make(pod)).toContain(refusal);
  });

  test.each([
    ['its mark', ['label', 'pod', NAME, `${IMAGE_PULL_LABEL}-`]],
    ['its labels', ['label', 'pod', NAME, `${IMAGE_PULL_LABEL}-`, 'app.kubernetes.io/component=api']],
    ['its annotations', ['annotate', 'pod', NAME, 'k8s.v1.cni.cncf.io/networks=a']],
    ['its image', ['set', 'image', `pod/${NAME}`, 'pull=evil:1']],
  ])('changes not %s once it is there', async (_what, command) => {
    await using _ = await pending();
    expect(await asController(['-n', OWN, ...command, '--dry-run=server'])).toMatch(/is not changed|changes nothing/);
  });
});
