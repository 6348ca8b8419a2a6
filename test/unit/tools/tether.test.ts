import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { identify, isAlive } from '../../../tools/lib/process-identity.ts';
import { waitFor } from '../../../tools/lib/wait.ts';

const HOLDER = `
import { spawn } from 'node:child_process';
import { Tether } from '${join(ROOT, 'tools/lib/tether.ts')}';
const tether = new Tether();
const child = spawn('sh', ['-c', 'sleep 300 & sleep 300'], { detached: true, stdio: 'ignore' });
tether.hold(child.pid);
console.log(child.pid);
setInterval(() => {}, 1000);
`;

it('kills a child and its children when the process that holds the tether is killed', async () => {
  const holder = spawn(process.execPath, ['--input-type=module-typescript', '-e', HOLDER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(holder.stdout, 'data')) as [Buffer];
  const child = identify(Number(line.toString().trim()));
  if (child === undefined) throw new Error('the child did not start');
  expect(isAlive(child)).toBe(true);
  holder.kill('SIGKILL');
  expect(await waitFor(() => !isAlive(child), { timeout: 5000 })).toBe(true);
});
