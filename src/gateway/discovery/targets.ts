import type { EndpointSlice, Pod, Service } from '../../kube/types.ts';
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
  const origin = `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
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
      origin,
      restarts: '',
      server,
      available: up,
    };
  }
  const pod = sources.pod(`${server.namespace}/${ref.name ?? ''}`);
  if (pod === undefined || (ref.uid !== undefined && pod.metadata.uid !== ref.uid)) return undefined;
  if (!addressesOf(pod).includes(address)) return undefined;
  const restarts = (pod.status?.containerStatuses ?? [])
    .map((status) => `${status.imageID}#${status.restartCount}`)
    .join(' ');
  const of = `${pod.metadata.uid ?? ref.name ?? ''}:${port}`;
  return {
    key: `${server.uid}@${of}`,
    place: `${server.namespace}@${of}`,
    origin,
    restarts,
    server,
    available: up && pod.metadata.deletionTimestamp === undefined,
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
