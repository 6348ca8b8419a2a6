import { pino } from 'pino';
import { RecordWriter } from '../../src/gateway/billing/record-writer.ts';
import { TokenMeter } from '../../src/gateway/billing/token-meter.ts';
import type { BilledCall } from '../../src/gateway/billing/token-page.ts';
import type { Usage } from '../../src/gateway/dialects/index.ts';
import type { KubeClient, ListOptions } from '../../src/kube/client/client.ts';
import { InvalidError, TimeoutError, TransportError } from '../../src/kube/errors.ts';
import { keyOf, type KubeObject, type Namespace } from '../../src/kube/types.ts';
import { parseMoney } from '../../src/resources/money.ts';
import type { TokenEntry, TokenRecord } from '../../src/resources/token-record.ts';
import { fakeClock } from './fake-clock.ts';
import { FakeStore } from './fake-store.ts';

/** How the API server treats a write: it fails before or after it was done, is answered late, or done after a later one. */
export type WriteFate = 'done' | 'failed' | 'doneAndFailed' | 'slow' | 'late';

/** Milliseconds of a slow write. */
const SLOW_MS = 3000;

/** A call as the test made it, and whether a write that holds it was done. */
export interface LoggedCall extends BilledCall {
  replica: number;
  day: string;
  usage: Usage | undefined;
  /** Name of the record that it belongs to. */
  record: string;
  isStored: boolean;
}

interface Replica {
  meter: TokenMeter;
  ended: AbortController;
  running: Promise<void>;
  isDead: boolean;
}

type Costing = Pick<TokenEntry, 'calls' | 'cost'>;

const GROWING = ['calls', 'unreported', 'inputTokens', 'cachedInputTokens', 'outputTokens'] as const;

/** The rules of the CustomResourceDefinition. */
function shrinks(before: TokenRecord, after: TokenRecord): boolean {
  const idOf = (one: TokenEntry): string =>
    JSON.stringify([one.by, one.model, one.inputPrice, one.cachedInputPrice, one.outputPrice]);
  const now = new Map(after.spec.entries.map((one) => [idOf(one), one]));
  const isLess = (later: Costing, one: Costing): boolean =>
    later.calls < one.calls || parseMoney(later.cost) < parseMoney(one.cost);
  const shrunk = before.spec.entries.some((one) => {
    const later = now.get(idOf(one));
    return later === undefined || isLess(later, one) || GROWING.some((name) => later[name] < one[name]);
  });
  return shrunk || isLess(after.spec, before.spec);
}

export const INTRUDER = 'key/intruder';
const WORDS = { message: 'the test says so', reason: 'Test' };

/** Replicas of the gateway that count calls, and an API server that keeps their records. */
export class TokenWorld {
  readonly clock = fakeClock();
  readonly records = new Map<string, TokenRecord>();
  readonly log: LoggedCall[] = [];
  readonly namespaces = new FakeStore<Namespace>();
  /** What becomes of the next writes; afterwards all are done. */
  fates: WriteFate[] = [];
  refused = 0;
  readonly #late: (() => void)[] = [];
  readonly #replicas: Replica[] = [];

  start(): number {
    const { clock } = this;
    const index = this.#replicas.length;
    const meter = new TokenMeter({ replica: `replica-${index}`, clock });
    const client = {
      apply: (_type: unknown, object: KubeObject) => this.#apply(index, object as TokenRecord),
      list: async (_type: unknown, { namespace = '', fieldSelector = '' }: ListOptions) => {
        const record = this.records.get(keyOf({ namespace, name: fieldSelector.replace('metadata.name=', '') }));
        return { items: record === undefined ? [] : [structuredClone(record)] };
      },
    };
    const writer = new RecordWriter({
      client: client as unknown as Pick<KubeClient, 'apply' | 'list'>,
      meter,
      namespaces: this.namespaces,
      clock,
      log: pino({ level: 'silent' }),
    });
    const ended = new AbortController();
    this.#replicas.push({ meter, ended, running: writer.run(ended.signal), isDead: false });
    return index;
  }

  /** Replicas that serve calls. */
  get alive(): number[] {
    return this.#replicas.flatMap(({ isDead }, index) => (isDead ? [] : [index]));
  }

  meterOf(index: number): TokenMeter {
    const replica = this.#replicas[index];
    if (replica === undefined) throw new RangeError(`there is no replica ${index}`);
    return replica.meter;
  }

  call(replica: number, call: BilledCall, usage: Usage | undefined): void {
    const day = new Date(this.clock.now()).toISOString().slice(0, 10);
    const meter = this.meterOf(replica);
    const before = new Map(meter.unwritten.map((page) => [page, page.calls]));
    meter.add(call, usage);
    const page = meter.unwritten.find((one) => one.calls !== before.get(one));
    const record = page?.record().metadata.name ?? '';
    this.log.push({ ...call, replica, day, usage, record, isStored: false });
  }

  /** The process dies: nothing that it has in memory is left. */
  kill(index: number): void {
    const replica = this.#replicas[index];
    if (replica !== undefined) replica.isDead = true;
  }

  /** The process stops as SIGTERM asks it to. */
  async stop(index: number): Promise<void> {
    const replica = this.#replicas[index];
    if (replica === undefined || replica.isDead) return;
    replica.ended.abort();
    void replica.running.then(() => (replica.isDead = true));
    while (!replica.isDead) await this.clock.advance(1000);
  }

  /** Somebody with the token of the role adds an entry of no calls to every record. */
  intrude(): void {
    for (const [key, record] of this.records) {
      const [first] = record.spec.entries;
      if (first === undefined || record.spec.entries.some(({ by }) => by === INTRUDER)) continue;
      const entry = { ...first, by: INTRUDER, cost: '0', ...Object.fromEntries(GROWING.map((name) => [name, 0])) };
      this.records.set(key, { ...record, spec: { ...record.spec, entries: [...record.spec.entries, entry] } });
    }
  }

  /** Writes that the network held back arrive. */
  deliver(): void {
    for (const arrive of this.#late.splice(0)) arrive();
  }

  /** Never answers a dead process. */
  #apply(index: number, record: TokenRecord): Promise<TokenRecord> {
    if (this.#replicas[index]?.isDead === true) return new Promise(() => undefined);
    const { namespace = '', name } = record.metadata;
    const held = this.log.filter((one) => one.record === name);
    const arrive = (): boolean => {
      const before = this.records.get(keyOf({ namespace, name }));
      if (before !== undefined && shrinks(before, record)) {
        this.refused += 1;
        return false;
      }
      this.records.set(keyOf({ namespace, name }), structuredClone(record));
      for (const one of held) one.isStored = true;
      return true;
    };
    const fate = this.fates.shift() ?? 'done';
    if (fate === 'failed') return Promise.reject(new TransportError({ ...WORDS, status: 0 }));
    if (fate === 'late') {
      this.#late.push(arrive);
      return Promise.reject(new TimeoutError({ ...WORDS, status: 504 }));
    }
    if (!arrive()) return Promise.reject(new InvalidError({ ...WORDS, status: 422 }));
    if (fate === 'doneAndFailed') return Promise.reject(new TransportError({ ...WORDS, status: 0 }));
    return fate === 'slow' ? this.clock.sleep(SLOW_MS).then(() => record) : Promise.resolve(record);
  }
}
