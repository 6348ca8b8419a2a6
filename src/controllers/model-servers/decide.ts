/** What the API server shows of one model server. */
export interface View {
  /** Tells one renewal of its Lease from another. */
  renewal: string;
  /** The renewal after which it may sleep. */
  asleepAfter: string | undefined;
  /** Replicas that its workload should have now. */
  replicas: number;
  /** Replicas that it gets when a call comes to none. */
  minimum: number;
  idleMs: number;
}

/** What this leader has seen of the server so far. Times are milliseconds, monotonic. */
export interface Memory {
  renewal: string;
  /** When it first saw this renewal, or what else begins the time without calls anew. */
  since: number;
  /** It saw the renewal before this one, too. So the renewal is as young as `since` says. */
  sawChange: boolean;
  /** When it marked the server asleep. */
  markedAt?: number;
}

export type Step =
  /** Look again after so many milliseconds. */
  | { kind: 'wait'; ms: number }
  /** Write that the server sleeps after this renewal. */
  | { kind: 'mark' }
  /** Remove that again. */
  | { kind: 'unmark' }
  | { kind: 'scale'; replicas: number };

/** The scale of a workload is not watched. It is read this often, and whenever the Lease or the Service changes. */
export const LOOK_MS = 60_000;
/** A replica of the gateway with calls renews within 5 s of the mark: it has three more tries. */
export const DRAIN_MS = 20_000;
/** Replicas with waiting calls renew every 5 s. A renewal that is older than this says nothing of now. */
const FRESH_MS = 30_000;

/** Takes in a renewal. The times are this process's own, so the clocks of other machines do not matter. */
export function remember(memory: Memory | undefined, renewal: string, now: number): Memory {
  if (memory?.renewal === renewal) return memory;
  return { renewal, since: now, sawChange: memory !== undefined };
}

/**
 * What to do next about one model server. Its workload moves between 0 and the minimum alone: more replicas than the
 * minimum are in other hands, such as an autoscaler's, and stay. Before the workload goes to zero the server is marked
 * for a while, so that every replica of the gateway can object with a renewal.
 */
export function decide(view: View, memory: Memory, now: number): Step {
  const { renewal, asleepAfter, replicas, minimum } = view;
  return asleepAfter === renewal ? whileAsleep(replicas, minimum, memory, now) : whileAwake(view, memory, now);
}

function whileAsleep(replicas: number, minimum: number, { markedAt }: Memory, now: number): Step {
  if (replicas === 0) return { kind: 'wait', ms: LOOK_MS };
  // An operator or an autoscaler raised it, or an earlier leader stopped half-way: the time without calls begins anew.
  if (markedAt === undefined || replicas > minimum) return { kind: 'unmark' };
  const left = markedAt + DRAIN_MS - now;
  return left > 0 ? { kind: 'wait', ms: left } : { kind: 'scale', replicas: 0 };
}

function whileAwake({ replicas, minimum, idleMs }: View, { since, sawChange }: Memory, now: number): Step {
  if (replicas === 0) {
    const isFresh = sawChange && now - since < FRESH_MS;
    // An old renewal does not undo a scale to zero by an operator. The next one does.
    return isFresh ? { kind: 'scale', replicas: minimum } : { kind: 'mark' };
  }
  if (replicas > minimum) return { kind: 'wait', ms: LOOK_MS };
  const left = since + idleMs - now;
  return left > 0 ? { kind: 'wait', ms: Math.min(left, LOOK_MS) } : { kind: 'mark' };
}
