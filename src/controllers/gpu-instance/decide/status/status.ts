import type { GpuInstance, GpuInstanceStatus } from '../../../../resources/instances/gpu-instance.ts';

import type { HeldDevice } from '../../../../resources/instances/held-devices.ts';
import { isSwitchedOff } from '../../../../resources/instances/instance-state.ts';
import { conditionsOf } from './conditions.ts';
import { endingOf } from '../endings.ts';
import { keptEnding } from '../expiry.ts';
import { withFinish } from '../finish.ts';
import { gpuHealth } from '../gpu-health.ts';
import { keptRented } from '../rented.ts';
import { limitsOf } from '../limits.ts';
import { sshUserOf } from '../names.ts';
import type { Observed } from '../observed.ts';
import { firstRunOf, isOver, isPodReady, podCondition, scheduledCondition, ranOf } from '../pod/pod-facts.ts';
import { waitingSince } from '../waiting-since.ts';
import type { Waiting } from './ready.ts';

export interface SshAddress {
  host: string;
  port: number;
  /** Line for known_hosts. */
  knownHosts?: string | undefined;
}

type Stages = NonNullable<GpuInstanceStatus['stages']>;

// Times on pods are whole seconds, and the clock of a node may be ahead. A later stage is never shown before an earlier
// one, nor in the future.
function notBefore(now: number, time: string | undefined, ...earlier: (string | undefined)[]): string | undefined {
  if (time === undefined) return undefined;
  const latest = Math.max(...[time, ...earlier].map((one) => Date.parse(one ?? '')).filter(Number.isFinite));
  return new Date(Math.min(now, latest)).toISOString();
}

function timeOf(condition: { status: string; lastTransitionTime?: string } | undefined): string | undefined {
  return condition?.status === 'True' ? condition.lastTransitionTime : undefined;
}

/** Times of the stages of the current start. Each is set once and kept. */
function stagesOf({ instance, pod, login, now }: Observed): Stages {
  const { claim, stages = {} } = instance.status ?? {};
  const accepted = stages.accepted ?? new Date(instance.metadata.creationTimestamp ?? 0).toISOString();
  if (claim === undefined || pod === undefined) return { ...stages, accepted };
  const firstRun = firstRunOf(pod);
  const started = firstRun === undefined ? undefined : new Date(firstRun).toISOString();
  const scheduledAt = stages.scheduled ?? notBefore(now, timeOf(scheduledCondition(pod)), claim.grantedAt);
  const startedAt = stages.started ?? notBefore(now, started, scheduledAt, claim.grantedAt);
  const isUp = isPodReady(pod) && login !== 'pending';
  // Where logins are tried, the instance is ready when one worked.
  const upAt = login === 'works' ? new Date(now).toISOString() : timeOf(podCondition(pod, 'Ready'));
  // A program may have ended before the controller saw it running. A shell that ended let nobody in.
  const isProgram = instance.status?.runtype === 'args' && isOver(instance, pod);
  const ran = isProgram ? ranOf(pod, now) : undefined;
  const sinceAt = ran === undefined ? upAt : new Date(ran.from).toISOString();
  const isPast = isUp || ran !== undefined;
  const readyAt = stages.ready ?? (isPast ? notBefore(now, sinceAt, startedAt, scheduledAt) : undefined);
  return {
    accepted,
    claimed: stages.claimed ?? claim.grantedAt,
    ...(scheduledAt !== undefined && { scheduled: scheduledAt }),
    // The kubelet starts a container as soon as it has the image.
    ...(startedAt !== undefined && { pulled: stages.pulled ?? startedAt, started: startedAt }),
    ...(readyAt !== undefined && { ready: readyAt }),
  };
}

/** The instance with the stages that its pod shows. */
export function withStages(seen: Observed): GpuInstance {
  return { ...seen.instance, status: { ...seen.instance.status, stages: stagesOf(seen) } };
}

/** What the status keeps of the template: nothing before the first claim, and then what was kept first. */
function templateOf({ instance: { status }, template }: Observed): Pick<GpuInstanceStatus, 'template'> {
  if ((status?.incarnation ?? 0) === 0 || template === undefined) return {};
  const kept = typeof template === 'object' ? template.snapshot : status?.template;
  return kept === undefined ? {} : { template: kept };
}

/** Whether others were told to end for a start that has no place yet. */
function haveOthersGivenWay({ instance, othersEnd }: Observed): boolean {
  const { claim, othersEnded } = instance.status ?? {};
  return (othersEnd ?? othersEnded) === true && claim === undefined && !isSwitchedOff(instance);
}

/** The devices of the pod. While their slice is away nobody tells their UUIDs, which stay as they were told. */
function heldDevices({ instance, devices = [] }: Observed): HeldDevice[] {
  const known = instance.status?.devices ?? [];
  return devices.map(({ isTainted: _taint, ...told }) => {
    const before = known.find(
      ({ driver, pool, device }) => driver === told.driver && pool === told.pool && device === told.device,
    );
    return { ...before, ...told };
  });
}

/** The status for what is seen. Claim, usage and ending are carried over: the controller decided them. */
export function statusOf(seen: Observed, ssh: SshAddress, waiting?: Waiting): GpuInstanceStatus {
  const observed = { ...seen, instance: withFinish(seen) };
  const { instance, pod, disk, settings, devices = [] } = observed;
  const {
    template: _t,
    rented: _r,
    unhealthyGPUs: _g,
    limits: _l,
    waitingSince: _w,
    reserved: _p,
    othersEnded: _o,
    ...status
  } = instance.status ?? {};
  const since = waitingSince(observed);
  const { unhealthy = [] } = gpuHealth(observed) ?? {};
  const isEnding = endingOf(status) !== undefined;
  const podIP = pod?.status?.podIP ?? (isEnding ? undefined : status.podIP);
  const stages = stagesOf(observed);
  const firstReady = status.firstReady ?? stages.ready;
  const described = status.claim === undefined ? settings : undefined;
  return {
    ...status,
    ...keptEnding(observed),
    ...templateOf(observed),
    ...keptRented(instance, observed.offered),
    ...limitsOf(instance, observed.now),
    ...(instance.metadata.generation !== undefined && { observedGeneration: instance.metadata.generation }),
    conditions: conditionsOf(observed, waiting),
    ...(pod?.metadata.uid !== undefined && { podUid: pod.metadata.uid }),
    ...(podIP !== undefined && { podIP }),
    ...(disk?.metadata.uid !== undefined && { disk: { name: disk.metadata.name, uid: disk.metadata.uid } }),
    ...(since !== undefined && { waitingSince: since }),
    ...(observed.reserved !== undefined && { reserved: observed.reserved }),
    ...(haveOthersGivenWay(observed) && { othersEnded: true }),
    ...(unhealthy.length > 0 && { unhealthyGPUs: [...unhealthy] }),
    ...(devices.length > 0 && { devices: heldDevices(observed) }),
    ...(described !== undefined && {
      image: described.image,
      runtype: described.runtype,
      diskGb: status.diskPersistent === true ? (status.diskGb ?? described.diskGb) : described.diskGb,
    }),
    ssh: {
      host: ssh.host,
      port: ssh.port,
      user: sshUserOf(instance),
      ...(ssh.knownHosts !== undefined && { knownHosts: ssh.knownHosts }),
    },
    stages,
    ...(firstReady !== undefined && { firstReady }),
  };
}
