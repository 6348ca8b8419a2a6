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
    code: 2,
    stderr: expect.stringMatching(/^berth: Unknown option '--bogus'[^]*\nRun berth keys create --help\.\n$/),
  });
  expect((await berth('keys', '--help')).stdout).toContain('List your SSH keys');
});

it('tells what a command of the operator takes, without a cluster', async () => {
  const help = (await berth('--help')).stdout;
  const names = ['keys create', 'ssh-config', 'doctor', 'export-usage', 'host-key', 'uninstall'];
  for (const name of names) expect(help).toMatch(new RegExp(`^  ${name} `, 'm'));
  const { stdout } = await berth('keys', 'create', '--help');
  expect(stdout).toMatch(/^Usage: berth keys create \[-n NAMESPACE\] .*\n\nCreate an API key and print its token\.\n$/);
  expect((await berth('help', 'keys', 'create')).stdout).toBe(stdout);
  expect((await berth('host-key', '-h')).stdout).toMatch(/^Usage: berth host-key announce/);
});
