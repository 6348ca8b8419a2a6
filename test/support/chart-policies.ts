import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { run } from '../../tools/lib/shell.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const PATHS = {
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};

interface Document {
  kind: keyof typeof PATHS;
  metadata: { name: string };
  spec: object;
}

/** Has these admission policies of the chart in force in one namespace alone, until the result is disposed of. */
export async function holdPolicies(
  client: KubeClient,
  names: readonly string[],
  namespace: string,
): Promise<AsyncDisposable> {
  const documents = parseAllDocuments(readFileSync(join(ROOT, 'deploy/base/admission.yaml'), 'utf8'))
    .map((one) => one.toJS() as Document)
    .filter(({ kind, metadata }) => kind in PATHS && names.includes(metadata.name));
  const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } };
  for (const { kind, metadata, spec } of documents) {
    const own = kind === 'ValidatingAdmissionPolicyBinding' ? { ...spec, matchResources } : spec;
    await client.raw('POST', `${ADMISSION}/${PATHS[kind]}`, { metadata: { name: metadata.name }, spec: own });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const { kind, metadata } of documents.toReversed())
        await client.raw('DELETE', `${ADMISSION}/${PATHS[kind]}/${metadata.name}`);
    },
  };
}

/** What the API server says to kubectl as a user, by default with the rights of an administrator: `done`, or why not. */
export async function kubectlAs(
  { namespace, user, groups = ['system:masters'] }: { namespace: string; user: string; groups?: readonly string[] },
  command: readonly string[],
  input?: object,
): Promise<string> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  const as = ['--as', user, ...groups.flatMap((group) => ['--as-group', group])];
  const who = ['--kubeconfig', kubeconfig, '-n', namespace, ...as];
  const { code, stderr } = await run(program, [...who, ...command], { input: JSON.stringify(input ?? {}) });
  return code === 0 ? 'done' : stderr;
}
