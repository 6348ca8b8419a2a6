import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../kube/errors.ts';
import { type Lease, LEASES } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import {
  ACTIVITY_ROLES,
  activityLeaseOf,
  type ActivityReport,
  type ActivityRole,
  LOST_AT,
  parseReport,
  REPORTED_AT,
  replicasOf,
} from '../resources/activity-lease.ts';
import type { RunSignals } from '../runtime/controller.ts';
import type { SessionEvidence } from './gpu-instance/decide/observed.ts';

/** Milliseconds between two looks at what the replicas report. They report every 30 seconds. */
const LOOK_MS = 10_000;
/** A role of which nothing was heard in so many looks of a leader, and never before, is not installed. */
const NEVER_LOOKS = 6;
/** A replica whose report did not change in so many looks has gone without a word. As long as Kubernetes waits for a node. */
const LOST_LOOKS = 30;

interface Seen {
  text: string;
  report: ActivityReport;
  /** In how many looks in a row it was the same. */
  looks: number;
}

interface RoleView {
  lease: Lease | undefined;
  replicas: ReadonlyMap<string, Seen>;
  /** In how many looks there was no sign that the role ever reported. */
  silentLooks: number;
}

const NOTHING: RoleView = { lease: undefined, replicas: new Map(), silentLooks: 0 };
/** While nothing is known, nobody is idle. */
const UNKNOWN: SessionEvidence = { since: 0, until: -Infinity, versions: [] };

export interface SessionReportsDeps {
  client: KubeClient;
  /** Berth's own. */
  namespace: string;
  clock: Clock;
  log: Logger;
}

/**
 * What the replicas that serve instances say of their use, for one term as the leader. Only looks that reached the API
 * server count, so while it is away nobody is given up.
 */
export class SessionReports {
  readonly #deps: SessionReportsDeps;
  readonly #views = new Map<ActivityRole, RoleView>();
  /** Undefined after a look. */
  #evidence: { known: SessionEvidence | undefined } | undefined;

  constructor(deps: SessionReportsDeps) {
    this.#deps = deps;
  }

  /** What is known of the use of instances; undefined when nobody serves any. */
  evidence(): SessionEvidence | undefined {
    this.#evidence ??= { known: this.#found() };
    return this.#evidence.known;
  }

  #found(): SessionEvidence | undefined {
    const found = ACTIVITY_ROLES.map((role) => evidenceOf(role, this.#views.get(role) ?? NOTHING)).filter(
      (one) => one !== undefined,
    );
    if (found.length === 0) return undefined;
    return {
      since: Math.max(...found.map(({ since }) => since)),
      until: Math.min(...found.map(({ until }) => until)),
      versions: found.flatMap(({ versions }) => versions),
    };
  }

  /** Looks until a signal aborts. Never rejects. */
  async run({ stop, abort }: RunSignals): Promise<void> {
    const over = AbortSignal.any([stop, abort]);
    while (!over.aborted) {
      for (const role of ACTIVITY_ROLES) await this.#look(role, over);
      await this.#deps.clock.sleep(LOOK_MS, over);
    }
  }

  async #look(role: ActivityRole, signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    try {
      const lease = await this.#read(activityLeaseOf(role), signal);
      const before = this.#views.get(role) ?? NOTHING;
      const view = viewOf(lease, before);
      this.#views.set(role, view);
      this.#evidence = undefined;
      for (const [key, { looks }] of view.replicas) if (looks >= LOST_LOOKS) await this.#giveUp(role, key, signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, role }, 'Reports of sessions were not read; nothing ends as idle');
    }
  }

  /** The Lease; makes it where it is missing. */
  async #read(name: string, signal: AbortSignal): Promise<Lease> {
    const { client, namespace } = this.#deps;
    try {
      return await client.get(LEASES, { namespace, name }, { signal });
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    try {
      return await client.create<Lease>(LEASES, { metadata: { namespace, name } }, { signal });
    } catch (error) {
      if (error instanceof AlreadyExistsError) return client.get(LEASES, { namespace, name }, { signal });
      throw error;
    }
  }

  /** Its sessions are over. Who had one may come back, and gets the time for it. */
  async #giveUp(role: ActivityRole, key: string, signal: AbortSignal): Promise<void> {
    const { client, namespace, clock, log } = this.#deps;
    const annotations = { [key]: null, [LOST_AT]: new Date(clock.now()).toISOString() };
    const name = activityLeaseOf(role);
    await client.patch(LEASES, { namespace, name }, { metadata: { annotations } }, { type: 'merge', signal });
    log.warn({ role, replica: key }, 'A replica that serves instances went without a word; idle times begin anew');
  }
}

function viewOf(lease: Lease, before: RoleView): RoleView {
  const replicas = new Map<string, Seen>();
  for (const [key, text] of replicasOf(lease)) {
    const known = before.replicas.get(key);
    if (known?.text === text) replicas.set(key, { ...known, looks: known.looks + 1 });
    else replicas.set(key, { text, report: parseReport(text), looks: 0 });
  }
  const isHeard = replicas.size > 0 || lease.metadata.annotations?.[REPORTED_AT] !== undefined;
  return { lease, replicas, silentLooks: isHeard ? 0 : before.silentLooks + 1 };
}

function evidenceOf(role: ActivityRole, { lease, replicas, silentLooks }: RoleView): SessionEvidence | undefined {
  if (lease === undefined) return UNKNOWN;
  const lost = Date.parse(lease.metadata.annotations?.[LOST_AT] ?? '');
  const since = Number.isFinite(lost) ? lost : 0;
  const reports = [...replicas.values()].map(({ report }) => report);
  if (reports.length === 0) {
    // Ports are one way in of several. Where SSH was and is not, nobody could come.
    if (role !== 'ssh') return since === 0 ? undefined : { since, until: Infinity, versions: [] };
    return silentLooks >= NEVER_LOOKS ? undefined : UNKNOWN;
  }
  // When the last replica of the role before was gone, nobody had a session.
  const first = role === 'ssh' ? Math.min(...reports.map((report) => report.since)) : 0;
  return {
    since: Math.max(since, first),
    until: Math.min(...reports.map(({ until }) => until)),
    versions: reports.map(({ version }) => version),
  };
}
