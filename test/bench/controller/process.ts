import { startBerth } from '../../support/berth-process.ts';
import { compileBerth } from '../compiled.ts';

/** What the controller's own metrics say. */
export interface Measured {
  /** Resident set, and what of it V8's heap has in use, MiB. */
  rssMb: number;
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

/** The controller role as the chart runs it, compiled, in a process of its own. `namespace` is for its lease. */
export async function startController(kubeconfig: string, namespace: string): Promise<RunningController> {
  const env = { NODE_ENV: 'production', BERTH_LOG_LEVEL: 'error' };
  const program = ['--max-semi-space-size=8', compileBerth()];
  const controller = await startBerth(kubeconfig, 'controller', namespace, { env, program });
  return {
    async measure() {
      const text = await (await fetch(`${controller.metricsUrl}/metrics`)).text();
      return {
        rssMb: Math.round(single(text, 'process_resident_memory_bytes') / 2 ** 20),
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
