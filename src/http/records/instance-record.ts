import { findCondition } from '../../kube/conditions.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { instanceState, isSwitchedOff } from '../../resources/instance-state.ts';
import type { TemplateContent } from '../../resources/instance-template.ts';
import type { InstanceRecord } from '../schemas/instance.ts';
import { timeText } from '../schemas/common.ts';

export interface InstanceSurroundings {
  /** Of the claimed node; empty strings when the node does not say. */
  driver: { driverVersion: string; cudaVersion: string } | undefined;
  /** Of an instance that is not rented yet. */
  template: TemplateContent | undefined;
  /** Image of instances that name none. */
  defaultImage: string;
}

function sshOf({ status }: GpuInstance): InstanceRecord['ssh'] {
  const ssh = status?.ssh;
  if (ssh === undefined) return null;
  const { host, port, user, knownHosts } = ssh;
  return { host, port, user, command: `ssh -p ${port} ${user}@${host}`, known_hosts: knownHosts ?? null };
}

function portsOf({ spec }: GpuInstance, template: TemplateContent | undefined): InstanceRecord['ports'] {
  return (spec.ports ?? template?.ports ?? []).map(({ containerPort, protocol, name }) => ({
    container_port: containerPort,
    protocol: protocol === 'UDP' ? 'udp' : 'tcp',
    name: name ?? null,
  }));
}

function gpuOf({ spec, status }: GpuInstance) {
  const claim = status?.claim;
  return {
    offer_id: claim?.offerId ?? spec.offerId ?? null,
    gpu_name: claim?.product ?? spec.gpu?.product ?? null,
    gpu_count: claim?.gpuCount ?? spec.gpu?.count ?? 1,
    gpu_memory_mb: claim?.memoryMb ?? null,
    isolation: claim?.isolation ?? spec.gpu?.isolation ?? null,
    mig_profile: claim?.migProfile ?? spec.gpu?.migProfile ?? null,
    node: claim?.node ?? null,
    simulated: claim?.simulated ?? false,
  } satisfies Partial<InstanceRecord>;
}

/** Characters of a client's text that a warning quotes. */
const QUOTED = 64;

function warningsOf({ spec }: GpuInstance): string[] {
  const { requestedRuntype: text } = spec;
  if (text === undefined) return [];
  const quoted = JSON.stringify(text.length > QUOTED ? `${text.slice(0, QUOTED)}…`.toWellFormed() : text);
  return [`Berth knows no runtype ${quoted}: the instance runs as ssh. Known are ssh, jupyter and args.`];
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
  const { driver, defaultImage } = around;
  const template = status?.template?.spec ?? around.template;
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
    template_image: status?.image || spec.image || template?.image || defaultImage,
    template_id: spec.templateId ?? null,
    template_hash_id: spec.templateHashId ?? null,
    template_changed: templateChanged(instance),
    runtype: spec.requestedRuntype ?? status?.runtype ?? spec.runtype ?? template?.runtype ?? 'ssh',
    disk_gb: status?.diskGb ?? spec.diskGb ?? template?.diskGb ?? null,
    disk_persistent: status?.diskPersistent ?? null,
    offer_disk_space: spec.offerDiskSpace ?? null,
    install_monitoring: spec.installMonitoring ?? false,
    stats: spec.stats ?? null,
    ssh_key_ids: [...(spec.sshKeyIds ?? [])],
    price_per_hour: status?.claim?.pricePerHour ?? null,
    currency: status?.claim?.currency ?? null,
    usage: usageOf(instance),
    ssh: sshOf(instance),
    ports: portsOf(instance, template),
    created_at: timeText(metadata.creationTimestamp),
    started_at: status?.stages?.started ?? null,
    warnings: warningsOf(instance),
  };
}
