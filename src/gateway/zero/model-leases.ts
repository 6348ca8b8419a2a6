import type { Logger } from 'pino';
import { z } from 'zod';
import type { KubeClient } from '../../kube/client/client.ts';
import { type Lease, LEASES } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import {
  isAsleep,
  LEASE_PROBLEM,
  LEASE_SERVED,
  LEASE_START_SECONDS,
  modelLeaseName,
  notesOf,
  renewalOf,
} from '../../resources/model-servers/lease.ts';
import { DIALECTS, ENGINES } from '../dialects/index.ts';
import { PLAIN_NAMES } from '../plain-routes.ts';
import type { Probe, ServerMemory } from '../discovery/types.ts';

export interface ModelLeasesDeps {
  client: Pick<KubeClient, 'patch'>;
  /** Those of Berth's own namespace with the label of model servers. */
  leases: ReadStore<Lease>;
  /** Berth's own namespace. */
  namespace: string;
  /** This replica. */
  identity: string;
  clock: Clock;
  log: Logger;
}

/** While calls wait, this replica renews this often, so that a new leader of the controllers hears of them soon. */
const ASK_MS = 5000;
const SEEN_MS = 1000;
/** A renewal of any replica is enough for this long. */
const RENEW_MS = 10_000;
/** Replicas that see different pods of a server must not write in turns. */
const PROBE_MS = 60_000;
const PROBE_MAX = 16 * 1024;
const START_SECONDS_MAX = 3600;

const probeSchema = z.object({
  engine: z.enum(ENGINES),
  version: z.string().optional(),
  prefix: z.string(),
  models: z.array(
    z.object({ id: z.string(), contextLength: z.number().optional(), created: z.number().optional() }).readonly(),
  ),
  dialects: z.array(z.enum(DIALECTS)),
  plainPaths: z.partialRecord(z.enum(PLAIN_NAMES), z.string().regex(/^(\/[a-z0-9]+)+$/)),
  countTokens: z.boolean(),
  tokenize: z.boolean(),
});

/** What is read from a Lease, once for each version of it. */
interface Notes {
  probe: Probe | undefined;
  startSeconds: number | undefined;
}

/** When this replica last did something about a Lease, monotonic milliseconds. */
interface Moments {
  /** Saw a renewal come. */
  seen?: number;
  asked?: number;
  probeNoted?: number;
}

/** The Leases by which the replicas of the gateway and the controller tell each other about model servers at zero. */
export class ModelLeases implements ServerMemory {
  readonly #deps: ModelLeasesDeps;
  readonly #notes = new WeakMap<Lease, Notes>();
  /** By the name of the Lease, as long as it is there. */
  readonly #moments = new Map<string, Moments>();
  readonly #renewing = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #unsubscribe: () => void;

  constructor(deps: ModelLeasesDeps) {
    this.#deps = deps;
    this.#unsubscribe = deps.leases.onChange(({ before, after }) => this.#changed(before, after));
  }

  close(): void {
    this.#unsubscribe();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  lastProbe(uid: string): Probe | undefined {
    return this.#notesOf(uid)?.probe;
  }

  startSeconds(uid: string): number | undefined {
    return this.#notesOf(uid)?.startSeconds;
  }

  /** Why the controller cannot scale the workload. */
  problem(uid: string): string | undefined {
    const lease = this.#find(uid);
    return lease === undefined ? undefined : notesOf(lease)[LEASE_PROBLEM];
  }

  isAsleep(uid: string): boolean {
    const lease = this.#find(uid);
    return lease !== undefined && isAsleep(lease);
  }

  /** Says that calls are under way, unless a replica said so a moment ago. */
  keepAwake(uid: string): void {
    const lease = this.#find(uid);
    if (lease === undefined) return;
    const { seen = -Infinity } = this.#momentsOf(lease);
    if (isAsleep(lease) || this.#deps.clock.monotonic() - seen >= RENEW_MS) this.#renew(uid, lease);
  }

  /** Says that calls wait. */
  wake(uid: string): void {
    const lease = this.#find(uid);
    if (lease === undefined) return;
    const { asked = -Infinity } = this.#momentsOf(lease);
    // The cache shows the answer to the last renewal a moment later.
    const wait = isAsleep(lease) ? SEEN_MS : ASK_MS;
    if (this.#deps.clock.monotonic() - asked >= wait) this.#renew(uid, lease);
  }

  noteProbe(uid: string, probe: Probe): void {
    const lease = this.#find(uid);
    if (lease === undefined) return;
    const { clock } = this.#deps;
    const text = JSON.stringify(probe);
    if (text.length > PROBE_MAX || notesOf(lease)[LEASE_SERVED] === text) return;
    const now = clock.monotonic();
    const moments = this.#momentsOf(lease);
    if (now - (moments.probeNoted ?? -Infinity) < PROBE_MS) return;
    moments.probeNoted = now;
    void this.#patch(lease, { metadata: { annotations: { [LEASE_SERVED]: text } } });
  }

  /** The mean of this start and of those before it, of which the last counts half. */
  noteStart(uid: string, seconds: number): void {
    const lease = this.#find(uid);
    if (lease === undefined) return;
    const before = this.startSeconds(uid);
    const mean = before === undefined ? seconds : (before + seconds) / 2;
    const text = String(Math.min(START_SECONDS_MAX, Math.max(1, Math.round(mean))));
    void this.#patch(lease, { metadata: { annotations: { [LEASE_START_SECONDS]: text } } });
  }

  #renew(uid: string, lease: Lease): void {
    if (this.#renewing.has(uid)) return;
    this.#renewing.add(uid);
    const { clock, identity } = this.#deps;
    this.#momentsOf(lease).asked = clock.monotonic();
    const spec = { renewTime: renewTime(clock.now()), holderIdentity: identity };
    void this.#patch(lease, { spec }).finally(() => this.#renewing.delete(uid));
  }

  /** Never rejects: what could not be written is written when it is due again. */
  async #patch({ metadata: { name } }: Lease, body: object): Promise<void> {
    const { client, namespace, log } = this.#deps;
    try {
      await client.patch(LEASES, { namespace, name }, body, { type: 'merge' });
    } catch (err) {
      log.warn({ err, lease: name }, 'The Lease of a model server was not written');
    }
  }

  #momentsOf({ metadata: { name } }: Lease): Moments {
    let moments = this.#moments.get(name);
    if (moments === undefined) this.#moments.set(name, (moments = {}));
    return moments;
  }

  #find(uid: string): Lease | undefined {
    return this.#deps.leases.get(`${this.#deps.namespace}/${modelLeaseName(uid)}`);
  }

  #notesOf(uid: string): Notes | undefined {
    const lease = this.#find(uid);
    if (lease === undefined) return undefined;
    const known = this.#notes.get(lease);
    if (known !== undefined) return known;
    const { [LEASE_SERVED]: served, [LEASE_START_SECONDS]: seconds } = notesOf(lease);
    const startSeconds = Number(seconds);
    const notes = {
      probe: served === undefined ? undefined : readProbe(served),
      startSeconds: startSeconds >= 1 && startSeconds <= START_SECONDS_MAX ? startSeconds : undefined,
    };
    this.#notes.set(lease, notes);
    return notes;
  }

  #changed(before: Lease | undefined, after: Lease | undefined): void {
    if (after === undefined) {
      if (before !== undefined) this.#moments.delete(before.metadata.name);
    } else if (before !== undefined && renewalOf(before) !== renewalOf(after)) {
      this.#momentsOf(after).seen = this.#deps.clock.monotonic();
    }
    const isRemembered = [LEASE_SERVED, LEASE_START_SECONDS].every(
      (name) => before?.metadata.annotations?.[name] === after?.metadata.annotations?.[name],
    );
    if (isRemembered && (before === undefined) === (after === undefined)) return;
    for (const listener of this.#listeners) listener();
  }
}

function readProbe(text: string): Probe | undefined {
  try {
    return probeSchema.parse(JSON.parse(text));
  } catch {
    // Another version of Berth wrote it. The next probe replaces it.
    return undefined;
  }
}

/** RFC 3339 with microseconds. The last three digits are random, so that no two renewals are the same. */
function renewTime(now: number): string {
  const micros = String(Math.floor(Math.random() * 1000)).padStart(3, '0');
  return new Date(now).toISOString().replace('Z', `${micros}Z`);
}
