import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../../tools/lib/shell.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Process ids, inside the cluster's namespaces, of the programs whose command line the test takes. */
export async function processesOf(initPid: number, matches: (command: string[]) => boolean): Promise<string[]> {
  const proc = `/proc/${initPid}/root/proc`;
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(
    // A process that has ended in between matches nothing.
    pids.map(async (pid) => (await readFile(join(proc, pid, 'cmdline'), 'utf8').catch(() => '')).split('\0')),
  );
  return pids.filter((_, index) => matches(commands[index] ?? []));
}

/** The processes of a role of Berth, one for each replica that runs. */
export function replicasOf(initPid: number, role: string): Promise<string[]> {
  return processesOf(initPid, (command) => command[1] === '/app/main.js' && command[2] === role);
}

/** Kills a process inside the cluster's namespaces, by the id that it has there. */
export async function kill(initPid: number, pid: string): Promise<void> {
  await run('nsenter', ['--target', String(initPid), '--pid', 'sh', '-c', `kill -KILL ${pid}`]);
}

/** The same, and waits until it has let go of its ports: a command line is gone before that. */
export async function killWhole(initPid: number, pid: string): Promise<void> {
  await kill(initPid, pid);
  await waitFor(`the end of process ${pid}`, async () => {
    const stat = await readFile(`/proc/${initPid}/root/proc/${pid}/stat`, 'utf8').catch(() => '');
    return stat === '' || /\) Z /.test(stat);
  });
}
