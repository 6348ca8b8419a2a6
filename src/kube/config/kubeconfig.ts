import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { parse } from 'yaml';
import type { Clock } from '../../lib/clock.ts';
import { trimEnd } from '../../lib/trim-end.ts';
import type { KubeEndpoint, TlsOptions } from './connection.ts';
import { KubeConfigError } from '../errors.ts';
import { type HeaderSource, tokenFile } from './token-file.ts';

// A plugin's credential has an end, which the library knows. This spares a call into the library per request.
const REUSE_MS = 10_000;

/** One kubeconfig file, with absolute paths: relative ones start at its folder, as with kubectl. */
interface File {
  path: string;
  config: KubeConfig;
  /** The same, for what KubeConfig does not read. */
  content: { users?: { name: string; user?: { tokenFile?: string } }[] } | null;
}

async function readKubeconfig(path: string): Promise<File> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KubeConfigError(`The kubeconfig ${path} cannot be read.`, { cause: error });
  });
  try {
    const content = parse(text) as File['content'];
    const config = new KubeConfig();
    config.loadFromString(text);
    config.makePathsAbsolute(resolve(dirname(path)));
    return { path, config, content };
  } catch (error) {
    // The message of a parser quotes the line, which may hold a token.
    const why = error instanceof Error && !error.name.startsWith('YAML') ? `not valid: ${error.message}` : 'not YAML.';
    throw new KubeConfigError(`The kubeconfig ${path} is ${why}`);
  }
}

/** The entry of this name, with its file. The first file that has one wins, as with kubectl. */
function named<T>(
  files: readonly File[],
  entry: (config: KubeConfig) => T | null,
): { file: File; entry: T } | undefined {
  for (const file of files) {
    const found = entry(file.config);
    if (found) return { file, entry: found };
  }
  return undefined;
}

/**
 * As client-go reads them: data wins over a file (rest.dataFromSliceOrFile), a password that is not there is empty, and a
 * server may be without TLS, as that of `kubectl proxy` is. KubeConfig would take the file, take the word "undefined", and
 * refuse such a server unless it is told not to verify what it has not.
 */
function asClientGo(cluster: Cluster, user: User): { cluster: Cluster; user: User } {
  return {
    cluster: {
      ...cluster,
      ...(cluster.caData && { caFile: undefined }),
      ...(cluster.server.startsWith('http:') && { skipTLSVerify: true }),
    },
    user: {
      ...user,
      password: user.password ?? '',
      ...(user.certData && { certFile: undefined }),
      ...(user.keyData && { keyFile: undefined }),
    },
  };
}

function tokenFileOf({ path, content }: File, name: string): string | undefined {
  const found = content?.users?.find((one) => one.name === name)?.user?.tokenFile;
  return found ? resolve(dirname(path), found) : undefined;
}

interface Credentials {
  tls: TlsOptions;
  headers: Record<string, string>;
}

/** What KubeConfig gives for a cluster and a user. It caches what a plugin says; a new one asks the plugin again. */
class Login {
  readonly #parts: { cluster: Cluster; user: User };
  readonly #where: string;
  #config: KubeConfig;

  constructor(parts: { cluster: Cluster; user: User }, where: string) {
    this.#parts = parts;
    this.#where = where;
    this.#config = this.#load();
  }

  async ask(refresh: boolean): Promise<Credentials> {
    if (refresh) this.#config = this.#load();
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options).catch((error: unknown) => {
      const why = error instanceof Error ? error.message.trim() : String(error);
      const message = `${this.#where}: the credentials of the user "${this.#parts.user.name}" cannot be had: ${why}`;
      throw new KubeConfigError(message, { cause: error });
    });
    const { ca, cert, key, servername, auth } = options as TlsOptions & { auth?: string };
    const headers = Object.entries((options.headers ?? {}) as Record<string, string>);
    return {
      tls: {
        rejectUnauthorized: options.rejectUnauthorized !== false,
        ...(ca && { ca }),
        ...(cert && { cert }),
        ...(key && { key }),
        ...(servername && { servername }),
      },
      headers: {
        ...(auth && { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }),
        ...Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
      },
    };
  }

  #load(): KubeConfig {
    const { cluster, user } = this.#parts;
    const config = new KubeConfig();
    config.loadFromClusterAndUser(cluster, user);
    return config;
  }
}

/** Headers and client certificate from an exec or auth-provider plugin. Both may change. */
async function pluginEndpoint(
  plain: Omit<KubeEndpoint, 'tls' | 'headers'>,
  login: Login,
  clock: Clock,
): Promise<KubeEndpoint> {
  let answer = await login.ask(false);
  let askedAt = clock.monotonic();
  const headers: HeaderSource = async (call) => {
    const refresh = call?.refresh === true;
    if (refresh || clock.monotonic() - askedAt > REUSE_MS) {
      const { tls } = answer;
      answer = await login.ask(refresh);
      if (answer.tls.cert === tls.cert && answer.tls.key === tls.key) answer = { ...answer, tls };
      askedAt = clock.monotonic();
    }
    return answer.headers;
  };
  return {
    ...plain,
    get tls() {
      return answer.tls;
    },
    headers,
  };
}

/** The endpoint of one context. */
export async function kubeconfigEndpoint(
  paths: readonly string[],
  options: { context?: string | undefined; clock: Clock },
): Promise<KubeEndpoint> {
  // kubectl skips files that do not exist, as long as one does.
  const present = paths.filter((path) => existsSync(path));
  const files = await Promise.all((present.length === 0 ? paths : present).map((path) => readKubeconfig(path)));
  const where = paths.join(', ');
  const name = options.context ?? files.map(({ config }) => config.getCurrentContext()).find(Boolean);
  if (!name) throw new KubeConfigError(`${where} has no current-context. Set it with: kubectl config use-context NAME`);
  const context = named(files, (config) => config.getContextObject(name))?.entry;
  if (!context)
    throw new KubeConfigError(`${where} has no context named "${name}". List them with: kubectl config get-contexts`);
  const missing = (kind: string, of: string) =>
    new KubeConfigError(`${where} has no ${kind} named "${of}", which the context "${name}" uses. Add it.`);
  const cluster = named(files, (config) => config.getCluster(context.cluster));
  if (!cluster) throw missing('cluster', context.cluster);
  const user = named(files, (config) => config.getUser(context.user));
  if (context.user && !user) throw missing('user', context.user);
  // The connections of Berth go to the server itself.
  if (cluster.entry.proxyUrl) {
    const next = `Berth does not support proxy-url, which cluster "${context.cluster}" has. Remove it.`;
    throw new KubeConfigError(`${where}: ${next}`);
  }
  // KubeConfig takes the name along, and not the groups: others would act than the file says.
  if (user?.entry.impersonateUser)
    throw new KubeConfigError(`${where}: Berth does not support impersonation ("as"). Use a context without it.`);

  // KubeConfig takes nothing of a cluster, its CA included, that has no user beside it.
  const parts = asClientGo(cluster.entry, user?.entry ?? { name: '' });
  const plain = { server: trimEnd(cluster.entry.server, '/'), namespace: context.namespace || 'default' };
  const login = new Login(parts, where);
  if (parts.user.exec || parts.user.authProvider) return pluginEndpoint(plain, login, options.clock);
  const { tls, headers } = await login.ask(false);
  // A token file wins over an inline token, as in client-go.
  const file = user && tokenFileOf(user.file, context.user);
  return { ...plain, tls, headers: file ? tokenFile(file, options.clock) : () => Promise.resolve(headers) };
}
