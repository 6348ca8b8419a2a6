import type { ServerLoad } from '../endpoint.ts';
import type { Engine } from '../dialects/index.ts';

interface Names {
  waiting: readonly string[];
  running: readonly string[];
  kvUsage: readonly string[];
  /** Counters that move while the engine computes, whatever it computes. */
  steps?: readonly string[];
  /** A counter of tokens that moves with each of them. Those of SGLang and llama.cpp move when a call ends. */
  written?: readonly string[];
}

/** More series of one name are not read: no server has as many data-parallel ranks. */
const MAX_SERIES = 1024;

/** Characters behind a name. No labels and value of a server are as long. */
const MOST_LINE = 16_384;

/** Older metrics are ignored (llm-d-router #2547: 200 ms was far too short, 5 s is not). */
const FRESH_MS = 5000;

/** From the model server protocol of the Gateway API inference extension. The older vLLM name is still in use. */
const NAMES: Partial<Record<Engine, Names>> = {
  vllm: {
    waiting: ['vllm:num_requests_waiting'],
    running: ['vllm:num_requests_running'],
    kvUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    // The last counts the iterations, which also move in a long prefill. SGLang's counters move when a call ends.
    steps: ['vllm:generation_tokens_total', 'vllm:prompt_tokens_total', 'vllm:iteration_tokens_total_count'],
    written: ['vllm:generation_tokens_total'],
  },
  sglang: { waiting: ['sglang:num_queue_reqs'], running: ['sglang:num_running_reqs'], kvUsage: ['sglang:token_usage'] },
  'llama.cpp': { waiting: ['llamacpp:requests_deferred'], running: ['llamacpp:requests_processing'], kvUsage: [] },
  tgi: { waiting: ['tgi_queue_size'], running: ['tgi_batch_current_size'], kvUsage: [] },
};

export function hasLoadMetrics(engine: Engine): boolean {
  return NAMES[engine] !== undefined;
}

/**
 * Reads Prometheus text. Engines have a series per data-parallel rank: requests add up, the largest cache use counts.
 */
export function parseLoad(engine: Engine, text: string, at: number): ServerLoad | undefined {
  const names = NAMES[engine];
  if (names === undefined) return undefined;
  const first = (candidates: readonly string[]) =>
    candidates.map((name) => seriesOf(text, name)).find((found) => found !== undefined);
  const waiting = first(names.waiting);
  if (waiting === undefined) return undefined;
  return {
    waiting: waiting.sum,
    ranks: waiting.series,
    running: first(names.running)?.sum ?? 0,
    kvUsage: first(names.kvUsage)?.max ?? 0,
    steps: sumOf(text, names.steps ?? []),
    written: sumOf(text, names.written ?? []),
    at,
  };
}

/** What the metrics of a server said, unless that was too long ago. */
export function freshLoad(endpoint: { load: ServerLoad | undefined } | undefined, now: number): ServerLoad | undefined {
  const load = endpoint?.load;
  return load !== undefined && now - load.at <= FRESH_MS ? load : undefined;
}

/** The sum of all series of all names, undefined when the page has none of them. */
function sumOf(text: string, names: readonly string[]): number | undefined {
  const found = names.flatMap((name) => seriesOf(text, name)?.sum ?? []);
  return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0);
}

interface Series {
  sum: number;
  max: number;
  series: number;
}

/** Sum, maximum and number of the series of one name. Searches for the name, because parsing a whole page costs far more. */
function seriesOf(text: string, name: string): Series | undefined {
  let found: Series | undefined;
  let series = 0;
  for (let at = text.indexOf(name); at !== -1 && series < MAX_SERIES; at = text.indexOf(name, at + name.length)) {
    if (at > 0 && text[at - 1] !== '\n') continue;
    series += 1;
    const behind = at + name.length;
    const [line = ''] = text.slice(behind, behind + MOST_LINE).split('\n', 1);
    const match = /^(?:\{.*\})?\s+([-+.\deE]+)/.exec(line);
    const value = Number(match?.[1]);
    if (!Number.isFinite(value)) continue;
    const { sum, max, series: before } = found ?? { sum: 0, max: 0, series: 0 };
    found = { sum: sum + value, max: Math.max(max, value), series: before + 1 };
  }
  return found;
}
