import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A process of an instance, and the GPUs that the device plugin gave its container. */
export interface Program {
  instance: string;
  gpus: readonly string[];
}

/** The program of an instance whose environment this is. */
export function programOf(environment: string): Program | undefined {
  const variables = environment.split('\0');
  const value = (name: string): string | undefined =>
    variables.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  const [name, namespace] = [value('BERTH_INSTANCE_ID'), value('BERTH_NAMESPACE')];
  const gpus = value('NVIDIA_VISIBLE_DEVICES')?.split(',') ?? [];
  if (name === undefined || namespace === undefined) return undefined;
  return { instance: `${namespace}/${name}`, gpus: gpus.filter((gpu) => gpu.startsWith('GPU-')) };
}

/** GPUs that programs of several instances have at once. */
export function sharedGpus(programs: readonly Program[]): string[] {
  const users = new Map<string, Set<string>>();
  for (const { instance, gpus } of programs) {
    for (const gpu of gpus) users.set(gpu, (users.get(gpu) ?? new Set()).add(instance));
  }
  return [...users].flatMap(([gpu, all]) =>
    all.size < 2 ? [] : [`programs of ${[...all].toSorted().join(' and ')} ran on ${gpu} at once`],
  );
}

/** The programs of instances that run in the cluster's namespaces now. Asks Linux alone. */
async function programsOf(initPid: number): Promise<Program[]> {
  const proc = `/proc/${initPid}/root/proc`;
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    // One that has ended meanwhile is no program.
    pids.map(async (pid) => programOf(await readFile(join(proc, pid, 'environ'), 'latin1').catch(() => ''))),
  );
  return found.filter((program) => program !== undefined);
}

/** Milliseconds between two looks. */
const LOOK = 200;

/** Looks at the programs until `ended` aborts. Returns which GPUs were shared, and how many GPUs it saw in use. */
export async function watchPrograms(
  initPid: number,
  ended: AbortSignal,
): Promise<{ shared: string[]; looks: number; seen: number }> {
  const shared = new Set<string>();
  const seen = new Set<string>();
  let looks = 0;
  for (; !ended.aborted; looks++) {
    const programs = await programsOf(initPid);
    for (const one of sharedGpus(programs)) shared.add(one);
    for (const gpu of programs.flatMap(({ gpus }) => gpus)) seen.add(gpu);
    await delay(LOOK, undefined, { signal: ended }).catch(() => undefined);
  }
  return { shared: [...shared], looks, seen: seen.size };
}
