import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../../tools/lib/paths.ts';
import { type Outcome, run } from '../../tools/lib/shell.ts';
import { blocksOf } from './manual.ts';

/** Minutes are short for a machine that does other things, too. */
const TIMEOUT_MS = 240_000;

/**
 * Pastes the first five minutes of README.md into a shell in this folder, which becomes the reader's home, with the
 * lines that `npm start` writes to `.berth/local.env`. The shell ends at the first command that fails, and names it.
 */
export async function pasteReadme(folder: string, variables: string): Promise<Outcome> {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const blocks = blocksOf(readme).filter(({ chapter }) => chapter === 'The first five minutes');
  // The label is for a model server, which a reader has elsewhere.
  const pasted = blocks.map(({ commands }) => commands).filter((text) => !text.startsWith('kubectl label'));
  if (pasted.length !== 2) throw new Error(`README.md has ${pasted.length} blocks to paste.`);
  await mkdir(join(folder, '.berth'), { recursive: true });
  await symlink(join(ROOT, 'deploy'), join(folder, 'deploy'));
  await writeFile(join(folder, '.berth/local.env'), variables);
  const script = ['set -eEu', 'trap \'echo "failed: $BASH_COMMAND" >&2\' ERR', ...pasted].join('\n');
  const { BERTH_URL: _url, BERTH_API_KEY: _key, ...others } = process.env;
  return run('bash', ['-c', script], { env: { ...others, HOME: folder }, cwd: folder, timeout: TIMEOUT_MS });
}
