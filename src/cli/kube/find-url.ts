import { CliFailure } from '../failure.ts';
import { baseUrl, type Environment } from '../settings.ts';
import { ForwardedPort } from './forward.ts';
import { type Kubectl, withNext } from './kubectl.ts';

/** How to reach the server. */
export interface Route {
  url: string;
  close: () => Promise<void>;
}

interface Service {
  metadata: { name: string; namespace: string };
  spec: { ports: { name?: string; port: number; targetPort?: number | string }[] };
}

const LABELS = 'app.kubernetes.io/name=berth,app.kubernetes.io/component=api';
const NEXT = 'Set BERTH_URL to the address of the server; your operator knows it.';

/**
 * The port of a Service that leads to where the api role takes every caller. Where it is behind proxies it has another port
 * for them, at which it believes what they say about clients: that is for nobody else.
 */
function portOf({ spec }: Service): number | undefined {
  return spec.ports.find(({ name, targetPort }) => name === 'http' && targetPort === 'http')?.port;
}

/** The namespace of Berth in the documents. */
const USUAL = 'berth-system';

/**
 * The address in BERTH_URL, else a forward to the Service of the api role through the API server of the cluster. Only
 * Berth's namespace is looked at: a Service with the same labels in another one may be of a tenant who wants the key.
 */
export async function findRoute(
  kubectl: Kubectl,
  { env, sleep }: { env: Environment; sleep: (ms: number) => Promise<void> },
): Promise<Route> {
  const known = env['BERTH_URL'];
  if (known) return { url: baseUrl(known), close: () => Promise.resolve() };
  const home = env['BERTH_NAMESPACE'] || USUAL;
  const next = `If Berth is in another namespace than ${home}, set BERTH_NAMESPACE. Or set BERTH_URL to the address of the server; your operator knows both.`;
  const text = await kubectl
    .run(['get', 'services', `--namespace=${home}`, '-l', LABELS, '-o', 'json'])
    .catch((error: unknown) => {
      throw withNext(error, next);
    });
  const { items } = JSON.parse(text) as { items: Service[] };
  const [target, ...others] = items.flatMap((service) => {
    const port = portOf(service);
    return port === undefined ? [] : [{ service: service.metadata.name, port }];
  });
  if (target === undefined) throw new CliFailure(`The namespace ${home} has no Service of Berth.`, { next });
  if (others.length > 0)
    throw new CliFailure(`The namespace ${home} has ${others.length + 1} Services of Berth.`, { next: NEXT });
  const forwarded = await ForwardedPort.open(kubectl, { namespace: home, ...target }, sleep).catch((error: unknown) => {
    throw withNext(error, NEXT);
  });
  return { url: baseUrl(forwarded.url), close: () => forwarded.close() };
}
