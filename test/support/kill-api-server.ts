import { spawn } from 'node:child_process';
import { openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { waitFor } from './wait-for.ts';

interface Running {
  pid: number;
  argv: string[];
}

function words(path: string): string[] {
  return readFileSync(path, 'utf8').split('\0').slice(0, -1);
}

/** A program of the cluster whose first process is `initPid`, by the name of its file. */
function find(name: string, initPid: number): Running {
  const namespace = readlinkSync(`/proc/${initPid}/ns/pid`);
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const argv = words(`/proc/${entry}/cmdline`);
      if (argv[0]?.endsWith(`/${name}`) !== true) continue;
      if (readlinkSync(`/proc/${entry}/ns/pid`) === namespace) return { pid: Number(entry), argv };
    } catch {
      // Gone while we looked.
    }
  }
  throw new Error(`No ${name} runs in the cluster of process ${initPid}.`);
}

/**
 * Kills the API server of a cluster (SIGKILL), and gives what starts it again with the same words. The new one lives in
 * the cluster's namespaces and ends with them.
 */
export function killApiServer(initPid: number): { restart(client: KubeClient): Promise<void> } {
  const { pid, argv } = find('kube-apiserver', initPid);
  const log = openSync(readlinkSync(`/proc/${pid}/fd/1`), 'a');
  process.kill(pid, 'SIGKILL');
  return {
    restart: async (client) => {
      const inside = ['--target', String(initPid), '--mount', '--pid', '--net', '--uts', '--ipc', '--'];
      spawn('nsenter', [...inside, ...argv], { detached: true, stdio: ['ignore', log, log] }).unref();
      await waitFor(
        'the API server to be ready again',
        async () => {
          const answer = await client.stream('/readyz', {}, {}).catch(() => undefined);
          if (answer !== undefined) await finished(answer.resume());
          return answer !== undefined;
        },
        120_000,
      );
    },
  };
}
