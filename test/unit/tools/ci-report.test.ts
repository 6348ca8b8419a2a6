import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';

/** What a run of CI ends with whose phases left these files. */
async function report(files: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-report-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { code, stdout } = await run(process.execPath, [join(ROOT, '.ci/report.ts'), folder]);
    const times: unknown = JSON.parse(await readFile(join(folder, 'times.json'), 'utf8'));
    return { code, stdout, times };
  } finally {
    await rm(folder, { recursive: true });
  }
}

const resultsOf = (...seconds: number[]): string => {
  const fileOf = (one: number) => ({
    name: join(ROOT, `test/${one}.test.ts`),
    startTime: 1000,
    endTime: 1000 + one * 1000,
  });
  return JSON.stringify({ testResults: seconds.map(fileOf) });
};

it('sums up the tests of all phases, and prints the ten slowest files', async () => {
  const seconds = Array.from({ length: 12 }, (_, index) => index + 1);
  const { code, stdout, times } = await report({
    phases: 'check 0 7\ntest 0 61\nfaults 0 50\n',
    'check.log': 'check:types: ok (3.2 s)\n',
    'test.log': '\u001B[32m✓\u001B[39m all\n10 passed, 0 failed, 1 skipped\n',
    'test.json': resultsOf(...seconds),
    'faults.log': '5 passed, 0 failed\n',
    'faults.json': resultsOf(0.5),
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ +61 s {2}test$/m);
  expect([...stdout.matchAll(/^ +\S+ s {2}test\/(\S+)\.test\.ts$/gm)].map(([, name]) => Number(name))).toEqual(
    seconds.toReversed().slice(0, 10),
  );
  expect(stdout.endsWith('\n15 passed, 0 failed, 1 skipped\n')).toBe(true);
  expect(times).toMatchObject({
    phases: [{ name: 'check', seconds: 7, failed: false }, { name: 'test' }, { name: 'faults' }],
    files: [...seconds.toReversed(), 0.5].map((one) => ({ file: `test/${one}.test.ts`, seconds: one })),
  });
});

it('repeats what failed, and counts a phase that ended before its tests', async () => {
  const { code, stdout } = await report({
    phases: 'check 1 7\ntest 1 61\n',
    'check.log': 'check:types: FAILED (3.2 s)\n',
    'test.log': 'a\n FAIL  one.test.ts\nhow it failed\n3 passed, 2 failed\n',
    'test.json': resultsOf(1),
  });
  expect(code).toBe(1);
  expect(stdout).toContain('== failed: check\ncheck:types: FAILED (3.2 s)\n');
  expect(stdout).toContain('== failed: test\n FAIL  one.test.ts\nhow it failed\n');
  expect(stdout).toMatch(/^ +7 s {2}check, FAILED$/m);
  expect(stdout.endsWith('\n3 passed, 3 failed\n')).toBe(true);
});
