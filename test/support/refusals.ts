import { randomBytes } from 'node:crypto';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { VALIDATING_BINDINGS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS } from '../../src/kube/installation-types.ts';
import { RESOURCE_QUOTAS } from '../../src/kube/types.ts';
import type { TestNamespace } from './test-cluster.ts';
import { waitFor } from './wait-for.ts';

/** Something of the operator's that makes the API server refuse what Berth writes in one namespace. */
export interface Refusal extends AsyncDisposable {
  name: string;
  /** Safe to repeat. */
  remove: () => Promise<void>;
}

function refusal(name: string, remove: () => Promise<void>): Refusal {
  return { name, remove, [Symbol.asyncDispose]: remove };
}

const ADMISSION = { apiVersion: 'admissionregistration.k8s.io/v1' };

function nameOf(what: string): string {
  return `${what}-${randomBytes(4).toString('hex')}`;
}

function inside(namespace: string): object {
  return { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
}

/** Whether the API server would make a pod in the namespace. */
async function isAllowed(client: KubeClient, namespace: string): Promise<boolean> {
  const pod = { metadata: { generateName: 'probe-' }, spec: { containers: [{ name: 'main', image: 'none' }] } };
  return client.raw('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod).then(
    () => true,
    () => false,
  );
}

/** A policy that lets no pods be made there, in force. */
export async function refusePods({ client, name: namespace }: TestNamespace): Promise<Refusal> {
  const name = nameOf('no-pods');
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
  await client.create(VALIDATING_POLICIES, {
    ...ADMISSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { matchConstraints: { resourceRules: [rule] }, validations: [{ expression: 'false' }] },
  });
  const matchResources = { namespaceSelector: inside(namespace) };
  await client.create(VALIDATING_BINDINGS, {
    ...ADMISSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'], matchResources },
  });
  await waitFor('the policy to be in force', async () => !(await isAllowed(client, namespace)));
  return refusal(name, async () => {
    await client.delete(VALIDATING_BINDINGS, { name });
    await client.delete(VALIDATING_POLICIES, { name });
  });
}

/** A webhook that is asked about each new GPUInstance there, and does not answer: the API server fails. */
export async function addDeadWebhook({ client, name: namespace }: TestNamespace): Promise<Refusal> {
  const name = nameOf('dead');
  const rule = { apiGroups: ['berth.dev'], apiVersions: ['*'], operations: ['CREATE'], resources: ['gpuinstances'] };
  await client.create(VALIDATING_WEBHOOKS, {
    ...ADMISSION,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `${name}.test.berth.dev`,
        // Nothing listens there.
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [rule],
        namespaceSelector: inside(namespace),
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds: 1,
      },
    ],
  });
  return refusal(name, () => client.delete(VALIDATING_WEBHOOKS, { name }));
}

/** A quota that lets no objects of this kind of Berth be made there, in force. */
export async function refuseRecords({ client, name: namespace }: TestNamespace, kind: string): Promise<Refusal> {
  const ref = { namespace, name: nameOf('no-records') };
  await client.create(RESOURCE_QUOTAS, { metadata: ref, spec: { hard: { [`count/${kind}.berth.dev`]: '0' } } });
  await waitFor('the quota to be counted', async () => {
    const { status } = await client.get(RESOURCE_QUOTAS, ref);
    return Object.keys(status?.hard ?? {}).length > 0 && Object.keys(status?.used ?? {}).length > 0;
  });
  return refusal(ref.name, () => client.delete(RESOURCE_QUOTAS, ref));
}
