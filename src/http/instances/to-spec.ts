import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import type { Runtype } from '../../resources/instance-template.ts';
import { withoutNulls } from '../middleware/validate.ts';
import type { CreateInstance } from '../schemas/instance.ts';

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

export function toInstanceSpec(payload: CreateInstance): WantedInstance {
  const body = withoutNulls(payload);
  const offerPossible = body.ask_id === undefined || (body.ask_id >= 1 && body.ask_id <= MAX_OFFER_ID);
  const spec: GpuInstanceSpec = withoutNulls({
    type: body.type === 1 ? ('Interruptible' as const) : ('OnDemand' as const),
    offerId: offerPossible ? body.ask_id : undefined,
    displayName: body.name,
    stats: body.stats,
    image: body.template_image || undefined,
    templateId: body.template_id,
    templateHashId: body.template_hash_id || undefined,
    ...runtypeOf(body.runtype ?? ''),
    diskGb: body.disk_gb,
    offerDiskSpace: body.offer_disk_space,
    installMonitoring: body.install_monitoring ?? false,
    sshKeyIds: body.ssh_key_ids === undefined ? undefined : [...new Set(body.ssh_key_ids)],
    powerState: 'Running' as const,
    // The HTTP interface refuses at once, with alternatives. Only instances made with kubectl can wait in line.
    onNoCapacity: 'Fail' as const,
    onExpiry: 'Stop' as const,
    diskPolicy: 'Delete' as const,
  });
  return { spec, offerPossible };
}
