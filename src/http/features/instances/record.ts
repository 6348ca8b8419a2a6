import { hasImage } from '../../../inventory/offers.ts';
import { findCondition } from '../../../kube/conditions.ts';
import { silentMs } from '../../../ledger/silence.ts';
import type { TemplateContent } from '../../../resources/instance-template.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState, isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { meterBegan } from '../../../resources/instances/meter.ts';
import { priceLimitOf, rentedOf } from '../../../resources/instances/rented.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { timeText } from '../../interface/schema.ts';
import type { InstanceRecord } from './schema.ts';
import { warningsOf } from './warnings.ts';

export interface InstanceSurroundings {
  /** Of the claimed node; empty strings when the node does not say. */
  driver: { driverVersion: string; cudaVersion: string } | undefined;
  /** Images that the claimed node lists. */
  images: ReadonlySet<string> | undefined;
  /** Of an instance that is not rented yet. */
  template: TemplateContent | undefined;
  /** Image of instances that name none. */
  defaultImage: string;
  /** Place in the line of those who wait. */
  place: number | undefined;
  /** Ceilings of the tenant that are near, in words. */
  nearLimits: readonly string[];
}

function sshOf({ status }: GpuInstance): InstanceRecord['ssh'] {
  const ssh = status?.ssh;
  if (ssh === undefined) return null;
  const { host, port, user, knownHosts } = ssh;
  return { host, port, user, command: `ssh -p ${port} ${user}@${host}`, known_hosts: knownHosts ?? null };
}

/** The GPUs of its place or, without one, those that it rented. */
function gpuOf(instance: GpuInstance) {
  const { spec, status } = instance;
  const claim = status?.claim;
  const gpus = claim ?? rentedOf(instance)?.gpus;
  return {
    offer_id: claim?.offerId ?? spec.offerId ?? null,
    gpu_name: gpus?.product ?? spec.gpu?.product ?? null,
    gpu_count: gpus?.gpuCount ?? spec.gpu?.count ?? 1,
    gpu_memory_mb: gpus?.memoryMb ?? null,
    isolation: gpus?.isolation ?? spec.gpu?.isolation ?? null,
    mig_profile: gpus?.migProfile ?? spec.gpu?.migProfile ?? null,
    node: claim?.node ?? null,
    simulated: gpus?.simulated ?? false,
  } satisfies Partial<InstanceRecord>;
}

/** The price of its place or, without one, that which it rented for. Before its first place there is none. */
function priceOf(instance: GpuInstance) {
  const { claim, incarnation = 0 } = instance.status ?? {};
  const price = claim ?? (incarnation > 0 ? rentedOf(instance)?.price : undefined);
  return {
    price_per_hour: price?.pricePerHour ?? null,
    currency: price?.currency ?? null,
    max_price_per_hour: priceLimitOf(instance)?.perHour ?? null,
  } satisfies Partial<InstanceRecord>;
}

/**
 * When maxDuration ends this start; null where it does not, not in the time that a date can have, and while its node is
 * silent: the silence extends it.
 */
function expiryOf({ spec, status }: GpuInstance): string | null {
  const { maxDuration } = spec;
  const { claim, silences = [] } = status ?? {};
  const began = meterBegan(status);
  const last = silences.at(-1);
  const isSilent = last !== undefined && last.to === undefined;
  if (maxDuration === undefined || claim === undefined || began === undefined || isSilent) return null;
  const end = new Date(began + parseDuration(maxDuration) + silentMs(silences, began, Infinity));
  return Number.isNaN(end.getTime()) ? null : end.toISOString();
}

/** What the open bill of the current start depends on. */
function meterOf({ status }: GpuInstance): Pick<InstanceRecord, 'billed_since' | 'silences'> {
  const began = status?.claim && meterBegan(status);
  if (began === undefined) return { billed_since: null, silences: [] };
  return {
    billed_since: new Date(began).toISOString(),
    silences: (status?.silences ?? []).map(({ from, to }) => ({ from, to: to ?? null })),
  };
}

/** What the client may send with the instance, beside the fields of the specification. */
function extensionsOf(instance: GpuInstance) {
  const { spec } = instance;
  return {
    env_names: (spec.env ?? []).map(({ name }) => name),
    command: spec.command ?? null,
    args: spec.args ?? null,
    has_on_start: Boolean(spec.onStart),
    registry: spec.imagePullSecrets?.[0]?.name ?? null,
    max_duration: spec.maxDuration ?? null,
    idle_timeout: spec.idleTimeout ?? null,
    expires_at: expiryOf(instance),
    on_expiry: spec.onExpiry === 'Delete' ? 'delete' : 'stop',
    on_gpu_failure: spec.onGPUFailure === 'Restart' ? 'restart' : 'keep',
    on_no_capacity: spec.onNoCapacity === 'Queue' ? 'queue' : 'fail',
    disk_policy: spec.diskPolicy === 'Retain' ? 'retain' : 'delete',
  } satisfies Partial<InstanceRecord>;
}

function usageOf({ status }: GpuInstance): InstanceRecord['usage'] {
  const usage = status?.usage;
  return usage ? { gpu_seconds: usage.gpuSeconds, cost: usage.cost, currency: usage.currency } : null;
}

function templateChanged({ status }: GpuInstance): boolean | null {
  const current = findCondition(status?.conditions, 'TemplateCurrent');
  return current === undefined ? null : current.status === 'False';
}

export function toInstanceRecord(instance: GpuInstance, around: InstanceSurroundings): InstanceRecord {
  const { metadata, spec, status } = instance;
  const { driver, images, place, nearLimits, defaultImage } = around;
  const template = status?.template?.spec ?? around.template;
  const image = status?.image || spec.image || template?.image || defaultImage;
  const isPulled = status?.claim !== undefined && !status.claim.simulated && images !== undefined;
  const imageOnNode = isPulled ? hasImage({ images }, image) : undefined;
  return {
    id: metadata.name,
    object: 'instance',
    name: spec.displayName ?? null,
    label: spec.label ?? null,
    type: spec.type === 'Interruptible' ? 1 : 0,
    ...instanceState(instance),
    desired_state: isSwitchedOff(instance) ? 'stopped' : 'running',
    stages: status?.stages ?? {},
    ...gpuOf(instance),
    driver_version: driver?.driverVersion || null,
    cuda_version: driver?.cudaVersion || null,
    template_image: image,
    template_id: spec.templateId ?? null,
    template_hash_id: spec.templateHashId ?? null,
    template_changed: templateChanged(instance),
    runtype: spec.requestedRuntype ?? status?.runtype ?? spec.runtype ?? template?.runtype ?? 'ssh',
    disk_gb: status?.diskGb ?? spec.diskGb ?? template?.diskGb ?? null,
    disk_persistent: status?.diskPersistent ?? null,
    offer_disk_space: spec.offerDiskSpace ?? null,
    install_monitoring: spec.installMonitoring ?? false,
    run_as_root: spec.runAsRoot ?? false,
    stats: spec.stats ?? null,
    ssh_key_ids: [...(spec.sshKeyIds ?? [])],
    ...priceOf(instance),
    usage: usageOf(instance),
    ssh: sshOf(instance),
    ports: portRecords(spec.ports ?? template?.ports ?? []),
    ...extensionsOf(instance),
    place_in_line: place ?? null,
    created_at: timeText(metadata.creationTimestamp),
    started_at: status?.stages?.started ?? null,
    ...meterOf(instance),
    warnings: warningsOf(instance, { image, imageOnNode, nearLimits }),
  };
}

interface PortRecord {
  container_port: number;
  protocol: 'tcp' | 'udp';
  name: string | null;
}

/** Declared ports as records show them. */
export function portRecords(ports: NonNullable<TemplateContent['ports']>): PortRecord[] {
  return ports.map(({ containerPort, protocol, name }) => ({
    container_port: containerPort,
    protocol: protocol === 'UDP' ? 'udp' : 'tcp',
    name: name ?? null,
  }));
}
