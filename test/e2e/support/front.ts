import { SERVICES } from '../../../src/kube/types.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';
import { type RoundRobin, roundRobin } from '../../support/http/round-robin.ts';
import { NAMESPACE } from './release.ts';
import type { World } from './world.ts';

interface Ingress {
  spec: { rules: { http: { paths: { path: string; backend: { service: { name: string } } }[] } }[] };
}

/** Where the pods behind a Service listen. A container that starts again keeps the address of its pod. */
async function podsOf(world: World, name: string): Promise<URL[]> {
  const { spec } = await world.client.get(SERVICES, { namespace: NAMESPACE, name });
  const targetPort = spec?.ports?.[0]?.targetPort;
  const labels = Object.entries(spec?.selector ?? {}).map(([label, value]) => `${label}=${value}`);
  const pods = await world.pods(NAMESPACE, labels.join(','));
  return pods
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ spec: { containers } = { containers: [] }, status }) => {
      const port = containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === targetPort);
      return new URL(`http://${status?.podIP ?? ''}:${port?.containerPort ?? 0}`);
    });
}

/**
 * What an Ingress controller makes of the release's Ingress, on this machine: it ends TLS, and each path goes to the pods
 * of its Service in turns, whoever asks.
 */
export async function openFront(world: World): Promise<RoundRobin> {
  const path = `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/ingresses/berth-api`;
  const { spec } = await world.client.raw<Ingress>('GET', path);
  const rules = (spec.rules[0]?.http.paths ?? []).toSorted((a, b) => b.path.length - a.path.length);
  const routes = await Promise.all(
    rules.map(async (rule) => ({ path: rule.path, pods: await podsOf(world, rule.backend.service.name) })),
  );
  const identity = await issue(await createAuthority('the front of the test'), {
    commonName: 'localhost',
    hosts: ['localhost'],
  });
  const front = await roundRobin((asked) => routes.find((route) => asked.startsWith(route.path))?.pods ?? [], identity);
  return { ...front, url: front.url.replace('127.0.0.1', 'localhost') };
}
