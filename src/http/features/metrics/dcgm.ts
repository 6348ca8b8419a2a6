import type { Pod } from '../../../kube/types.ts';
import { type Measured, rounded, type Series } from './measured.ts';
import { MAX_GPUS, type SeriesName } from './schema.ts';

const MEBIBYTE = 1024 * 1024;
/** Port of NVIDIA DCGM exporter when its pod names none. */
const PORT = 9400;
/** Bytes of its answer. A node with 16 GPUs of seven slices has 1 MB. */
const MAX_ANSWER = 8 * MEBIBYTE;

/** The series of its fields (DCGM's lib/dcgm_fields.h), and what to multiply them with; `second` where another says it too. */
const FIELDS: Readonly<Record<string, { name: SeriesName; factor: number; second?: boolean }>> = {
  DCGM_FI_DEV_GPU_UTIL: { name: 'gpu_utilization_ratio', factor: 0.01 },
  // The only load that MIG slices tell.
  DCGM_FI_PROF_GR_ENGINE_ACTIVE: { name: 'gpu_utilization_ratio', factor: 1, second: true },
  DCGM_FI_DEV_FB_USED: { name: 'gpu_memory_used_bytes', factor: MEBIBYTE },
  DCGM_FI_DEV_GPU_TEMP: { name: 'gpu_temperature_celsius', factor: 1 },
  DCGM_FI_DEV_POWER_USAGE: { name: 'gpu_power_watts', factor: 1 },
  DCGM_FI_DEV_XID_ERRORS: { name: 'gpu_last_xid', factor: 1 },
};
/** The parts of a GPU's memory. */
const MEMORY = new Set(['DCGM_FI_DEV_FB_USED', 'DCGM_FI_DEV_FB_FREE', 'DCGM_FI_DEV_FB_RESERVED']);

const LINE = /^(DCGM_FI_\w+)\{([^}]*)\} (\S+)/;
const LABEL = /[, ]*(\w+)="((?:[^"\\]|\\.)*)"/gy;

interface Gpu {
  uuid: string | null;
  values: Map<SeriesName, number>;
  memory: number;
}

function labelsOf(text: string): Map<string, string> {
  return new Map([...text.matchAll(LABEL)].map(([, name = '', value = '']) => [name, value]));
}

/** Whether a line is of this pod. Exporters with old or re-written names call the labels otherwise. */
function isOf(labels: Map<string, string>, pod: { namespace: string; name: string }): boolean {
  const name = labels.get('pod') ?? labels.get('pod_name') ?? labels.get('exported_pod');
  const namespace = labels.get('namespace') ?? labels.get('pod_namespace') ?? labels.get('exported_namespace');
  return name === pod.name && namespace === pod.namespace;
}

/** The exporter tells of all GPUs of a node, and splitting all that would take as long as reading it. */
function* linesWith(text: string, part: string): Generator<string> {
  let at = text.indexOf(part);
  while (at !== -1) {
    const end = text.indexOf('\n', at);
    yield text.slice(text.lastIndexOf('\n', at) + 1, end === -1 ? undefined : end);
    at = end === -1 ? -1 : text.indexOf(part, end);
  }
}

/** What the exporter's text says of the GPUs of one pod at `now`; undefined when it says nothing of them. */
export function readDcgm(text: string, pod: { namespace: string; name: string }, now: number): Measured | undefined {
  const gpus = new Map<string, Gpu>();
  for (const line of linesWith(text, pod.name)) {
    const [, field = '', labelText = '', number] = LINE.exec(line) ?? [];
    const value = Number(number);
    if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) continue;
    const labels = labelsOf(labelText);
    if (!isOf(labels, pod)) continue;
    const id = `${labels.get('UUID') ?? labels.get('uuid') ?? labels.get('gpu')}/${labels.get('GPU_I_ID') ?? ''}`;
    const uuid = labels.get('UUID') ?? labels.get('uuid') ?? null;
    const gpu = gpus.get(id) ?? { uuid, values: new Map(), memory: 0 };
    if (!gpus.has(id) && gpus.size === MAX_GPUS) continue;
    gpus.set(id, gpu);
    if (MEMORY.has(field)) gpu.memory += value * MEBIBYTE;
    const known = FIELDS[field];
    if (known === undefined || (known.second && gpu.values.has(known.name))) continue;
    gpu.values.set(known.name, rounded(value * known.factor));
  }
  if (gpus.size === 0) return undefined;
  const series = [...gpus.values()].flatMap(({ values, memory }, gpu): Series[] => {
    if (memory > 0) values.set('gpu_memory_limit_bytes', memory);
    return [...values].map(([name, value]) => ({ name, gpu, values: [value] }));
  });
  return { at: now, gpuSource: 'dcgm', gpus: [...gpus.values()].map(({ uuid }) => ({ uuid })), series, totals: {} };
}

async function boundedText(body: ReadableStream<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_ANSWER) throw new Error('The answer of DCGM exporter is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The metrics of a pod of NVIDIA DCGM exporter, as they are. Rejects when it does not answer, and with the signal. */
export async function fetchDcgm({ spec, status }: Pod, signal: AbortSignal): Promise<string> {
  const { podIP } = status ?? {};
  if (podIP === undefined) throw new Error('The pod of DCGM exporter has no address.');
  const ports = spec?.containers.flatMap((one) => one.ports ?? []) ?? [];
  const port = ports.find(({ name }) => name === 'metrics')?.containerPort ?? PORT;
  const host = podIP.includes(':') ? `[${podIP}]` : podIP;
  const answer = await fetch(`http://${host}:${port}/metrics`, { signal, redirect: 'error' });
  if (!answer.ok) throw new Error(`DCGM exporter answers ${answer.status}.`);
  return await boundedText(answer.body);
}
