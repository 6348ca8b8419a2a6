import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { leftoversOf } from '../../../tools/cluster/supervisor/leftovers.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { readRecord } from '../../../tools/cluster/supervisor/record.ts';
import { run } from '../../../tools/lib/shell.ts';
import { waitFor } from '../../../tools/lib/wait.ts';
import { testWith } from '../../support/needs.ts';

const { realNode } = inject('cluster');
const HELPER = join(import.meta.dirname, 'supervisor-process.ts');

let state = '';
let tour = '';
let supervisor: ChildProcess;

async function start(...more: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, [HELPER, state, ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [Buffer | number | null];
  tour = String(output);
  expect(tour).toContain('ready');
  return child;
}

/** Processes whose command line names the state folder, the supervisor aside. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== supervisor.pid && Number(name) !== process.pid)
    .map((pid) => commandLine(pid))
    .filter((line) => line.includes(folder));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

describe.runIf(process.platform === 'linux')('a cluster and its supervisor', () => {
  beforeAll(async () => {
    state = mkdtempSync(join(tmpdir(), 'berth-supervisor-'));
    supervisor = await start('server');
  });

  afterAll(async () => {
    if (supervisor.exitCode === null && supervisor.signalCode === null) {
      supervisor.kill('SIGKILL');
      await once(supervisor, 'exit');
    }
    rmSync(state, { recursive: true, force: true });
  });

  testWith('ssh', 'curl')('prints a tour whose lines work one by one', async () => {
    const lines = tour.split('line by line:')[1]?.split('\n') ?? [];
    // Each line must succeed by itself, with what the lines before it left in the shell.
    const script = ['set -e', `cd '${ROOT}'`, ...lines].join('\n');
    const { code, stdout, stderr } = await run('bash', ['-c', script], {
      timeout: 100_000,
      // So that the host key of the tour goes to no file of the person who runs the tests.
      env: { ...process.env, XDG_CONFIG_HOME: state },
    });
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/^OFFER [^]*^i-[a-z0-9]+$[^]*^label +mine$[^]*"object":"list"/m);
    expect(stdout).toMatch(/gpuinstance.berth.dev\/sample\s+\S/);
    if (realNode !== undefined) expect(stdout).toMatch(/BERTH_GPU_NAME=NVIDIA-L4/);
    expect(readFileSync(join(state, 'local.env'), 'utf8')).toMatch(
      /^BERTH_URL=.*\/api\/v1\nBERTH_API_KEY=\S+\nKUBECONFIG='\//,
    );
  });

  it('leaves no process, link or cgroup when the supervisor is killed, and starts again in the same folder', async () => {
    const record = readRecord(state);
    expect(record?.initPid !== undefined).toBe(realNode !== undefined);
    expect(processesOf(state).length).toBeGreaterThan(4);
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    const gone = await waitFor(
      async () => processesOf(state).length === 0 && (record === undefined || (await leftoversOf(record)).length === 0),
      { timeout: 90_000 },
    );
    expect(gone, processesOf(state).join('\n')).toBe(true);
    await expect(fetch(`${record?.url}/offers`)).rejects.toThrow('fetch failed');

    supervisor = await start('server');
    expect(readRecord(state)).toMatchObject({ phase: 'ready', supervisor: { pid: supervisor.pid } });
  });

  it('refuses a second supervisor in the same folder', async () => {
    const second = spawn(process.execPath, [HELPER, state], { stdio: ['ignore', 'ignore', 'pipe'] });
    const [output] = (await once(second.stderr, 'data')) as [Buffer];
    expect(String(output)).toContain(`running already (process ${supervisor.pid})`);
    await once(second, 'exit');
    expect(readRecord(state)).toMatchObject({ phase: 'ready', supervisor: { pid: supervisor.pid } });
  });

  it('takes everything apart at one Ctrl-C, which reaches it more than once', async () => {
    const record = readRecord(state);
    supervisor.kill('SIGINT');
    await delay(20);
    supervisor.kill('SIGINT');
    expect(await once(supervisor, 'exit')).toEqual([0, null]);
    expect(processesOf(state)).toEqual([]);
    expect(record === undefined ? ['no record'] : await leftoversOf(record)).toEqual([]);
    const stale = new Set(['cluster', 'supervisor.json', 'supervisor.lock', 'kubeconfig', 'local.env']);
    expect(readdirSync(state).filter((name) => stale.has(name))).toEqual([]);
  });
});
