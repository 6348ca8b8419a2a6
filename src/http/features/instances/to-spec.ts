import type { Runtype } from '../../../resources/instance-template.ts';
import type { GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { toContent } from '../../../wire/to-content.ts';
import { withoutNulls } from '../../../wire/without-nulls.ts';
import type { CreateInstance, UpdateInstance } from './schema.ts';

const MAX_OFFER_ID = 2_147_483_647;

export interface WantedInstance {
  spec: GpuInstanceSpec;
  /** False for an ask_id that no offer can have, and that the resource would not accept. */
  offerPossible: boolean;
}

/**
 * The words that Vast.ai's clients send, alone or joined by spaces: the enum of its REST API and the flags that its
 * command line sends (`ssh_direc` is its own spelling).
 */
const VAST_RUNTYPE = /^(?:ssh|jupyter)(?:_proxy|_direct|_direc)?(?: +(?:ssh|jupyter)(?:_proxy|_direct|_direc)?)*$/;

/** What the resource says of a runtype. A Jupyter instance has SSH too. A text that means nothing runs as ssh. */
export function runtypeOf(text: string): { runtype?: Runtype; requestedRuntype?: string } {
  if (text === '') return {};
  if (text === 'args') return { runtype: 'args' };
  if (!VAST_RUNTYPE.test(text)) return { runtype: 'ssh', requestedRuntype: text };
  return { runtype: text.includes('jupyter') ? 'jupyter' : 'ssh' };
}

/** Which GPUs the body asks for in place of an offer. */
function gpuOf(gpu: CreateInstance['gpu']): GpuInstanceSpec['gpu'] {
  if (!gpu) return undefined;
  const { name, count, memory_mb: memoryMb, isolation, mig_profile: migProfile } = withoutNulls(gpu);
  return { count: count ?? 1, ...withoutNulls({ product: name || undefined, migProfile, isolation, memoryMb }) };
}

const EXPIRY = { stop: 'Stop', delete: 'Delete' } as const;
const GPU_FAILURE = { keep: 'Keep', restart: 'Restart' } as const;
const DISK_POLICY = { delete: 'Delete', retain: 'Retain' } as const;

export function toInstanceSpec(payload: CreateInstance): WantedInstance {
  const body = withoutNulls(payload);
  const offerPossible = body.ask_id === undefined || (body.ask_id >= 1 && body.ask_id <= MAX_OFFER_ID);
  const spec: GpuInstanceSpec = withoutNulls({
    type: body.type === 1 ? ('Interruptible' as const) : ('OnDemand' as const),
    offerId: offerPossible ? body.ask_id : undefined,
    gpu: gpuOf(body.gpu),
    displayName: body.name,
    stats: body.stats,
    image: body.template_image || undefined,
    templateId: body.template_id,
    templateHashId: body.template_hash_id || undefined,
    ...toContent(body),
    ...runtypeOf(body.runtype ?? ''),
    diskGb: body.disk_gb,
    offerDiskSpace: body.offer_disk_space,
    installMonitoring: body.install_monitoring ?? false,
    runAsRoot: body.run_as_root || undefined,
    sshKeyIds: body.ssh_key_ids === undefined ? undefined : [...new Set(body.ssh_key_ids)],
    powerState: 'Running' as const,
    // The HTTP interface refuses at once, with alternatives, unless the client wants to wait in line.
    onNoCapacity: body.on_no_capacity === 'queue' ? ('Queue' as const) : ('Fail' as const),
    maxPricePerHour: body.max_price_per_hour,
    maxDuration: body.max_duration,
    idleTimeout: body.idle_timeout,
    onExpiry: EXPIRY[body.on_expiry ?? 'stop'],
    onGPUFailure: GPU_FAILURE[body.on_gpu_failure ?? 'keep'],
    diskPolicy: DISK_POLICY[body.disk_policy ?? 'delete'],
  });
  return { spec, offerPossible };
}

/**
 * The spec as a merge patch: a field that is left out stays, and null clears it. An instance that ended by itself is
 * meant to run as it is: only a new request starts it.
 *
 * @param now milliseconds since the epoch
 */
export function toInstancePatch(
  body: UpdateInstance,
  now: number,
): Record<string, unknown> & { startRequest?: string } {
  const { ssh_key_ids: ids, on_expiry: onExpiry, on_gpu_failure: onGPUFailure } = body;
  return {
    ...(body.label !== undefined && { label: body.label }),
    ...(body.name !== undefined && { displayName: body.name }),
    ...(body.state && { powerState: body.state === 'stopped' ? 'Stopped' : 'Running' }),
    ...(body.state === 'running' && { startRequest: new Date(now).toISOString() }),
    ...(body.max_price_per_hour !== undefined && { maxPricePerHour: body.max_price_per_hour }),
    ...(body.max_duration !== undefined && { maxDuration: body.max_duration }),
    ...(body.idle_timeout !== undefined && { idleTimeout: body.idle_timeout }),
    ...(onExpiry !== undefined && { onExpiry: EXPIRY[onExpiry ?? 'stop'] }),
    ...(onGPUFailure !== undefined && { onGPUFailure: GPU_FAILURE[onGPUFailure ?? 'keep'] }),
    ...(ids !== undefined && { sshKeyIds: ids && [...new Set(ids)] }),
  };
}
