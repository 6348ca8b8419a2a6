import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { KubeEndpoint, TlsOptions } from './connection.ts';
import { KubeConfigError } from '../errors.ts';
import { pluginEndpoint } from './kubeconfig-plugin.ts';
import { type HeaderSource, tokenFile } from './token-file.ts';

const text = z.string().optional();

const CLUSTER = z.object({
  server: z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': text,
  'proxy-url': text,
});

const USER = z.object({
  token: text,
  tokenFile: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  username: text,
  password: text,
  as: text,
  exec: z.unknown().optional(),
  'auth-provider': z.unknown().optional(),
});

const CONTEXT = z.object({ cluster: z.string(), user: text, namespace: text });

const KUBECONFIG = z.object({
  'current-context': text,
  clusters: z.array(z.object({ name: z.string(), cluster: CLUSTER })).nullish(),
  users: z.array(z.object({ name: z.string(), user: USER.nullish() })).nullish(),
  contexts: z.array(z.object({ name: z.string(), context: CONTEXT })).nullish(),
});

type Cluster = z.infer<typeof CLUSTER>;
type User = z.infer<typeof USER>;

/** One kubeconfig file. Its relative paths start at its folder, as with kubectl. */
interface File {
  path: string;
  content: z.infer<typeof KUBECONFIG>;
}

async function readKubeconfig(path: string): Promise<File> {
  const source = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KubeConfigError(`The kubeconfig ${path} cannot be read.`, { cause: error });
  });
  const parsed = KUBECONFIG.safeParse(parseYaml(source, path));
  if (parsed.success) return { path, content: parsed.data };
  throw new KubeConfigError(`The kubeconfig ${path} is not valid: ${z.prettifyError(parsed.error)}`);
}

function parseYaml(source: string, path: string): unknown {
  try {
    return parse(source);
  } catch {
    // The parser's message quotes the line, which may hold a token.
    throw new KubeConfigError(`The kubeconfig ${path} is not YAML.`);
  }
}

/** Base64 data wins over a file, as in client-go's rest.dataFromSliceOrFile. */
async function material(file: string, data: string | undefined, path: string | undefined): Promise<Buffer | undefined> {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64');
  if (path === undefined || path === '') return undefined;
  const absolute = resolve(dirname(file), path);
  return readFile(absolute).catch((error: unknown) => {
    throw new KubeConfigError(`${absolute}, named in ${file}, cannot be read.`, { cause: error });
  });
}

async function tlsOf(
  cluster: { file: string; value: Cluster },
  user: { file: string; value: User },
): Promise<TlsOptions> {
  const ca = await material(
    cluster.file,
    cluster.value['certificate-authority-data'],
    cluster.value['certificate-authority'],
  );
  const cert = await material(user.file, user.value['client-certificate-data'], user.value['client-certificate']);
  const key = await material(user.file, user.value['client-key-data'], user.value['client-key']);
  const servername = cluster.value['tls-server-name'];
  return {
    rejectUnauthorized: cluster.value['insecure-skip-tls-verify'] !== true,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(servername !== undefined && servername !== '' && { servername }),
  };
}

function headersOf(user: { file: string; value: User }, clock: Clock): HeaderSource {
  const { token, tokenFile: path, username, password } = user.value;
  // A token file wins over an inline token, as in client-go.
  if (path) return tokenFile(resolve(dirname(user.file), path), clock);
  const fixed: Record<string, string> = {};
  if (token) fixed['authorization'] = `Bearer ${token}`;
  else if (username) {
    fixed['authorization'] = `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
  }
  return () => Promise.resolve(fixed);
}

/** The entry of this name, with its file. The first file that has one wins, as with kubectl. */
function named<T extends { name: string }>(files: File[], list: (file: File) => T[] | null | undefined, name: string) {
  for (const file of files) {
    const entry = list(file)?.find((candidate) => candidate.name === name);
    if (entry) return { file: file.path, entry };
  }
  return undefined;
}

/** The endpoint of one context. Only for exec and auth-provider plugins it loads client-node: some 80 MB. */
export async function kubeconfigEndpoint(
  paths: readonly string[],
  options: { context?: string | undefined; clock: Clock },
): Promise<KubeEndpoint> {
  // kubectl skips files that do not exist, as long as one does.
  const present = paths.filter((path) => existsSync(path));
  const files = await Promise.all((present.length === 0 ? paths : present).map((path) => readKubeconfig(path)));
  const where = paths.join(', ');
  const name = options.context ?? files.map((file) => file.content['current-context']).find(Boolean);
  if (!name) throw new KubeConfigError(`${where} has no current-context. Set it with: kubectl config use-context NAME`);
  const context = named(files, (file) => file.content.contexts, name)?.entry.context;
  if (!context)
    throw new KubeConfigError(`${where} has no context named "${name}". List them with: kubectl config get-contexts`);
  const cluster = named(files, (file) => file.content.clusters, context.cluster);
  if (!cluster)
    throw new KubeConfigError(
      `${where} has no cluster named "${context.cluster}", which the context "${name}" uses. Add it.`,
    );
  const user = named(files, (file) => file.content.users, context.user ?? '');
  if (context.user && !user)
    throw new KubeConfigError(
      `${where} has no user named "${context.user}", which the context "${name}" uses. Add it.`,
    );
  if (cluster.entry.cluster['proxy-url']) {
    throw new KubeConfigError(
      `${where}: Berth does not support proxy-url, which cluster "${context.cluster}" has. Remove it.`,
    );
  }
  if (user?.entry.user?.as)
    throw new KubeConfigError(`${where}: Berth does not support impersonation ("as"). Use a context without it.`);

  const clusterPart = { file: cluster.file, value: cluster.entry.cluster };
  const userPart = { file: user?.file ?? where, value: user?.entry.user ?? {} };
  const endpoint: KubeEndpoint = {
    server: clusterPart.value.server.replace(/\/+$/, ''),
    namespace: context.namespace || 'default',
    tls: await tlsOf(clusterPart, userPart),
    headers: headersOf(userPart, options.clock),
  };
  if (!userPart.value.exec && !userPart.value['auth-provider']) return endpoint;
  return pluginEndpoint(endpoint, { path: userPart.file, user: context.user ?? '', clock: options.clock });
}
