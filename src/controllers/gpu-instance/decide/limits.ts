import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { LIMITS, type LimitName } from '../../../resources/instances/limits.ts';

/**
 * Since when the instance has the limit that its spec names, milliseconds since the epoch: since its creation when its
 * spec never changed or no status was written, else since the controller first saw this value.
 */
export function limitSince({ metadata, spec, status }: GpuInstance, name: LimitName, now: number): number {
  const known = status?.limits?.[name];
  if (known !== undefined && known.value === spec[name]) return Math.min(now, Date.parse(known.since));
  const created = Date.parse(metadata.creationTimestamp ?? '');
  const isFirst = metadata.generation === 1 || status?.observedGeneration === undefined;
  return isFirst && Number.isFinite(created) ? Math.min(now, created) : now;
}

/** What the status says of the limits in the spec. */
export function limitsOf(instance: GpuInstance, now: number): Pick<GpuInstanceStatus, 'limits'> {
  const limits = LIMITS.flatMap((name) => {
    const value = instance.spec[name];
    const since = new Date(limitSince(instance, name, now)).toISOString();
    return value === undefined ? [] : [[name, { value, since }] as const];
  });
  return limits.length === 0 ? {} : { limits: Object.fromEntries(limits) };
}
