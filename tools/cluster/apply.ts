import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { AlreadyExistsError, KubeError, NotFoundError, QuotaUncountedError } from '../../src/kube/errors.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  NODES,
  type CustomResourceDefinition,
  type KubeObject,
  type ResourceType,
} from '../../src/kube/types.ts';
import { LocalFailure } from '../lib/failure.ts';
import { fleetNodes, otherMakersNodes } from './fleet/nodes.ts';
import { ROOT } from '../lib/paths.ts';
import { waitFor } from '../lib/wait.ts';

const FIELD_MANAGER = 'berth-local';
/** Milliseconds until Kubernetes has counted what a new quota limits. */
const COUNTED_TIMEOUT = 60_000;

/** Applies every CRD under crds/ and resolves when the API server serves them all. */
export async function applyDefinitions(client: KubeClient, signal: AbortSignal): Promise<void> {
  const definitions = (await readManifests(join(ROOT, 'crds'))) as CustomResourceDefinition[];
  const options = { fieldManager: FIELD_MANAGER, force: true, signal };
  await Promise.all(definitions.map((object) => client.apply(CUSTOM_RESOURCE_DEFINITIONS, object, options)));
  const served = await waitFor(
    async () => {
      const { items } = await client.list(CUSTOM_RESOURCE_DEFINITIONS, { signal });
      const established = new Set(items.filter(isEstablished).map(({ metadata }) => metadata.name));
      return definitions.every(({ metadata }) => established.has(metadata.name));
    },
    { timeout: 30_000, interval: 100, signal },
  );
  if (served === true) return;
  throw new LocalFailure('The API server does not serve the custom resources.', 'Read `kubectl get crd -o yaml`.');
}

/**
 * Applies the admission policy that gives new instances their finalizer, where the API server knows such policies, and
 * resolves when it is in force. Until the policy has the schema of the kind, the API server answers 503, and until it has
 * counted what a quota of the namespace limits, 403.
 */
export async function applyFinalizers(client: KubeClient, signal: AbortSignal): Promise<void> {
  const { resources } = await discover(client, 'admissionregistration.k8s.io/v1', signal);
  if (!resources.some(({ kind }) => kind === 'MutatingAdmissionPolicy')) return;
  await applyAll(client, await readManifests(join(ROOT, 'deploy/finalizers')), signal);
  const path = '/apis/berth.dev/v1alpha1/namespaces/default/gpuinstances?dryRun=All';
  const probe = {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'GPUInstance',
    metadata: { generateName: 'probe-' },
    spec: { gpu: { count: 1 } },
  };
  const hasFinalizer = async (): Promise<boolean> => {
    try {
      const { metadata } = await client.raw<KubeObject>('POST', path, probe, { signal });
      return metadata.finalizers !== undefined;
    } catch (error) {
      if (error instanceof KubeError && (error.status === 503 || error instanceof QuotaUncountedError)) return false;
      throw error;
    }
  };
  if ((await waitFor(hasFinalizer, { timeout: 60_000, interval: 100, signal })) === true) return;
  throw new LocalFailure('The API server gives a GPUInstance no finalizer.', 'Read .berth/logs/kube-apiserver.log.');
}

/** Makes an object, as soon as Kubernetes has counted what the quota of its namespace limits. */
export async function applyCounted<T extends KubeObject>(
  client: Pick<KubeClient, 'apply'>,
  type: ResourceType<T>,
  { object, signal }: { object: Parameters<typeof client.apply<T>>[1]; signal: AbortSignal },
): Promise<T> {
  let refusal: unknown;
  const made = await waitFor(
    () =>
      client.apply(type, object, { fieldManager: FIELD_MANAGER, signal }).catch((error: unknown) => {
        refusal = error;
        if (error instanceof QuotaUncountedError) return undefined;
        throw error;
      }),
    { timeout: COUNTED_TIMEOUT, interval: 200, signal },
  );
  if (made === undefined) throw refusal;
  return made;
}

function isEstablished({ status }: CustomResourceDefinition): boolean {
  return (
    status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') ?? false
  );
}

/** Creates the namespace of Berth's own Lease and Secrets, unless it is there. */
export async function createNamespace(client: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  try {
    await client.create(NAMESPACES, { metadata: { name } }, { signal });
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
}

export interface FleetOptions {
  /** Whether kind made the cluster: it has a storage class, and pods of its own that a simulated node must not get. */
  kind: boolean;
  /** Whether the fleet has nodes of AMD and Intel too, and their pools. */
  otherMakers: boolean;
  /** Whether a DRA driver gives the GPUs of the real node. */
  dra: boolean;
  signal: AbortSignal;
}

/** Creates the simulated nodes, and applies the storage class and the pool with its prices. */
export async function applyFleet(client: KubeClient, { kind, otherMakers, dra, signal }: FleetOptions): Promise<void> {
  const nodes = otherMakers ? [...fleetNodes(kind), ...otherMakersNodes(kind)] : fleetNodes(kind);
  await Promise.all(nodes.map((node) => createOnce(client, node, signal)));
  const manifests = await readManifests(join(ROOT, 'deploy/local/manifests'));
  await applyAll(client, kind ? manifests.filter((object) => object.kind !== 'StorageClass') : manifests, signal);
  if (otherMakers) await applyAll(client, await readManifests(join(ROOT, 'deploy/local/makers')), signal);
  if (dra) await applyAll(client, await readManifests(join(ROOT, 'deploy/local/dra')), signal);
}

/** Applies objects of any kind, one after the other. */
export async function applyAll(client: KubeClient, objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
  for (const object of objects) {
    const type = await typeOf(client, object, signal);
    await client.apply(type, object, { fieldManager: FIELD_MANAGER, force: true, signal });
  }
}

/** Creates a node unless it is there. Server-side apply would drop its status. */
async function createOnce(client: KubeClient, node: KubeObject, signal: AbortSignal): Promise<void> {
  try {
    await client.create(NODES, node, { signal });
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
}

/** The objects of every YAML file of a folder, in the order of the files' names. */
export async function readManifests(folder: string): Promise<KubeObject[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).toSorted();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return texts.flatMap(parseManifests);
}

/** The objects of a YAML text; empty documents are left out. */
export function parseManifests(text: string): KubeObject[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/** Finds the plural name and scope of an object's kind in the discovery of the API server. */
async function typeOf(
  client: KubeClient,
  { apiVersion = '', kind = '' }: KubeObject,
  signal: AbortSignal,
): Promise<ResourceType> {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  // A new kind appears in discovery after a moment.
  const found = await waitFor(
    async () => {
      try {
        const { resources } = await discover(client, apiVersion, signal);
        return resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
      } catch (error) {
        if (error instanceof NotFoundError) return undefined;
        throw error;
      }
    },
    { timeout: 10_000, interval: 100, signal },
  );
  if (found === undefined)
    throw new LocalFailure(`The cluster does not know the kind ${kind} (${apiVersion}).`, 'Apply crds/ first.');
  return { group: group ?? '', version: version ?? '', kind, plural: found.name, namespaced: found.namespaced };
}

function discover(client: KubeClient, apiVersion: string, signal: AbortSignal): Promise<Discovery> {
  const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return client.raw<Discovery>('GET', path, undefined, { signal });
}

interface Discovery {
  resources: DiscoveredResource[];
}

interface DiscoveredResource {
  name: string;
  kind: string;
  namespaced: boolean;
}
