import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { ROOT } from '../lib/paths.ts';
import { NEWEST, renderChart } from './helm.ts';

const HEADER = '# Generated from charts/berth by `npm run manifests`. Do not edit.\n';
const BASE = join(ROOT, 'deploy/base');
const TENANT = join(ROOT, 'deploy/tenant');
const FINALIZERS = join(ROOT, 'deploy/finalizers');

interface Manifest {
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  [field: string]: unknown;
}

/** Labels and annotations for Helm alone. */
const HELM_KEYS = [
  'helm.sh/chart',
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'helm.sh/resource-policy',
];

function without(map: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> | undefined {
  const kept = Object.entries(map ?? {}).filter(([key]) => !keys.includes(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** An object of the chart without Helm's labels and annotations. Selectors keep theirs, and so do the labels of pods. */
export function plainManifest(manifest: Manifest): Manifest {
  const { apiVersion, kind, metadata, ...body } = manifest;
  const { labels, annotations, ...identity } = metadata;
  const plainLabels = without(labels, HELM_KEYS);
  const plainAnnotations = without(annotations, HELM_KEYS);
  return {
    apiVersion,
    kind,
    metadata: {
      ...identity,
      ...(plainLabels && { labels: plainLabels }),
      ...(plainAnnotations && { annotations: plainAnnotations }),
    },
    ...body,
  };
}

/** The objects of a YAML stream, without hooks (tests). */
export function objectsOf(stream: string): Manifest[] {
  return parseAllDocuments(stream)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null)
    .filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined);
}

/** Whether every Kubernetes that Berth supports knows the kind. */
function isForAll({ kind }: Manifest): boolean {
  return !kind.startsWith('MutatingAdmissionPolicy');
}

function fileOf({ kind, metadata }: Manifest): string {
  if (kind === 'CustomResourceDefinition') return 'crds.yaml';
  if (kind.startsWith('ValidatingAdmissionPolicy')) return 'admission.yaml';
  if (kind === 'NetworkPolicy') return 'network.yaml';
  return `${metadata.labels?.['app.kubernetes.io/component'] ?? 'shared'}.yaml`;
}

function toFile(objects: readonly Manifest[]): string {
  const texts = objects.map((object) =>
    stringify(plainManifest(object), { lineWidth: 0, aliasDuplicateObjects: false }),
  );
  return HEADER + texts.join('---\n');
}

function kustomization(namespace: string, resources: readonly string[]): string {
  const body = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', namespace, resources };
  return HEADER + stringify(body);
}

const NAMESPACE: Manifest = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: 'berth-system',
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted', 'app.kubernetes.io/part-of': 'berth' },
  },
};

/** Path -> text of everything generated under deploy/. */
async function manifests(helm: string): Promise<Map<string, string>> {
  const groups = Map.groupBy([NAMESPACE, ...objectsOf(await renderChart(helm, [])).filter(isForAll)], fileOf);
  const files = new Map([...groups].map(([name, objects]) => [join(BASE, name), toFile(objects)]));
  const names = [...groups.keys()].toSorted();
  files.set(join(BASE, 'kustomization.yaml'), kustomization('berth-system', names));
  const tenant = objectsOf(
    await renderChart(helm, [
      '--set',
      'tenants.namespaces={tenant}',
      '--show-only',
      'templates/tenants/namespaces.yaml',
    ]),
  );
  files.set(join(TENANT, 'tenant.yaml'), toFile(tenant));
  const finalizers = await renderChart(helm, [...NEWEST, '--show-only', 'templates/admission/finalizers.yaml']);
  files.set(join(FINALIZERS, 'finalizers.yaml'), toFile(objectsOf(finalizers)));
  files.set(join(TENANT, 'kustomization.yaml'), kustomization('tenant', ['tenant.yaml']));
  return files;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function extras(expected: Map<string, string>): string[] {
  const present = [BASE, FINALIZERS, TENANT].flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  return present.filter((path) => !expected.has(path));
}

/** Writes deploy/base, deploy/finalizers and deploy/tenant from the chart's defaults. */
export async function writeManifests(helm: string): Promise<void> {
  const files = await manifests(helm);
  for (const folder of [BASE, FINALIZERS, TENANT]) mkdirSync(folder, { recursive: true });
  for (const path of extras(files)) rmSync(path);
  for (const [path, text] of files) writeFileSync(path, text);
}

/** The generated files that differ from the chart. */
export async function checkManifests(helm: string): Promise<string[]> {
  const files = await manifests(helm);
  return [...[...files].filter(([path, text]) => textOf(path) !== text).map(([path]) => path), ...extras(files)];
}
