import { findCondition } from '../../../kube/conditions.ts';
import { gpusAre } from '../../../resources/instances/gpu-health.ts';
import { isRunnable } from '../../../resources/image.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';

/** What the warnings of an instance depend on beside itself. */
export interface WarningFacts {
  /** The image that it runs. */
  image: string;
  /** Whether the node of its place has the image; undefined without a place, and where nothing is pulled. */
  imageOnNode: boolean | undefined;
  /** Ceilings of its tenant that leave little room, and budgets that it draws on, in words. */
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
  if (reason === 'NoKeys') return 'No SSH key opens this instance: you have none. Add one to log in.';
  if (reason !== 'KeyNotFound') return undefined;
  return 'An SSH key that this instance names does not exist any more. Name others in ssh_key_ids.';
}

function lostDisk(instance: GpuInstance): string | undefined {
  if (failing(instance, 'DiskReady') !== 'DiskLost') return undefined;
  return 'The disk of this instance is not there any more, and its files with it. A start that you ask for makes a new, empty disk.';
}

function idleScript({ spec, status }: GpuInstance): string | undefined {
  if (!spec.onStart || (status?.runtype ?? spec.runtype) !== 'args') return undefined;
  return 'on_start does nothing with runtype args: the entrypoint of the image runs. Rent with runtype ssh, or put it into args.';
}

function imageElsewhere({ status }: GpuInstance, { image, imageOnNode }: WarningFacts): string | undefined {
  if (imageOnNode !== false || status?.claim === undefined || status.stages?.pulled !== undefined) return undefined;
  return `${image} is not on ${status.claim.node} yet: this start downloads it. Offers with image_cached start sooner with the default image.`;
}

function brokenImage({ image }: WarningFacts): string | undefined {
  if (image === '' || isRunnable(image)) return undefined;
  return `No container runtime takes the name ${image}, so the instance cannot start. Write the image as its registry has it: a tag has at most 128 characters, a digest is in lower case, and no part of the name begins or ends with a dot, a hyphen or an underscore.`;
}

/** What install_monitoring does not do, by the reason of the condition. */
const UNMEASURED: Readonly<Record<string, string>> = {
  ExporterNotFound:
    'install_monitoring was asked for, and nothing is measured: with runtype args only NVIDIA DCGM exporter can measure, and the node has none. The operator can install it, or rent with runtype ssh.',
  Simulated:
    'install_monitoring was asked for, and nothing is measured: the node is simulated, and no container runs there.',
  NextStart:
    'install_monitoring was asked for, and nothing is measured in this start, which began without it. Stop the instance and start it again.',
  DoesNotAnswer:
    'install_monitoring was asked for, and nothing is measured: the exporter in the instance does not answer. If this lasts, stop the instance and start it again.',
  NoGpuTool:
    'install_monitoring measures no GPU: the instance has neither nvidia-smi nor rocm-smi. CPU, memory, disk and network are measured.',
  GpuToolFails:
    'install_monitoring measures no GPU: nvidia-smi or rocm-smi fails. Run it in the instance to see why. CPU, memory, disk and network are measured.',
  GpuLoadUnknown:
    'install_monitoring does not measure how busy the GPUs are, because they do not tell it, as MIG slices do not. A busy GPU does not keep the instance from idle_timeout.',
};

function noMonitoring(instance: GpuInstance): string | undefined {
  return instance.spec.installMonitoring ? UNMEASURED[failing(instance, 'Monitoring') ?? ''] : undefined;
}

function otherTemplate(instance: GpuInstance): string | undefined {
  const reason = failing(instance, 'TemplateCurrent');
  if (reason === undefined) return undefined;
  const what = reason === 'TemplateChanged' ? 'has changed' : 'was deleted, or is not shared any more,';
  return `The template ${what} since the instance was rented. The instance keeps what it was rented with. Rent another one to have what the template says now.`;
}

function unhealthyGPU({ spec, status }: GpuInstance): string | undefined {
  const gpus = status?.unhealthyGPUs ?? [];
  if (gpus.length === 0 || status?.ending !== undefined) return undefined;
  const then =
    spec.onGPUFailure === 'Restart'
      ? 'If that lasts for a minute, the instance starts again on healthy GPUs.'
      : 'The instance keeps its GPUs, and is still billed. To get healthy ones, stop it and start it again, or set on_gpu_failure to restart.';
  return `${gpusAre(gpus)} unhealthy, as the node reports. ${then}`;
}

/** What the tenant should know about an instance and did not ask, in words. */
export function warningsOf(instance: GpuInstance, facts: WarningFacts): string[] {
  const found = [
    unknownRuntype(instance),
    unhealthyGPU(instance),
    lostDisk(instance),
    noKey(instance),
    idleScript(instance),
    brokenImage(facts),
    imageElsewhere(instance, facts),
    noMonitoring(instance),
    otherTemplate(instance),
  ];
  return [...found.filter((warning) => warning !== undefined), ...facts.nearLimits];
}
