import { pino } from 'pino';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { type KubeObject, keyOf, type Pod, PODS, type ResourceType } from '../../src/kube/types.ts';
import { Informer } from '../../src/kube/watch/reflector.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { READY_REASONS } from '../../src/resources/instances/instance-state.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { type Account, judgeBills, type SeenStart } from './bills.ts';
import type { Accepted } from './accepted.ts';
import { judgeVictims, type SeenPreemption, type SeenRequest } from './victims.ts';

const UID_LABEL = 'berth.dev/instance-uid';
/** Instances in these states were ended, and their owners asked for nothing. */
const OVER = new Set<string>(['failed', 'stopped', 'deleting']);

function stateOf(instance: GpuInstance): string | undefined {
  const reason = findCondition(instance.status?.conditions, 'Ready')?.reason;
  return reason === undefined ? undefined : READY_REASONS[reason as keyof typeof READY_REASONS]?.state;
}

/** What the API server says of accepted instances that is not to be, at one moment. */
export function lostOf(
  accepted: ReadonlyMap<string, string>,
  there: readonly GpuInstance[],
): { uid: string; text: string }[] {
  const byUid = new Map(there.map((one) => [one.metadata.uid, one]));
  return [...accepted].flatMap(([uid, name]) => {
    const instance = byUid.get(uid);
    if (instance === undefined) return [{ uid, text: `${name} is lost: nobody deleted it` }];
    const condition = findCondition(instance.status?.conditions, 'Ready');
    if (!OVER.has(stateOf(instance) ?? '')) return [];
    return [{ uid, text: `${name} is lost: ${condition?.reason}: ${condition?.message}` }];
  });
}

/** The earliest and the last moment at which the main container of a pod ran, as its kubelet says. */
function timesOf({ status }: Pod): Pick<SeenStart, 'startedAt' | 'finishedAt'> {
  const main = status?.containerStatuses?.find(({ name }) => name === 'main');
  const { running, terminated } = main?.state ?? {};
  const starts = [running, terminated, main?.lastState?.terminated].map((one) => Date.parse(String(one?.startedAt)));
  const startedAt = Math.min(...starts.filter((one) => one > 0));
  const finishedAt = Date.parse(String(terminated?.finishedAt));
  return { ...(startedAt < Infinity && { startedAt }), ...(finishedAt > 0 && { finishedAt }) };
}

function startOf(pod: Pod): number {
  return Number(/-(\d+)$/.exec(pod.metadata.name)?.[1] ?? 0);
}

interface WitnessOptions {
  namespaces: readonly string[];
  accepted: Accepted;
}

/** Sees every start of every instance, and how it ended, by the API server alone. */
export class Witness implements AsyncDisposable {
  readonly #client: KubeClient;
  readonly #options: WitnessOptions;
  readonly #ended = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #starts = new Map<string, SeenStart>();
  readonly #requests = new Map<string, SeenRequest>();
  readonly #preemptions: SeenPreemption[] = [];
  readonly #names = new Map<string, string>();
  /** uid and number of a start -> when its end was decided. */
  readonly #decided = new Map<string, number>();
  readonly #disturbed = new Set<string>();
  readonly #lost = new Set<string>();

  private constructor(client: KubeClient, options: WitnessOptions) {
    this.#client = client;
    this.#options = options;
  }

  static async start(client: KubeClient, options: WitnessOptions): Promise<Witness> {
    const witness = new Witness(client, options);
    for (const namespace of options.namespaces) {
      await witness.#follow(GPU_INSTANCES, namespace, (instance) => witness.#seeInstance(instance));
      await witness.#follow(PODS, namespace, (pod, isGone) => witness.#seePod(pod, isGone));
    }
    return witness;
  }

  async #follow<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string,
    see: (object: T, isGone: boolean) => void,
  ): Promise<void> {
    const log = pino({ level: 'silent' });
    const client = this.#client;
    const informer = new Informer({ client, type, namespace, clock: systemClock(), random: Math.random, log });
    informer.store.onChange(({ before, after }) => {
      const object = after ?? before;
      if (object !== undefined) see(object, after === undefined);
    });
    this.#running.push(informer.run(this.#ended.signal));
    await informer.store.synced;
  }

  #seeInstance(instance: GpuInstance): void {
    const { metadata, status } = instance;
    const { uid = '' } = metadata;
    const name = keyOf(instance);
    this.#names.set(uid, name);
    const state = stateOf(instance);
    const before = this.#requests.get(uid);
    this.#requests.set(uid, {
      name,
      starts: Math.max(status?.incarnation ?? 0, before?.starts ?? 0),
      ran: before?.ran === true || state === 'running' || status?.stages?.started !== undefined,
      waits: status?.claim === undefined && metadata.deletionTimestamp === undefined && !OVER.has(state ?? ''),
    });
    const { ending, incarnation = 0 } = status ?? {};
    if (ending === undefined) return;
    if (ending.by !== undefined) this.#preemptions.push({ victim: name, by: ending.by, start: incarnation });
    this.#decided.set(`${uid}/${incarnation}`, Date.parse(ending.at));
  }

  #seePod(pod: Pod, isGone: boolean): void {
    const { uid = '', labels, creationTimestamp, deletionTimestamp } = pod.metadata;
    const instance = labels?.[UID_LABEL];
    if (instance === undefined) return;
    const before = this.#starts.get(uid);
    const { startedAt, finishedAt } = timesOf(pod);
    const first = Math.min(startedAt ?? Infinity, before?.startedAt ?? Infinity);
    const seen: SeenStart = {
      start: startOf(pod),
      pod: keyOf(pod),
      podUid: uid,
      instance,
      real: pod.spec?.nodeName === REAL_NODE,
      created: Date.parse(String(creationTimestamp)),
      ...before,
      ...(pod.spec?.nodeName !== undefined && { real: pod.spec.nodeName === REAL_NODE }),
      ...(first < Infinity && { startedAt: first }),
      ...(finishedAt !== undefined && { finishedAt }),
      ...(isGone && { goneAt: before?.goneAt ?? Date.now() }),
    };
    this.#starts.set(uid, seen);
    if (isGone || deletionTimestamp !== undefined) this.#seeEnd(seen);
  }

  /** A program of an on-demand instance ends by its owner, by one of the faults of this run, or by a fault of Berth. */
  #seeEnd({ podUid, pod, instance, startedAt }: SeenStart): void {
    const { accepted } = this.#options;
    if (startedAt === undefined || !accepted.steady.has(instance) || accepted.disturbed.has(podUid)) return;
    this.#disturbed.add(`pod ${pod} was ended, and neither its owner nor a fault of this run did it`);
  }

  /** Looks at once whether every accepted instance is there, and runs or waits. Says nothing while nobody answers. */
  async look(): Promise<void> {
    const { namespaces, accepted } = this.#options;
    const before = new Map(accepted.names);
    const there: GpuInstance[] = [];
    for (const namespace of namespaces) there.push(...(await this.#client.list(GPU_INSTANCES, { namespace })).items);
    for (const { uid, text } of lostOf(before, there)) if (accepted.names.has(uid)) this.#lost.add(text);
  }

  get lost(): string[] {
    return [...this.#lost];
  }

  get disturbed(): string[] {
    return [...this.#disturbed];
  }

  /** Instances that ran although nobody was told that they were rented, once every answer has come. */
  get untold(): string[] {
    const { ever } = this.#options.accepted;
    const untold = [...this.#starts.values()].filter((one) => one.startedAt !== undefined && !ever.has(one.instance));
    return untold.map(({ pod }) => `pod ${pod} ran, and nobody was told that its instance was rented`);
  }

  /** What is wrong with bills and preemptions, once nothing moves any more. */
  async atRest(): Promise<{ bills: string[]; victims: string[]; starts: number }> {
    const accounts = new Map<string, Account & { records: Account['records'][number][] }>();
    const accountOf = (uid: string, name: string) => {
      const account = accounts.get(uid) ?? { name, intervals: [], records: [] };
      accounts.set(uid, account);
      return account;
    };
    for (const namespace of this.#options.namespaces) {
      for (const { spec } of (await this.#client.list(USAGE_RECORDS, { namespace })).items)
        accountOf(spec.instanceUid, `${namespace}/${spec.instance}`).records.push(spec);
      for (const { metadata, status } of (await this.#client.list(GPU_INSTANCES, { namespace })).items) {
        const { intervals = [], usage, claim, incarnation } = status ?? {};
        Object.assign(accountOf(metadata.uid ?? '', `${namespace}/${metadata.name}`), {
          intervals,
          used: usage?.gpuSeconds,
          ...(claim !== undefined && { open: incarnation }),
        });
      }
    }
    const seen = [...this.#starts.values()].map((one) => {
      const decidedAt = this.#decided.get(`${one.instance}/${one.start}`);
      return decidedAt === undefined ? one : { ...one, decidedAt };
    });
    const starts = Map.groupBy(seen, ({ instance }) => instance);
    for (const [uid] of starts) accountOf(uid, this.#names.get(uid) ?? uid);
    return {
      bills: [...accounts].flatMap(([uid, account]) => judgeBills(account, starts.get(uid) ?? [])),
      victims: judgeVictims(this.#preemptions, this.#requests),
      starts: this.#starts.size,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#running);
  }
}
