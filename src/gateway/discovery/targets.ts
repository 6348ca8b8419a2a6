import type { InferencePool } from '../../kube/inference-pools.ts';
import { hasEnded } from '../../kube/pod-phase.ts';
import { selects } from '../../kube/selector.ts';
import type { EndpointSlice, Pod, Service } from '../../kube/types.ts';
import type { Addresses } from './tenant-bounds.ts';
import type { ServerSpec, Target } from './types.ts';

export interface TargetSources {
  server: ServerSpec;
  service: Service;
  slices: readonly EndpointSlice[];
  /** Finds a pod by `namespace/name`. */
  pod: (key: string) => Pod | undefined;
  /** Only here does an address count that no pod stands behind. */
  trustedNamespace: string;
}

type SliceEndpoint = NonNullable<EndpointSlice['endpoints']>[number];

/**
 * The addresses of one server. An address counts only when the pod that the slice names exists and has it: a tenant,
 * who may write slices, must not point the gateway at the cloud's metadata service, the API server or another tenant.
 */
export function targetsOf(sources: TargetSources): Target[] {
  const found = new Map<string, Target>();
  for (const slice of sources.slices) {
    if (slice.addressType === 'FQDN') continue;
    const port = portOf(sources.server, sources.service, slice);
    if (port === undefined) continue;
    for (const endpoint of slice.endpoints ?? []) {
      const target = targetOf(sources, endpoint, port);
      // The same pod may be in two slices while Kubernetes rebalances them.
      if (target !== undefined && !(found.get(target.key)?.available ?? false)) found.set(target.key, target);
    }
  }
  return [...found.values()];
}

function targetOf(sources: TargetSources, endpoint: SliceEndpoint, port: number): Target | undefined {
  const { server } = sources;
  const address = endpoint.addresses[0];
  if (address === undefined) return undefined;
  const { ready, serving, terminating } = endpoint.conditions ?? {};
  // Absent means yes for `ready` and, in turn, `serving` (discovery/v1 API reference).
  const up = (ready ?? true) && (serving ?? true) && !(terminating ?? false);
  const ref = endpoint.targetRef;
  if (ref?.kind !== 'Pod') {
    if (server.namespace !== sources.trustedNamespace) return undefined;
    const of = `${address}:${port}`;
    return {
      key: `${server.uid}@${of}`,
      place: `${server.namespace}@${of}`,
      origin: originOf(address, port),
      restarts: '',
      server,
      available: up,
    };
  }
  const pod = sources.pod(`${server.namespace}/${ref.name ?? ''}`);
  if (pod === undefined || (ref.uid !== undefined && pod.metadata.uid !== ref.uid)) return undefined;
  // The address of a pod that has ended may be another pod's by now.
  if (hasEnded(pod) || !addressesOf(pod).includes(address)) return undefined;
  return targetAt(pod, { server, address, port, isReady: up });
}

/** Each port of a pool at each pod that it selects, `most` at most. A pool without a selector has none. */
export function poolTargetsOf(
  server: ServerSpec,
  { spec = {} }: InferencePool,
  pods: Iterable<Pod>,
  most = Infinity,
): Addresses {
  const { selector, targetPorts = [], appProtocol = 'http' } = spec;
  const targets: Target[] = [];
  let found = 0;
  if (Object.keys(selector?.matchLabels ?? {}).length === 0 || appProtocol !== 'http') return { targets, ignored: 0 };
  for (const pod of pods) {
    const address = pod.status?.podIP ?? '';
    if (address === '' || hasEnded(pod) || !selects(selector, pod.metadata.labels)) continue;
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
    const ports = targetPorts.slice(0, most - targets.length);
    found += targetPorts.length;
    for (const { number: port } of ports) targets.push(targetAt(pod, { server, address, port, isReady }));
  }
  return { targets, ignored: found - targets.length };
}

function originOf(address: string, port: number): string {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

interface Place {
  server: ServerSpec;
  address: string;
  port: number;
  isReady: boolean;
}

function targetAt(pod: Pod, { server, address, port, isReady }: Place): Target {
  const restarts = (pod.status?.containerStatuses ?? [])
    .map((status) => `${status.imageID}#${status.restartCount}`)
    .join(' ');
  const of = `${pod.metadata.uid ?? pod.metadata.name}:${port}`;
  return {
    key: `${server.uid}@${of}`,
    place: `${server.namespace}@${of}`,
    origin: originOf(address, port),
    restarts,
    server,
    available: isReady && pod.metadata.deletionTimestamp === undefined,
  };
}

function addressesOf(pod: Pod): (string | undefined)[] {
  return [pod.status?.podIP, ...(pod.status?.podIPs ?? []).map(({ ip }) => ip)];
}

/** The container port behind the Service port that the annotation names, by default that of `http`, else the first. */
function portOf(server: ServerSpec, service: Service, slice: EndpointSlice): number | undefined {
  const ports = slice.ports ?? [];
  const declared = service.spec?.ports ?? [];
  if (server.port === undefined) {
    const first =
      ports.find(({ name }) => name === 'http') ?? ports.find(({ name }) => (name ?? '') === (declared[0]?.name ?? ''));
    return (first ?? ports[0])?.port;
  }
  const wanted = declared.find(({ name, port }) => name === server.port || String(port) === server.port);
  if (wanted !== undefined) return ports.find(({ name }) => (name ?? '') === (wanted.name ?? ''))?.port;
  return ports.find(({ name, port }) => name === server.port || String(port) === server.port)?.port;
}
