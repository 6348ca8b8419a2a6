import { readFileSync } from 'node:fs';
import { startBerth } from '../../support/berth-process.ts';
import { compileBerth } from '../compiled.ts';

/** What the controller's own metrics say. */
export interface Measured {
  /** Resident set, what of it are pages of files, which all processes of a node share, and V8's heap in use, MiB. */
  rssMb: number;
  fileMb: number;
  heapMb: number;
  /** What V8 has reserved for its heap, and buffers outside of it, MiB. */
  reservedMb: number;
  externalMb: number;
  /** Event-loop lag since the last measurement, 99th percentile and largest, ms. */
  lagMs: { p99: number; max: number };
  /** Writes since the start, Events among them; the lease has a client of its own and is not. */
  writes: number;
  /** CPU time of the process so far, milliseconds: the figure that other work on the machine changes least. */
  cpuMs: number;
}

export interface RunningController extends AsyncDisposable {
  measure(): Promise<Measured>;
}

const WRITE = /^rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"[^}]*\} (\S+)$/gm;

function single(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
}

/** Pages of files in the memory of a process, MiB (proc_pid_status(5)). */
function filePages(pid: number | undefined): number {
  const kib = /^RssFile:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kib) / 1024);
}

/** In a container Node limits its heap to half of the container's memory, for which the chart has 1 GiB. */
const FLAGS = ['--max-semi-space-size=4', '--v8-pool-size=1', '--max-old-space-size=512'];

/** The controller role as the chart runs it, compiled, in a process of its own. `namespace` is for its lease. */
export async function startController(kubeconfig: string, namespace: string): Promise<RunningController> {
  const env = { NODE_ENV: 'production', BERTH_LOG_LEVEL: 'error', MALLOC_ARENA_MAX: '2' };
  const program = [...FLAGS, compileBerth()];
  const controller = await startBerth(kubeconfig, 'controller', namespace, { env, program });
  return {
    async measure() {
      const text = await (await fetch(`${controller.metricsUrl}/metrics`)).text();
      return {
        rssMb: Math.round(single(text, 'process_resident_memory_bytes') / 2 ** 20),
        fileMb: filePages(controller.child.pid),
        heapMb: Math.round(single(text, 'nodejs_heap_size_used_bytes') / 2 ** 20),
        reservedMb: Math.round(single(text, 'nodejs_heap_size_total_bytes') / 2 ** 20),
        externalMb: Math.round(single(text, 'nodejs_external_memory_bytes') / 2 ** 20),
        lagMs: {
          p99: single(text, 'nodejs_eventloop_lag_p99_seconds') * 1000,
          max: single(text, 'nodejs_eventloop_lag_max_seconds') * 1000,
        },
        writes: [...text.matchAll(WRITE)].reduce((sum, [, count]) => sum + Number(count), 0),
        cpuMs: single(text, 'process_cpu_seconds_total') * 1000,
      };
    },
    [Symbol.asyncDispose]: () => controller[Symbol.asyncDispose](),
  };
}
