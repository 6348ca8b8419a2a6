import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import type { Runtype } from '../../resources/instance-template.ts';
import { withoutNulls } from '../middleware/validate.ts';
import type { CreateInstance } from '../schemas/instance.ts';

/** The largest number an offer's id may have. */
const MAX_OFFER_ID = 2_147_483_647;

export interface WantedInstance {
  spec: GpuInstanceSpec;
  /** False for an ask_id that no offer can ever have; the resource could not even hold it. */
  offerPossible: boolean;
}

/** What a runtype that matches the pattern means; a Jupyter instance has SSH too. */
export function normalizeRuntype(text: string): Runtype | undefined {
  if (text === '' || text === 'args') return text === '' ? undefined : 'args';
  return text.includes('jupyter') ? 'jupyter' : 'ssh';
}

/** The spec of the instance that a creation payload asks for. */
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
    runtype: normalizeRuntype(body.runtype ?? ''),
    diskGb: body.disk_gb,
    offerDiskSpace: body.offer_disk_space,
    installMonitoring: body.install_monitoring ?? false,
    sshKeyIds: body.ssh_key_ids === undefined ? undefined : [...new Set(body.ssh_key_ids)],
    powerState: 'Running' as const,
    // An HTTP client gets its refusal at once, with alternatives; waiting in line is for kubectl.
    onNoCapacity: 'Fail' as const,
    onExpiry: 'Stop' as const,
    diskPolicy: 'Delete' as const,
  });
  return { spec, offerPossible };
}
