import type { ServerLoad } from '../endpoint.ts';
import type { Engine } from '../dialects/index.ts';

interface Names {
  waiting: readonly string[];
  running: readonly string[];
  kvUsage: readonly string[];
}

/** Gateway API inference extension, model server protocol; the older vLLM name is still in the field. */
const NAMES: Partial<Record<Engine, Names>> = {
  vllm: {
    waiting: ['vllm:num_requests_waiting'],
    running: ['vllm:num_requests_running'],
    kvUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  },
  sglang: { waiting: ['sglang:num_queue_reqs'], running: ['sglang:num_running_reqs'], kvUsage: ['sglang:token_usage'] },
  'llama.cpp': { waiting: ['llamacpp:requests_deferred'], running: ['llamacpp:requests_processing'], kvUsage: [] },
  tgi: { waiting: ['tgi_queue_size'], running: ['tgi_batch_current_size'], kvUsage: [] },
};

/** Whether the engine publishes anything that helps to choose. */
export function hasLoadMetrics(engine: Engine): boolean {
  return NAMES[engine] !== undefined;
}

/** Reads queue, running requests and cache use from Prometheus text; sums over series (one per data-parallel rank). */
export function parseLoad(engine: Engine, text: string, now: number): ServerLoad | undefined {
  const names = NAMES[engine];
  if (names === undefined) return undefined;
  const sums = new Map<string, { sum: number; max: number }>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+([-+.\deE]+)/.exec(line);
    const value = Number(match?.[2]);
    if (match?.[1] === undefined || !Number.isFinite(value)) continue;
    const known = sums.get(match[1]) ?? { sum: 0, max: 0 };
    sums.set(match[1], { sum: known.sum + value, max: Math.max(known.max, value) });
  }
  const first = (candidates: readonly string[]) =>
    candidates.map((name) => sums.get(name)).find((found) => found !== undefined);
  const waiting = first(names.waiting);
  if (waiting === undefined) return undefined;
  return {
    waiting: waiting.sum,
    running: first(names.running)?.sum ?? 0,
    kvUsage: first(names.kvUsage)?.max ?? 0,
    at: now,
  };
}
