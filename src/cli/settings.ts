import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CliFailure, EXIT, usageFailure } from './failure.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of another program, for which the API key is nothing. */
export function withoutKey({ BERTH_API_KEY: _key, ...others }: Environment): Record<string, string | undefined> {
  return others;
}

/** Where the server is, and the key to it. */
export interface Access {
  /** Ends in /api/v1. */
  url: string;
  key: string;
  /** Whether the key may be sent where others on the network can read it. */
  plainHttp?: boolean;
}

/** The folder of settings and host keys (XDG Base Directory Specification). */
export function settingsFolder(env: Environment): string {
  return join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'berth');
}

const API = '/api/v1';

/** The address of a page of the dashboard, beside the base URL of the API. */
export function dashboardOf(url: string, below = ''): string {
  return `${url.slice(0, -API.length)}/dashboard${below}`;
}

/** The profile of a login without a name. */
export const DEFAULT = 'default';

/** Names of files on every system. */
const PROFILE = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const FILE = /^access(?:-(.+))?\.json$/;

/** The profile of BERTH_PROFILE, else the one that was chosen. Throws a usage failure for what is no name. */
export async function profileOf(env: Environment): Promise<string> {
  const name = env['BERTH_PROFILE'] || undefined;
  const chosen = name ?? (await readFile(chosenFile(env), 'utf8').catch(() => DEFAULT)).trim();
  if (PROFILE.test(chosen)) return chosen;
  throw usageFailure(`${chosen} is no name of a profile.`, 'Write lower-case letters, digits, dots and hyphens.');
}

const chosenFile = (env: Environment): string => join(settingsFolder(env), 'profile');

async function fileOf(env: Environment): Promise<string> {
  const profile = await profileOf(env);
  return join(settingsFolder(env), profile === DEFAULT ? 'access.json' : `access-${profile}.json`);
}

/** The profiles that have a login. */
export async function profilesOf(env: Environment): Promise<string[]> {
  const files = await readdir(settingsFolder(env)).catch((): string[] => []);
  const named = files.flatMap((file) => {
    const match = FILE.exec(file);
    return match === null ? [] : [match[1] ?? DEFAULT];
  });
  return named.filter((name) => PROFILE.test(name));
}

/** Chooses the profile of the next commands. */
export async function chooseProfile(env: Environment, profile: string): Promise<void> {
  await writePrivate(env, chosenFile(env), `${profile}\n`);
}

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/**
 * The base URL of what people type: with or without scheme, brackets of IPv6 and /api/v1. Throws a usage failure for other
 * text, which repeats no password or code that may be in it.
 */
export function baseUrl(text: string): string {
  const host = isIPv6(text) ? `[${text}]` : text;
  const url = urlOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(host) ? host : `https://${host}`);
  const hasMore = /[@?#]/.test(text);
  if (url === undefined || !/^https?:$/.test(url.protocol) || hasMore) {
    const what = hasMore ? 'A text with a user name, a password, a query or a fragment' : text;
    throw usageFailure(`${what} is no address of a server: write, for example, https://gpu.example.com.`);
  }
  const { origin, pathname } = url;
  let end = pathname.length;
  while (pathname[end - 1] === '/') end -= 1;
  while (pathname.endsWith(API, end)) end -= API.length;
  return `${origin}${pathname.slice(0, end)}${API}`;
}

/** Whether others on the network can read what is sent to this address. */
function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** Throws a failure where a key would be sent in the clear and nobody said that it may. */
export function requireEncrypted({ url, plainHttp }: Pick<Access, 'url' | 'plainHttp'>): void {
  if (plainHttp === true || !isInTheClear(url)) return;
  throw new CliFailure(`${url} is not encrypted: others on the network could read the key. Nothing was sent.`, {
    exitCode: EXIT.usage,
    next: 'Use https://. If only you can read this network, run berth login --plain-http URL, or set BERTH_PLAIN_HTTP=true.',
  });
}

/** The token as it may stand in a header. Throws a failure that does not repeat it. */
export function checkedKey(text: string): string {
  const key = text.trim();
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(key)) return key;
  throw new CliFailure(
    key === '' ? 'There was no API key in the input.' : 'This is no API key: it has other characters.',
    {
      exitCode: EXIT.usage,
      next: 'Copy the key from the page /dashboard of the server, where it is shown once.',
    },
  );
}

/** What `berth login` stored for a profile. */
export async function storedAccess(env: Environment): Promise<Access | undefined> {
  const path = await fileOf(env);
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { mode } = await stat(path);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    const next = `Run: chmod 600 ${path}. If others may have read it, make a new key.`;
    throw new CliFailure(`Other users of this machine can read the key in ${path}.`, { exitCode: EXIT.access, next });
  }
  const { url, key, plainHttp } = (parsed(text) ?? {}) as Partial<Access>;
  if (typeof url === 'string' && typeof key === 'string') {
    return { url: baseUrl(url), key, ...(plainHttp === true && { plainHttp }) };
  }
  throw new CliFailure(`The file ${path} cannot be read.`, { exitCode: EXIT.access, next: 'Run berth login URL.' });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Server and key: BERTH_URL and BERTH_API_KEY, else what `berth login` stored. A stored key goes to the server that it was
 * stored for, and to no other.
 */
export async function readAccess(env: Environment): Promise<Access> {
  const [url, key] = [env['BERTH_URL'] || undefined, env['BERTH_API_KEY'] || undefined];
  if (url !== undefined && key !== undefined) return { url: baseUrl(url), key: checkedKey(key), ...allowedBy(env) };
  const stored = await storedAccess(env);
  const next = 'Run berth login URL, or set BERTH_URL and BERTH_API_KEY.';
  if (url === undefined && key !== undefined) {
    if (stored !== undefined) return { ...stored, key: checkedKey(key), ...allowedBy(env) };
    throw new CliFailure('BERTH_API_KEY is set, and BERTH_URL is not.', { exitCode: EXIT.access, next });
  }
  if (stored === undefined) {
    const profile = await profileOf(env);
    const where = profile === DEFAULT ? '' : ` in the profile ${profile}`;
    throw new CliFailure(`You are not signed in${where}.`, { exitCode: EXIT.access, next });
  }
  if (url !== undefined && baseUrl(url) !== stored.url) {
    throw new CliFailure(`BERTH_URL is ${baseUrl(url)}, and the stored key is for ${stored.url}.`, {
      exitCode: EXIT.access,
      next: 'Set BERTH_API_KEY too, or unset BERTH_URL.',
    });
  }
  return { ...stored, ...allowedBy(env) };
}

/** What the environment allows beside an address in it. */
export function allowedBy(env: Environment): Pick<Access, 'plainHttp'> {
  return env['BERTH_PLAIN_HTTP'] === 'true' ? { plainHttp: true } : {};
}

/** Writes a file that its owner alone can read, as a whole or not at all. */
export async function writePrivate(env: Environment, path: string, text: string): Promise<void> {
  await mkdir(settingsFolder(env), { recursive: true, mode: 0o700 });
  // Node's cryptography takes long to load, and most commands write nothing.
  const { randomBytes } = await import('node:crypto');
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await chmod(draft, 0o600);
  await rename(draft, path);
}

/** Stores server and key. Returns the path. */
export async function storeAccess(env: Environment, access: Access): Promise<string> {
  const path = await fileOf(env);
  await writePrivate(env, path, `${JSON.stringify(access)}\n`);
  return path;
}

/** Removes the stored key. */
export async function forgetAccess(env: Environment): Promise<void> {
  await rm(await fileOf(env), { force: true });
}
