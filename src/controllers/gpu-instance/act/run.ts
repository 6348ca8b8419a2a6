import { refOf } from '../../../kube/types.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import type { NetworkPolicy } from '../../../kube/network-policy.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { EventRecorder } from '../../../kube/events.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Lru } from '../../../lib/lru.ts';
import type { ReconcileContext } from '../../../runtime/controller.ts';
import type { Fence } from '../../../runtime/fence.ts';
import type { RecordTimes } from '../../../runtime/record-times.ts';
import type { ControllerStores } from '../../stores.ts';
import type { JupyterState, MonitorState } from '../decide/observed.ts';
import type { ImagePullPolicy } from '../decide/pod/desired-pod.ts';
import type { LogTakes } from '../../history/log-takes.ts';
import type { PodChecks } from '../pod-checks.ts';
import type { NoteEnding, NoteStageTimes } from '../start-metric.ts';
import type { SshAddress } from '../decide/status/status.ts';
import type { NoteStatus } from '../trace-starts.ts';
import type { UnbilledPlaces } from '../unbilled-places.ts';
import type { UnrecordedInstances } from '../unrecorded.ts';
import type { SessionReports } from '../../session-reports.ts';
import type { LimitOf } from '../../tenants/tenant-ceilings.ts';
import type { Budgets } from '../../budgets/budgets.ts';
import type { TenantLine } from '../tenant-line.ts';
import type { WaitingLine } from '../waiting-line.ts';
import type { ClaimReads } from './claim-reads.ts';

export interface InstanceConfig {
  /** Berth's own. */
  namespace: string;
  /** Image of instances that name none. */
  defaultImage: string;
  /** Image with the tools in /tools: they are copied to the tools volume of each instance. */
  toolsImage: string;
  /** Secrets of Berth's namespace for its own images. With any, each tenant has a copy: see pull-secret.ts. */
  imagePullSecrets: readonly string[];
  /** For the images of instances. */
  imagePullPolicy: ImagePullPolicy;
  ssh: SshAddress;
  /** Whether the pod of a first start bears the claim. Only where admission keeps others from writing it there. */
  claimOnPod: boolean;
}

export interface InstanceDeps {
  client: KubeClient;
  stores: ControllerStores;
  /** Those that must close the namespace of an instance; undefined where none must. */
  networkPolicies?: ReadStore<NetworkPolicy> | undefined;
  inventory: Inventory;
  line: WaitingLine;
  /** Ceilings of a tenant as the policies have them now. */
  ceilingsOf: LimitOf;
  tenantLine: TenantLine;
  claimReads: ClaimReads;
  /** What tenants and keys may still spend. */
  budgets: Pick<Budgets, 'isMetered' | 'refusals' | 'overspent' | 'serve'>;
  fence: Fence;
  /** Name of the last pod that was made for an instance, by the uid of the instance. */
  made: Lru<string, string>;
  /** Deleted instances whose history is not written yet, by their uids. */
  unkept: Lru<string, Unkept>;
  events: Pick<EventRecorder, 'record'>;
  noteStages: NoteStageTimes;
  /** Counts a start that ends, by the reason in its status. */
  noteEnding: NoteEnding;
  /** Traces starts; undefined where nothing is traced. */
  noteStatus?: NoteStatus | undefined;
  clock: Clock;
  /** By which the entries of histories sort. */
  recordTimes: Pick<RecordTimes, 'now'>;
  config: InstanceConfig;
  unrecorded: UnrecordedInstances;
  /** What tenants held without paying for it. */
  unbilled: Pick<UnbilledPlaces, 'refusal' | 'preemptingRefusal'>;
  /** Tries logins through the SSH gateway; without it, a Ready pod is enough. */
  logins?: PodChecks<boolean> | undefined;
  /** Reads the events of pods that their nodes take long to set up. */
  troubles: Pick<PodChecks<string | undefined>, 'last'>;
  /** What is known of the use of instances; without it nobody serves them. */
  sessions?: Pick<SessionReports, 'evidence'> | undefined;
  /** Looks for Jupyter in instances of that runtype. */
  jupyters?: PodChecks<JupyterState | undefined> | undefined;
  /** Keeps the ends of logs. */
  logs?: LogTakes | undefined;
  /** Asks the exporters of `installMonitoring`. */
  monitors?: PodChecks<MonitorState> | undefined;
}

/** An instance whose history is not written yet. Times are monotonic milliseconds. */
export interface Unkept {
  /** When its history was tried first. */
  since: number;
  triedAt: number;
  /** What the API server said last. */
  why: string;
}

/** One reconcile of one instance. */
export interface Run {
  deps: InstanceDeps;
  key: string;
  context: ReconcileContext;
}

/** The instance waits neither for GPUs nor for room of its tenant. */
export function leaveLines({ deps, key }: Pick<Run, 'deps' | 'key'>): void {
  const isLeft = deps.line.reserved(key) !== undefined;
  deps.line.remove(key);
  deps.tenantLine.remove(key);
  // What was to come for it counted for its tenant.
  if (isLeft) deps.tenantLine.released(refOf(key).namespace ?? '');
}
