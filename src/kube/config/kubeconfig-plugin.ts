import type { Clock } from '../../lib/clock.ts';
import type { KubeEndpoint } from './connection.ts';
import type { HeaderSource } from './token-file.ts';

// The plugin knows when its credential expires. This spares a call into the library per request.
const REUSE_MS = 10_000;

interface PluginUser {
  path: string;
  user: string;
  clock: Clock;
}

/** Headers and client certificate from an exec or auth-provider plugin, run by client-node. Both may change. */
export async function pluginEndpoint(plain: KubeEndpoint, options: PluginUser): Promise<KubeEndpoint> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const ask = pluginFor(() => new KubeConfig(), options);
  let answer = await ask(false);
  let tls = { ...plain.tls, ...answer.tls };
  let askedAt = options.clock.monotonic();
  const source: HeaderSource = async (call) => {
    const refresh = call?.refresh === true;
    if (refresh || options.clock.monotonic() - askedAt > REUSE_MS) {
      const { cert, key } = answer.tls;
      answer = await ask(refresh);
      if (answer.tls.cert !== cert || answer.tls.key !== key) tls = { ...plain.tls, ...answer.tls };
      askedAt = options.clock.monotonic();
    }
    return answer.headers;
  };
  return {
    ...plain,
    get tls() {
      return tls;
    },
    headers: source,
  };
}

interface HttpsOptions {
  headers?: Record<string, string>;
  cert?: string;
  key?: string;
}

interface PluginConfig {
  loadFromFile(path: string): void;
  addContext(context: { name: string; cluster: string; user: string }): void;
  setCurrentContext(name: string): void;
  applyToHTTPSOptions(options: HttpsOptions): Promise<void>;
}

const CONTEXT_NAME = 'berth-plugin';

function pluginFor(create: () => PluginConfig, options: PluginUser) {
  const load = (): PluginConfig => {
    const config = create();
    config.loadFromFile(options.path);
    // Only the user matters here; the cluster is known.
    config.addContext({ name: CONTEXT_NAME, cluster: '', user: options.user });
    config.setCurrentContext(CONTEXT_NAME);
    return config;
  };
  let config = load();
  return async (
    refresh: boolean,
  ): Promise<{ headers: Record<string, string>; tls: { cert?: string; key?: string } }> => {
    // The library caches a credential until it expires; only a new instance asks the plugin again.
    if (refresh) config = load();
    const answer: HttpsOptions = {};
    await config.applyToHTTPSOptions(answer);
    const { cert, key } = answer;
    return { headers: lowerCase(answer.headers ?? {}), tls: { ...(cert && { cert }), ...(key && { key }) } };
  };
}

function lowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
