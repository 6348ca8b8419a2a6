import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../../../src/local/paths.ts';
import { freePorts } from '../../../src/local/ports.ts';
import { waitFor } from '../../support/wait-for.ts';

/** What the controller's own metrics say. */
export interface Measured {
  /** Resident set, and what of it V8's heap has in use, MiB. */
  rssMb: number;
  heapMb: number;
  /** Writes since the start, Events among them; the lease has a client of its own and is not. */
  writes: number;
  /** CPU time of the process so far, milliseconds: the figure that other work on the machine changes least. */
  cpuMs: number;
}

export interface RunningController {
  measure(): Promise<Measured>;
  stop(): Promise<void>;
}

const WRITE = /^rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"[^}]*\} (\S+)$/gm;

function single(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
}

/** The controller role as the chart runs it, compiled, in a process of its own. `namespace` is for its lease. */
export async function startController(kubeconfig: string, namespace: string): Promise<RunningController> {
  const compiled = join(ROOT, 'dist/bench');
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', compiled]);
  const [port = 0] = await freePorts(1);
  const child = spawn(process.execPath, ['--max-semi-space-size=8', join(compiled, 'main.js'), 'controller'], {
    env: {
      ...process.env,
      NODE_ENV: 'production',
      KUBECONFIG: kubeconfig,
      BERTH_NAMESPACE: namespace,
      BERTH_LOG_LEVEL: 'error',
      BERTH_METRICS_ADDR: `127.0.0.1:${port}`,
    },
    stdio: 'inherit',
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor('the controller to be ready', isReady, 60_000);
  return {
    async measure() {
      const text = await (await fetch(`${url}/metrics`)).text();
      return {
        rssMb: Math.round(single(text, 'process_resident_memory_bytes') / 2 ** 20),
        heapMb: Math.round(single(text, 'nodejs_heap_size_used_bytes') / 2 ** 20),
        writes: [...text.matchAll(WRITE)].reduce((sum, [, count]) => sum + Number(count), 0),
        cpuMs: single(text, 'process_cpu_seconds_total') * 1000,
      };
    },
    async stop() {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      await exit;
    },
  };
}
