import { pino } from 'pino';
import type { WithStored } from '../../src/controllers/gpu-instance/act/observe.ts';
import type { Run } from '../../src/controllers/gpu-instance/act/run.ts';
import { writeLateUsageRecords } from '../../src/controllers/gpu-instance/act/clean-up.ts';
import type { Vanished } from '../../src/controllers/gpu-instance/unrecorded.ts';
import { takeStep } from '../../src/controllers/gpu-instance/act/take-step.ts';
import { writeStatus } from '../../src/controllers/gpu-instance/act/writes.ts';
import { GRACE_MS } from '../../src/controllers/gpu-instance/decide/finish.ts';
import { planNext } from '../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../src/controllers/gpu-instance/decide/status/status.ts';
import { claimedStatus } from '../../src/controllers/gpu-instance/decide/transitions.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../../src/kube/errors.ts';
import type { KubeObject, Node, Pod, ResourceType } from '../../src/kube/types.ts';
import { sameJson } from '../../src/lib/json.ts';
import type { Claim, GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import type { UsageRecord } from '../../src/resources/usage-record.ts';
import { observed, readyNode, SCHEDULED, startedPod } from './instance-world.ts';
import { claimOn, gpuInstance } from './inventory-world.ts';

const SSH = { host: 'ssh.test', port: 22 };
const LOG = pino({ level: 'silent' });

/** The process died at a write: before the API server had it, or after. */
class Crash extends Error {}
export type CrashPoint = { write: number; when: 'before' | 'after' } | undefined;

/** What a status was when the API server took it, as an audit log has it. */
interface Audited {
  status: NonNullable<GpuInstance['status']>;
}

interface Stored {
  /** Undefined once it is gone. */
  instance: GpuInstance | undefined;
  pod: Pod | undefined;
  records: ReadonlyMap<string, UsageRecord>;
  audit: readonly Audited[];
  /** When another client made the instance vanish with a start that was open, milliseconds since the epoch, and its node then. */
  vanished: { at: number; node: Node } | undefined;
}

type Operation = { op: string; path: string; value?: unknown; from?: string };

function valueAt(object: unknown, path: string): unknown {
  return path
    .split('/')
    .slice(1)
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
}

/** Times on pods are whole seconds. */
function podTime(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString();
}

function mainWith(state: object) {
  return { name: 'main', image: 'i', imageID: '', ready: true, restartCount: 0, state };
}

/**
 * One instance at an API server that keeps what the controller writes, on the conditions that its patches name. The
 * controller's own decisions and writes run on it. It can die at each write, and act on an old view.
 */
export class LedgerWorld {
  now: number;
  /** How far the clock was set back, all in all, milliseconds. */
  wentBackMs = 0;
  offer: Partial<Claim> = {};
  #node: Node = readyNode();
  #stored: Stored;
  /** Every state that was, oldest first: what a stale cache may show. */
  readonly #views: GpuInstance[] = [];
  /** How long a pod takes to end, in ms; 0: it is gone before anybody sees it ended. */
  graceMs = 0;
  /** When the container of the pod that is deleted ends, milliseconds since the epoch. */
  #ends: number | undefined;
  #snapshot: Stored | undefined;
  #crash: CrashPoint;
  #writes = 0;

  constructor(now: number) {
    this.now = now;
    const instance = gpuInstance('one', {});
    this.#stored = { instance, pod: undefined, records: new Map(), audit: [], vanished: undefined };
  }

  get stored(): Stored {
    return this.#stored;
  }

  setClock(ms: number): void {
    this.now += ms;
    this.wentBackMs += Math.max(0, -ms);
  }

  /** What the owner or another client does. */
  edit(spec: Partial<GpuInstance['spec']>, metadata: Partial<GpuInstance['metadata']> = {}): void {
    const { instance } = this.#stored;
    if (instance === undefined) return;
    const generation = (instance.metadata.generation ?? 0) + 1;
    this.#keep({
      ...instance,
      metadata: { ...instance.metadata, ...metadata, generation },
      spec: { ...instance.spec, ...spec },
    });
  }

  podReady(): void {
    const { pod } = this.#stored;
    if (pod === undefined) return;
    const time = podTime(this.now);
    const conditions = [
      { ...SCHEDULED, lastTransitionTime: time },
      { type: 'Ready', status: 'True', lastTransitionTime: time },
    ];
    const containerStatuses = [mainWith({ running: { startedAt: time } })];
    this.#stored = { ...this.#stored, pod: { ...pod, status: { ...pod.status, conditions, containerStatuses } } };
  }

  /** The kubelet ends a pod that is deleted: its container at its time, and the pod some time after that. */
  podEnds(): void {
    const { pod } = this.#stored;
    if (pod === undefined || this.#ends === undefined || this.now < this.#ends) return;
    if (pod.status?.phase === 'Failed') {
      this.podGone();
      return;
    }
    const { startedAt } = pod.status?.containerStatuses?.[0]?.state?.running ?? {};
    if (startedAt === undefined) {
      this.podGone();
      return;
    }
    const terminated = { exitCode: 143, startedAt, finishedAt: podTime(this.#ends) };
    const status = { ...pod.status, phase: 'Failed', containerStatuses: [mainWith({ terminated })] };
    this.#stored = { ...this.#stored, pod: { ...pod, status } };
  }

  #deletePod(): void {
    const { pod } = this.#stored;
    if (this.graceMs === 0 || pod === undefined) {
      this.podGone();
      return;
    }
    this.#ends = this.now + this.graceMs;
    const deletionTimestamp = new Date(this.now + GRACE_MS).toISOString();
    this.#stored = { ...this.#stored, pod: { ...pod, metadata: { ...pod.metadata, deletionTimestamp } } };
  }

  /** Whether Kubernetes has the heartbeats of the node, from now on. */
  nodeAnswers(answers: boolean): void {
    const node = readyNode();
    const lastTransitionTime = new Date(Math.floor(this.now / 1000) * 1000).toISOString();
    const conditions = [{ type: 'Ready', status: answers ? 'True' : 'Unknown', lastTransitionTime }];
    this.#node = { ...node, status: { ...node.status, conditions } };
  }

  podGone(): void {
    this.#ends = undefined;
    this.#stored = { ...this.#stored, pod: undefined };
  }

  save(): void {
    this.#snapshot = this.#stored;
  }

  /** Everything as it was when it was saved, as after a restore of etcd. */
  restore(): void {
    if (this.#snapshot === undefined) return;
    this.#stored = this.#snapshot;
    this.#ends = undefined;
    // Every replica reads everything anew.
    this.#views.length = 0;
    if (this.#stored.instance !== undefined) this.#views.push(this.#stored.instance);
  }

  /** Another client removes the finalizer of an instance that is being deleted. The controller finds that out later. */
  async vanish(): Promise<void> {
    const { instance } = this.#stored;
    if (instance === undefined) return;
    this.#stored = {
      ...this.#stored,
      instance: undefined,
      pod: undefined,
      vanished: { at: this.now, node: this.#node },
    };
    const run = this.#run(instance, undefined);
    let left: Vanished[] = [{ instance, at: this.now }];
    const unrecorded = { withKey: () => left, forget: () => (left = []) };
    await writeLateUsageRecords({ ...run, deps: { ...run.deps, unrecorded } } as unknown as Run);
  }

  /** One step of a controller; `age`: by how many states its view is old. */
  async reconcile({ crash, age = 0 }: { crash?: CrashPoint; age?: number } = {}): Promise<void> {
    const current = this.#stored.instance;
    const view = age === 0 ? current : this.#views.at(-1 - age);
    if (view === undefined || (current === undefined && age === 0)) return;
    this.#writes = 0;
    const { pod } = this.#stored;
    const named = pod?.metadata.name === view.status?.podName ? pod : undefined;
    const seen = observed({ instance: view, pod: named, pods: pod ? [pod] : [], node: this.#node, now: this.now });
    try {
      await this.#step(this.#run(view, crash), seen);
    } catch (error) {
      // Its work is done by the next leader, or it was refused.
      if (!(error instanceof Crash) && !(error instanceof ConflictError) && !(error instanceof NotFoundError))
        throw error;
    }
  }

  async #step(run: Run, seen: WithStored): Promise<void> {
    const step = planNext(seen);
    switch (step.do) {
      case 'claim': {
        if (seen.settings === undefined) return;
        const claim = claimOn('n', { ...this.offer, grantedAt: new Date(this.now).toISOString() });
        const status = claimedStatus(seen.instance, claim, { persistent: false, settings: seen.settings });
        const next = { ...seen, pod: undefined, instance: { ...seen.instance, status } };
        await writeStatus(run, seen.stored, statusOf(next, SSH));
        return;
      }
      case 'createPod': {
        const name = seen.instance.status?.podName ?? '';
        const pod = startedPod({ conditions: [] }, { name, uid: `uid-${name}-${this.#views.length}` });
        if (this.#stored.instance !== undefined) this.#stored = { ...this.#stored, pod };
        return;
      }
      case 'observe':
      case 'wait':
        await writeStatus(run, seen.stored, statusOf(seen, SSH));
        return;
      default:
        await takeStep(run, step, seen);
    }
  }

  #keep(instance: GpuInstance): void {
    this.#views.push(instance);
    this.#stored = { ...this.#stored, instance };
  }

  /** Counts a write, and dies there where it was told to. */
  #write<T>(make: () => T): Promise<T> {
    this.#writes += 1;
    const point = this.#crash?.write === this.#writes ? this.#crash.when : undefined;
    if (point === 'before') return Promise.reject(new Crash());
    try {
      const made = make();
      return point === 'after' ? Promise.reject(new Crash()) : Promise.resolve(made);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #patch(body: readonly Operation[]): GpuInstance {
    const { instance, audit } = this.#stored;
    if (instance === undefined) throw new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
    for (const { op, path, value } of body) {
      if (op === 'test' && !sameJson(valueAt(instance, path) ?? null, value)) {
        throw new ConflictError({ message: path, status: 409, reason: 'Conflict' });
      }
    }
    const status = body.find(({ op, path }) => op === 'add' && path === '/status')?.value as GpuInstance['status'];
    // The last of the finalizers goes, and the instance with it.
    if (status === undefined) {
      this.#stored = { ...this.#stored, instance: undefined };
      return instance;
    }
    this.#keep({ ...instance, status });
    this.#stored = { ...this.#stored, audit: [...audit, { status }] };
    return { ...instance, status };
  }

  #create(record: UsageRecord): UsageRecord {
    const { records } = this.#stored;
    const { name } = record.metadata;
    if (records.has(name)) throw new AlreadyExistsError({ message: name, status: 409, reason: 'AlreadyExists' });
    this.#stored = { ...this.#stored, records: new Map([...records, [name, record]]) };
    return record;
  }

  #run(view: GpuInstance, crash: CrashPoint): Run {
    this.#crash = crash;
    const client = {
      get: () => Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' })),
      create: (_type: ResourceType, record: KubeObject) => this.#write(() => this.#create(record as UsageRecord)),
      patch: (_type: ResourceType, _ref: unknown, body: Operation[]) => this.#write(() => this.#patch(body)),
      delete: () => this.#write(() => this.#deletePod()),
    };
    const nothing = (): undefined => undefined;
    const deps = {
      noteEnding: nothing,
      client,
      clock: { now: () => this.now },
      stores: {
        instances: { get: () => view },
        nodes: { get: () => this.#node },
        pods: { by: () => [], get: nothing },
        namespaces: { get: nothing },
      },
      fence: { wrote: nothing, deleted: nothing },
      events: { record: nothing },
      inventory: { undecided: nothing, forget: nothing, written: nothing },
      line: { remove: nothing, reserved: nothing },
      tenantLine: { remove: nothing },
      unrecorded: { markRecorded: nothing },
      config: { ssh: SSH },
    };
    return { deps, key: 'default/one', context: { log: LOG } } as unknown as Run;
  }
}
