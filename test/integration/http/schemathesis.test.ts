import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Cluster } from '../../support/http/api.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import { testWith } from '../../support/needs.ts';
import { pythonWith } from '../../support/python.ts';

const SUPPORT = join(import.meta.dirname, '../../support/schemathesis');
const SEED = process.env['BERTH_SEED'] ?? '1';
/** A run takes forty seconds of one core; the share of one core that is left beside all other tests was a fifth. */
const LONGEST_MS = 600_000;
const EXAMPLES = process.env['BERTH_EXAMPLES'] ?? '10';

let cluster: Cluster;
let token: string;
let python: string;
let folder: string;
let stopGranter: () => void;

beforeAll(async () => {
  python = join(await pythonWith('schemathesis', join(SUPPORT, 'requirements.txt')), 'bin/python');
  folder = await mkdtemp(join(tmpdir(), 'schemathesis-'));
  cluster = await openCluster();
  const namespace = await cluster.namespace('http-schemathesis');
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves: (name) => name === namespace });
  token = await cluster.key(namespace);
  process.stderr.write(
    `schemathesis: seed ${SEED}, ${EXAMPLES} examples; BERTH_SEED and BERTH_EXAMPLES change them.\n`,
  );
}, 300_000);

afterAll(async () => {
  stopGranter();
  await rm(folder, { recursive: true });
  await cluster[Symbol.asyncDispose]();
});

/** Exit code and report of a run against the description that the API serves. */
function schemathesis(...options: string[]): Promise<{ code: unknown; report: string }> {
  const all = ['--seed', SEED, '--max-examples', EXAMPLES, '--continue-on-failure', '--no-color'];
  const args = ['-m', 'schemathesis.cli', '--config-file', join(SUPPORT, 'schemathesis.toml'), 'run'];
  const command = [...args, `${cluster.api.url}/openapi.json`, ...all, '--generation-database', 'none', ...options];
  return new Promise((resolve) => {
    execFile(python, command, { cwd: folder, maxBuffer: 2 ** 26, timeout: LONGEST_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, report: `${stdout}${stderr}` });
    });
  });
}

testWith('Python venv').each([
  ['with a key', () => ['--header', `Authorization: Bearer ${token}`]],
  ['without a key', () => []],
])(
  'generated requests %s get no 5xx and nothing that is not documented',
  { timeout: LONGEST_MS },
  async (_name, options) => {
    const { code, report } = await schemathesis(...options());
    expect(code, report).toBe(0);
    expect(report).toMatch(/Selected: (\d+)\/\1\n +Tested: \1\n/);
  },
);
