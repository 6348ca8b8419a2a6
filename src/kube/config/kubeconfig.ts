import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import {
  type Cluster,
  type Context,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { parse } from 'yaml';
import type { Clock } from '../../lib/clock.ts';
import { trimEnd } from '../../lib/trim-end.ts';
import type { KubeEndpoint, TlsOptions } from './connection.ts';
import { KubeConfigError } from '../errors.ts';
import { type HeaderSource, tokenFile } from './token-file.ts';

// A plugin's credential has an end, which the library knows. This spares a call into the library per request.
const REUSE_MS = 10_000;

/** A user with the field that client-node does not read. */
type FileUser = User & { tokenFile?: string };

/** One kubeconfig file, with absolute paths: relative ones start at its folder, as with kubectl. */
interface File {
  current: string | undefined;
  clusters: readonly Cluster[];
  contexts: readonly Context[];
  users: readonly FileUser[];
}

interface Content {
  'current-context'?: string;
  clusters?: unknown;
  contexts?: unknown;
  users?: { user?: { tokenFile?: string } }[];
}

function read(content: Content, folder: string): File {
  const absolute = <K extends string>(name: K, path: string | undefined) =>
    path ? ({ [name]: resolve(folder, path) } as Record<K, string>) : undefined;
  return {
    current: content['current-context'],
    clusters: newClusters(content.clusters).map((one) => ({ ...one, ...absolute('caFile', one.caFile) })),
    contexts: newContexts(content.contexts),
    users: newUsers(content.users).map((one, index) => ({
      ...one,
      ...absolute('certFile', one.certFile),
      ...absolute('keyFile', one.keyFile),
      ...absolute('tokenFile', content.users?.[index]?.user?.tokenFile),
    })),
  };
}

async function readKubeconfig(path: string): Promise<File> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KubeConfigError(`The kubeconfig ${path} cannot be read.`, { cause: error });
  });
  try {
    // An empty file says nothing, as with kubectl.
    const content = parse(text, { merge: true }) as Content | null;
    return read(content ?? {}, resolve(dirname(path)));
  } catch (error) {
    // The message of a parser quotes the line, which may hold a token.
    const why = error instanceof Error && !error.name.startsWith('YAML') ? `not valid: ${error.message}` : 'not YAML.';
    throw new KubeConfigError(`The kubeconfig ${path} is ${why}`);
  }
}

/** The entry of this name. The first file that has one wins, as with kubectl. */
function named<T extends { name: string }>(
  files: readonly File[],
  entries: (file: File) => readonly T[],
  name: string,
): T | undefined {
  return files.flatMap(entries).find((entry) => entry.name === name);
}

/** Data wins over a file, as in client-go (rest.dataFromSliceOrFile). */
async function dataOrFile(data: string | undefined, file: string | undefined): Promise<Buffer | undefined> {
  if (data) return Buffer.from(data, 'base64');
  return file ? readFile(file) : undefined;
}

async function tlsOf(cluster: Cluster, user: User): Promise<TlsOptions> {
  const ca = await dataOrFile(cluster.caData, cluster.caFile);
  const cert = await dataOrFile(user.certData, user.certFile);
  const key = await dataOrFile(user.keyData, user.keyFile);
  return {
    rejectUnauthorized: !cluster.skipTLSVerify,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(cluster.tlsServerName && { servername: cluster.tlsServerName }),
  };
}

/** What the file itself says: a token wins over a password. */
function headersOf({ token, username, password }: User): Record<string, string> {
  if (token) return { authorization: `Bearer ${token}` };
  if (!username) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };
}

interface Credentials {
  tls: TlsOptions;
  headers: Record<string, string>;
}

/** With headers and a client certificate from an exec or auth-provider plugin. Both may change. */
async function pluginEndpoint(
  plain: Pick<KubeEndpoint, 'server' | 'namespace'>,
  ask: (refresh: boolean) => Promise<Credentials>,
  clock: Clock,
): Promise<KubeEndpoint> {
  let answer = await ask(false);
  let askedAt = clock.monotonic();
  const headers: HeaderSource = async (call) => {
    const refresh = call?.refresh === true;
    if (refresh || clock.monotonic() - askedAt > REUSE_MS) {
      const { tls } = answer;
      answer = await ask(refresh);
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

/** Asks the plugin of a user, and takes the token of the file, where it has one too, as KubeConfig does. */
async function pluginOf(user: User, tls: TlsOptions) {
  // Loaded on demand: it brings a class for each kind of the API.
  const { Plugin } = await import('./plugin.ts');
  const plugin = new Plugin(user);
  return async (refresh: boolean): Promise<Credentials> => {
    const answer = await plugin.ask(refresh);
    const own = headersOf(user);
    return { tls: { ...tls, ...answer.tls }, headers: user.token ? own : { ...own, ...answer.headers } };
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
  const name = options.context ?? files.map(({ current }) => current).find(Boolean);
  if (!name) throw new KubeConfigError(`${where} has no current-context. Set it with: kubectl config use-context NAME`);
  const context = named(files, ({ contexts }) => contexts, name);
  if (!context)
    throw new KubeConfigError(`${where} has no context named "${name}". List them with: kubectl config get-contexts`);
  const missing = (kind: string, of: string) =>
    new KubeConfigError(`${where} has no ${kind} named "${of}", which the context "${name}" uses. Add it.`);
  const cluster = named(files, ({ clusters }) => clusters, context.cluster);
  if (!cluster) throw missing('cluster', context.cluster);
  const user = named(files, ({ users }) => users, context.user);
  if (context.user && !user) throw missing('user', context.user);
  // The connections of Berth go to the server itself.
  if (cluster.proxyUrl) {
    const next = `Berth does not support proxy-url, which cluster "${context.cluster}" has. Remove it.`;
    throw new KubeConfigError(`${where}: ${next}`);
  }
  // client-node reads the name, and not the groups: others would act than the file says.
  if (user?.impersonateUser)
    throw new KubeConfigError(`${where}: Berth does not support impersonation ("as"). Use a context without it.`);

  const failed = (error: unknown): never => {
    const why = error instanceof Error ? error.message.trim() : String(error);
    const message = `${where}: the credentials of the user "${user?.name ?? ''}" cannot be had: ${why}`;
    throw new KubeConfigError(message, { cause: error });
  };
  const plain = { server: trimEnd(cluster.server, '/'), namespace: context.namespace || 'default' };
  const tls = await tlsOf(cluster, user ?? { name: '' }).catch(failed);
  if (user?.exec || user?.authProvider) {
    const ask = await pluginOf(user, tls);
    return pluginEndpoint(plain, (refresh) => ask(refresh).catch(failed), options.clock);
  }
  // A token file wins over an inline token, as in client-go.
  if (user?.tokenFile) return { ...plain, tls, headers: tokenFile(user.tokenFile, options.clock) };
  const headers = user ? headersOf(user) : {};
  return { ...plain, tls, headers: () => Promise.resolve(headers) };
}
