import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { appendFile, chmod, chown, cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { freePorts } from '../../tools/lib/free-ports.ts';
import { cacheFolder } from '../../tools/lib/paths.ts';
import { findProgram, run } from '../../tools/lib/shell.ts';
import { debFiles, unpackDeb } from '../../tools/release/image/debian.ts';
import { waitFor } from './wait-for.ts';

/** PostgreSQL does not run as root: so it runs as nobody there. */
const NOBODY = 65_534;
const PASSWORD = 'Sink-p@ss/word#1';
/** Where Debian has the programs, off the PATH. */
const INSTALLED = '/usr/lib/postgresql/*/bin';

const installed = (): Promise<string | undefined> => findProgram('initdb', globSync(INSTALLED));

/** Whether this machine has PostgreSQL, or apt to bring it. */
export async function hasPostgres(): Promise<boolean> {
  return (await installed()) !== undefined || (await findProgram('apt-get')) !== undefined;
}

/** The packages of the server, and of the libraries that it names. What those need every Debian with curl has. */
async function packages(): Promise<string[]> {
  const needs = async (name: string): Promise<string[]> =>
    [...(await run('apt-cache', ['depends', name])).stdout.matchAll(/Depends: (\S+)/g)].map(([, found = '']) => found);
  const server = (await needs('postgresql')).find((name) => /^postgresql-\d+$/.test(name)) ?? 'postgresql';
  // It compiles with LLVM only what takes long, and runs without. libc is that of the machine.
  const libraries = (await needs(server)).filter((name) => /^lib(?!c6|llvm)/.test(name));
  return [server, ...libraries];
}

/** The programs: those of this machine, or of Debian's packages, which are unpacked into the cache and not installed. */
async function programs(folder: string): Promise<{ bin: string; env: NodeJS.ProcessEnv }> {
  const found = await installed();
  if (found !== undefined) return { bin: dirname(found), env: process.env };
  const cache = join(cacheFolder(process.env), 'postgresql');
  if (globSync(`${cache}${INSTALLED}`).length === 0) {
    await mkdir(dirname(cache), { recursive: true });
    // Whole or not at all: other tests may look for it meanwhile.
    const part = await mkdtemp(`${cache}.`);
    try {
      for (const deb of await debFiles(await packages(), dirname(cache))) await unpackDeb(deb, part);
      await rename(part, cache).catch((error: unknown) => {
        if (globSync(`${cache}${INSTALLED}`).length === 0) throw error;
      });
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  }
  // The cache may be in a home that nobody else may read.
  await cp(cache, join(folder, 'programs'), { recursive: true, verbatimSymlinks: true });
  const [bin = ''] = globSync(join(folder, `programs${INSTALLED}`));
  const libraries = globSync(join(folder, 'programs/usr/lib/*-linux-gnu')).join(':');
  return { bin, env: { ...process.env, LD_LIBRARY_PATH: libraries } };
}

export interface Postgres extends AsyncDisposable {
  port: number;
  /** What no output may have. */
  password: string;
  /** The URL of a database of its own, which is made. `user`: another than its owner, without rights. */
  database(name: string, user?: 'reader'): Promise<string>;
  /** Runs statements in a database. */
  query<T>(url: string, text: string): Promise<T[]>;
}

/** A PostgreSQL at an address of this machine, the loopback by default, with TLS where a certificate is given. */
export async function startPostgres({
  host = '127.0.0.1',
  tls,
}: { host?: string; tls?: { certificate: string; key: string } } = {}): Promise<Postgres> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-postgres-'));
  const data = join(folder, 'data');
  const owner = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const { bin, env } = await programs(folder);
  const [port = 0] = await freePorts(1);
  await writeFile(join(folder, 'password'), PASSWORD);
  for (const [name, text] of Object.entries({ 'server.crt': tls?.certificate, 'server.key': tls?.key })) {
    if (text === undefined) continue;
    await writeFile(join(folder, name), text);
    await chmod(join(folder, name), 0o600);
    if (owner.uid !== undefined) await chown(join(folder, name), owner.uid, owner.gid);
  }
  await chmod(folder, 0o755);
  await mkdir(data);
  if (owner.uid !== undefined) await chown(data, owner.uid, owner.gid);
  async function start(program: string, args: readonly string[]) {
    const child = spawn(join(bin, program), args, { ...owner, env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (log += text));
    return { child, exited: once(child, 'exit'), log: () => log };
  }
  const auth = ['--auth=scram-sha-256', `--pwfile=${join(folder, 'password')}`, '--username=berth', '--no-sync'];
  const initdb = await start('initdb', ['-D', data, ...auth]);
  const [code] = (await initdb.exited) as [number | null];
  if (code !== 0) throw new Error(`initdb failed:\n${initdb.log()}`);
  await appendFile(join(data, 'pg_hba.conf'), 'host all all all scram-sha-256\n');
  const settings = {
    listen_addresses: host,
    port,
    unix_socket_directories: '',
    fsync: 'off',
    ...(tls && { ssl: 'on', ssl_cert_file: join(folder, 'server.crt'), ssl_key_file: join(folder, 'server.key') }),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = await start('postgres', ['-D', data, ...flags]);
  const urlOf = (database: string, user = 'berth'): string =>
    `postgresql://${user}:${encodeURIComponent(PASSWORD)}@${host}:${port}/${database}?sslmode=disable`;
  async function query<T>(url: string, text: string): Promise<T[]> {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(text)).rows as T[];
    } finally {
      await client.end();
    }
  }
  await waitFor('PostgreSQL to be ready', async () => {
    if (server.child.exitCode !== null) throw new Error(`PostgreSQL ended by itself:\n${server.log()}`);
    return query(urlOf('postgres'), 'SELECT 1').then(
      () => true,
      () => false,
    );
  });
  await query(urlOf('postgres'), `CREATE USER reader PASSWORD '${PASSWORD}'`);
  return {
    port,
    password: PASSWORD,
    async database(name, user) {
      const there = `SELECT 1 FROM pg_database WHERE datname = '${name}'`;
      if ((await query(urlOf('postgres'), there)).length === 0)
        await query(urlOf('postgres'), `CREATE DATABASE ${name}`);
      return urlOf(name, user);
    },
    query,
    async [Symbol.asyncDispose]() {
      server.child.kill('SIGQUIT');
      await server.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
