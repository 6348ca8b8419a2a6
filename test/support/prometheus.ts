import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../tools/lib/free-ports.ts';
import { findProgram, type Outcome, run } from '../../tools/lib/shell.ts';
import { debProgram } from './deb-program.ts';
import { waitFor } from './wait-for.ts';

const PACKAGE = 'prometheus';
/** Rules are evaluated once a second. */
const PAUSE_MS = 250;

/** Whether this machine has Prometheus, or apt to bring it. */
export async function hasPrometheus(): Promise<boolean> {
  const found = await Promise.all(['promtool', 'apt-get'].map((name) => findProgram(name)));
  return found.some((path) => path !== undefined);
}

/** Runs promtool with files of these names and texts; in the arguments `{}` stands for their folder. */
export async function promtool(args: readonly string[], files: Readonly<Record<string, string>>): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-promtool-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const program = await debProgram('promtool', PACKAGE);
    return await run(
      program,
      args.map((arg) => arg.replace('{}', folder)),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** One result of an instant query. */
export interface Found {
  metric: Record<string, string>;
  value: number;
}

export interface Prometheus extends AsyncDisposable {
  /** Without a slash at its end. */
  url: string;
  /** Scrapes these from now on in place of those before. */
  scrape(targets: Targets): Promise<void>;
  query(expression: string): Promise<Found[]>;
  /** Names of the alerts that fire after a moment, sorted, each once. Ask again: it takes its time between two answers. */
  firing(): Promise<string[]>;
}

/** URLs of processes by the name of their job. */
type Targets = Readonly<Record<string, string>>;

/** A Prometheus that scrapes these URLs every second, and evaluates these rules as often once it has scraped each. */
export async function startPrometheus(targets: Targets, rules: string): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-prometheus-'));
  const [port = 0] = await freePorts(1);
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [join(folder, 'rules.yaml')],
    scrape_configs: [{ job_name: 'berth', file_sd_configs: [{ files: [join(folder, 'targets.json')] }] }],
  };
  async function scrape(next: Targets): Promise<void> {
    const groups = Object.entries(next).map(([job, url]) => ({ targets: [new URL(url).host], labels: { job } }));
    // In one step: Prometheus reads the file when it changes.
    await writeFile(join(folder, 'targets.new'), JSON.stringify(groups));
    await rename(join(folder, 'targets.new'), join(folder, 'targets.json'));
  }
  await scrape(targets);
  await writeFile(join(folder, 'config.yaml'), JSON.stringify(config));
  const flags = {
    'config.file': join(folder, 'config.yaml'),
    'storage.tsdb.path': join(folder, 'data'),
    'web.listen-address': `127.0.0.1:${port}`,
    'web.enable-lifecycle': '',
    'log.level': 'warn',
  };
  const child = spawn(
    await debProgram('prometheus', PACKAGE),
    Object.entries(flags).map(([name, value]) => (value === '' ? `--${name}` : `--${name}=${value}`)),
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const base = `http://127.0.0.1:${port}`;
  await waitFor('Prometheus to be ready', async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended by itself:\n${log}`);
    return fetch(`${base}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  async function query(expression: string): Promise<Found[]> {
    const answer = await fetch(`${base}/api/v1/query?${String(new URLSearchParams({ query: expression }))}`);
    const body = (await answer.json()) as {
      data?: { result: { metric: Record<string, string>; value: [number, string] }[] };
      error?: string;
    };
    if (body.data === undefined) throw new Error(`${expression}: ${body.error}`);
    return body.data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }
  const all = Object.keys(targets).length;
  await waitFor('the first scrapes', async () => (await query(`count(up) == ${all}`)).length > 0);
  await writeFile(join(folder, 'rules.yaml'), rules);
  const reloaded = await fetch(`${base}/-/reload`, { method: 'POST' });
  if (!reloaded.ok) throw new Error(await reloaded.text());
  return {
    url: base,
    scrape,
    query,
    async firing() {
      await delay(PAUSE_MS);
      const found = await query('count by (alertname) (ALERTS{alertstate="firing"})');
      return found.map(({ metric }) => metric['alertname'] ?? '').toSorted();
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
