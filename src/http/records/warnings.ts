import { findCondition } from '../../kube/conditions.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';

/** What the warnings of an instance depend on beside itself. */
export interface WarningFacts {
  /** The image that it runs. */
  image: string;
  /** Whether the node of its place has the image; undefined without a place, and where nothing is pulled. */
  imageOnNode: boolean | undefined;
  /** Ceilings of its tenant that leave little room, in words. */
  nearLimits: readonly string[];
}

/** Characters of a client's text that a warning quotes. */
const QUOTED = 64;

function unknownRuntype({ spec }: GpuInstance): string | undefined {
  const { requestedRuntype: text } = spec;
  if (text === undefined) return undefined;
  const quoted = JSON.stringify(text.length > QUOTED ? `${text.slice(0, QUOTED)}…`.toWellFormed() : text);
  return `Berth knows no runtype ${quoted}: the instance runs as ssh. Known are ssh, jupyter and args.`;
}

function failing({ status }: GpuInstance, type: string): string | undefined {
  const condition = findCondition(status?.conditions, type);
  return condition?.status === 'False' ? condition.reason : undefined;
}

function noKey(instance: GpuInstance): string | undefined {
  const reason = failing(instance, 'SSHKeys');
  if (reason === 'NoKeys') return 'No SSH key opens this instance: you have none. Add one with POST /ssh-keys.';
  if (reason !== 'KeyNotFound') return undefined;
  return 'ssh_key_ids names an SSH key that does not exist any more. PATCH ssh_key_ids, and read which keys there are with GET /ssh-keys.';
}

function idleScript({ spec, status }: GpuInstance): string | undefined {
  if (!spec.onStart || (status?.runtype ?? spec.runtype) !== 'args') return undefined;
  return 'on_start does nothing with runtype args: the entrypoint of the image runs. Rent with runtype ssh, or put it into args.';
}

function imageElsewhere({ status }: GpuInstance, { image, imageOnNode }: WarningFacts): string | undefined {
  if (imageOnNode !== false || status?.claim === undefined || status.stages?.pulled !== undefined) return undefined;
  return `Node ${status.claim.node} does not list image ${image}: the start takes as long as the pull. Offers with image_cached start sooner with the default image.`;
}

function noMonitoring(instance: GpuInstance): string | undefined {
  if (!instance.spec.installMonitoring || failing(instance, 'Monitoring') !== 'ExporterNotFound') return undefined;
  return 'install_monitoring was asked for, and the node has no exporter of GPU metrics: nothing is measured. The operator can install NVIDIA DCGM exporter.';
}

function otherTemplate(instance: GpuInstance): string | undefined {
  const reason = failing(instance, 'TemplateCurrent');
  if (reason === undefined) return undefined;
  const what = reason === 'TemplateChanged' ? 'has changed' : 'was deleted, or is not shared any more,';
  return `The template ${what} since the instance was rented. The instance keeps what it was rented with. Rent another one to have what the template says now.`;
}

/** What the tenant should know about an instance and did not ask, in words. */
export function warningsOf(instance: GpuInstance, facts: WarningFacts): string[] {
  const found = [
    unknownRuntype(instance),
    noKey(instance),
    idleScript(instance),
    imageElsewhere(instance, facts),
    noMonitoring(instance),
    otherTemplate(instance),
  ];
  return [...found.filter((warning) => warning !== undefined), ...facts.nearLimits];
}
