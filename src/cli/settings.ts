import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CliFailure, EXIT, usageFailure } from './failure.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the server is, and the key to it. */
export interface Access {
  /** Ends in /api/v1. */
  url: string;
  key: string;
}

/** The folder of settings and host keys (XDG Base Directory Specification). */
export function settingsFolder(env: Environment): string {
  return join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'berth');
}

const fileOf = (env: Environment): string => join(settingsFolder(env), 'access.json');

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** The base URL of what people type: with or without scheme and /api/v1. Throws a usage failure for other text. */
export function baseUrl(text: string): string {
  const url = urlOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    throw usageFailure(`${text} is no address of a server: write, for example, https://gpu.example.com.`);
  }
  const path = url.pathname.replace(/\/+$/, '').replace(/(\/api\/v1)+$/, '');
  return `${url.origin}${path}/api/v1`;
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

async function storedAccess(env: Environment): Promise<Access | undefined> {
  const path = fileOf(env);
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { mode } = await stat(path);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    const next = `Run: chmod 600 ${path}. If others may have read it, make a new key.`;
    throw new CliFailure(`Other users of this machine can read the key in ${path}.`, { exitCode: EXIT.access, next });
  }
  const { url, key } = (parsed(text) ?? {}) as Partial<Access>;
  if (typeof url === 'string' && typeof key === 'string') return { url: baseUrl(url), key };
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
  if (url !== undefined && key !== undefined) return { url: baseUrl(url), key: checkedKey(key) };
  const stored = await storedAccess(env);
  const next = 'Run berth login URL, or set BERTH_URL and BERTH_API_KEY.';
  if (url === undefined && key !== undefined) {
    if (stored !== undefined) return { url: stored.url, key: checkedKey(key) };
    throw new CliFailure('BERTH_API_KEY is set, and BERTH_URL is not.', { exitCode: EXIT.access, next });
  }
  if (stored === undefined) throw new CliFailure('You are not signed in.', { exitCode: EXIT.access, next });
  if (url !== undefined && baseUrl(url) !== stored.url) {
    throw new CliFailure(`BERTH_URL is ${baseUrl(url)}, and the stored key is for ${stored.url}.`, {
      exitCode: EXIT.access,
      next: 'Set BERTH_API_KEY too, or unset BERTH_URL.',
    });
  }
  return stored;
}

/** Writes a file that its owner alone can read, as a whole or not at all. */
export async function writePrivate(env: Environment, path: string, text: string): Promise<void> {
  await mkdir(settingsFolder(env), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await chmod(draft, 0o600);
  await rename(draft, path);
}

/** Stores server and key. Returns the path. */
export async function storeAccess(env: Environment, access: Access): Promise<string> {
  await writePrivate(env, fileOf(env), `${JSON.stringify(access)}\n`);
  return fileOf(env);
}

/** Removes the stored key. */
export async function forgetAccess(env: Environment): Promise<void> {
  await rm(fileOf(env), { force: true });
}
