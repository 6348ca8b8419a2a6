import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { COMMANDS } from '../../../src/cli/table/commands.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

const berth = (...words: string[]) => promisify(execFile)(process.execPath, [join(ROOT, 'src/main.ts'), ...words]);

it('lists every command of renters', async () => {
  const { stdout } = await berth('--help');
  const [, listed = ''] = /^Renters, .*:\n {2}(.*)$/m.exec(stdout) ?? [];
  expect(listed.split(', ')).toEqual([...new Set(COMMANDS.map(({ name }) => name.split(' ')[0]))]);
});

it('knows a command of the operator from one of renters by its second word', async () => {
  await expect(berth('keys', 'create', '--bogus')).rejects.toMatchObject({
    stderr: expect.stringContaining("Unknown option '--bogus'"),
  });
  expect((await berth('keys', '--help')).stdout).toContain('List your SSH keys');
});
