import { type GpuInstance, type GpuInstanceStatus, TRACEPARENT } from '../../../../resources/instances/gpu-instance.ts';

/** A part of a start, in ms since the epoch. */
export interface TracedStage {
  name: string;
  from: number;
  to: number;
}

/** A start that has come to readiness or to its end, as a trace shows it. */
export interface StartTrace {
  /** The `traceparent` of the request that the start belongs to, as it stands in the instance. Tenants may write it. */
  parent: string | undefined;
  tenant: string;
  instance: string;
  uid: string;
  /** Number of the start. */
  start: number;
  from: number;
  to: number;
  pod: string | undefined;
  node: string | undefined;
  product: string | undefined;
  gpus: number | undefined;
  /** Why the start ended before it was ready. */
  ending: string | undefined;
  stages: TracedStage[];
}

type Stages = NonNullable<GpuInstanceStatus['stages']>;

/** The stages of a start that have a span, with the stages of the status that they begin and end with. */
const PARTS = [
  ['claim', 'accepted', 'claimed'],
  ['schedule', 'claimed', 'scheduled'],
  ['start container', 'scheduled', 'started'],
  ['become ready', 'started', 'ready'],
] as const satisfies (readonly [string, keyof Stages, keyof Stages])[];

function timeOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

/** Whether the ending is not the one that the status had before. */
export function isNewEnding({ ending }: GpuInstanceStatus, before: GpuInstanceStatus | undefined): boolean {
  return ending !== undefined && (ending.at !== before?.ending?.at || ending.reason !== before.ending.reason);
}

function partsOf(stages: Stages, isFirst: boolean): TracedStage[] {
  return PARTS.flatMap(([name, begins, ends]) => {
    const from = timeOf(stages[begins]);
    const to = timeOf(stages[ends]);
    // The time of acceptance is that of the first start.
    if (from === undefined || to === undefined || (name === 'claim' && !isFirst)) return [];
    return [{ name, from, to: Math.max(from, to) }];
  });
}

/**
 * The trace of a start when a write of the status says for the first time that it is ready, or that it ends before; else
 * undefined. All of it is in the status, so nobody has to remember a start that is under way. Until an instance was ready
 * once, its starts belong to the request that created it; a later one has a trace of its own.
 * @param before the instance before the write
 * @param after the status that was written
 */
export function startTrace(before: GpuInstance, after: GpuInstanceStatus): StartTrace | undefined {
  const { metadata, status } = before;
  const { stages = {}, incarnation = 0, claim, ending } = after;
  const ends = isNewEnding(after, status);
  // While a start ends, nothing of it is news any more.
  if (status?.stages?.ready !== undefined || (ending !== undefined && !ends)) return undefined;
  const end = timeOf(stages.ready) ?? (ends ? timeOf(ending?.at) : undefined);
  const isFirst = incarnation <= 1;
  const from = timeOf(isFirst ? stages.accepted : stages.claimed);
  if (end === undefined || from === undefined) return undefined;
  return {
    parent: status?.firstReady === undefined ? metadata.annotations?.[TRACEPARENT] : undefined,
    tenant: metadata.namespace ?? '',
    instance: metadata.name ?? '',
    uid: metadata.uid ?? '',
    start: incarnation,
    from,
    to: Math.max(from, end),
    pod: after.podName,
    node: claim?.node,
    product: claim?.product,
    gpus: claim?.gpuCount,
    ending: stages.ready === undefined ? ending?.reason : undefined,
    stages: partsOf(stages, isFirst),
  };
}
