import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../kube/errors.ts';
import { SECRETS, type Secret } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { personOf, type Session, sessionIdOf } from './session.ts';

/** In Berth's own namespace, for all replicas: when each session that was ended would have ended by itself. */
export const ENDED_SECRET = 'berth-dashboard-ended';
/** Milliseconds that an answer counts, so that a session ends within a second everywhere. */
const ASK_AGAIN_MS = 500;
/** Milliseconds by which the clocks of replicas may differ. */
const SKEW_MS = 60_000;
/** Marks, of some 100 bytes each. A Secret has 1 MiB, and each replica that is in use reads it twice a second. */
const MOST_MARKS = 2000;
/** Of one person, who would leave no room for others. */
const MOST_OF_PERSON = 50;

/** Milliseconds since the epoch, by the id of the session. */
type Marks = ReadonlyMap<string, number>;

function marksOf({ data = {} }: Secret): Marks {
  return new Map(Object.entries(data).map(([id, at]) => [id, Number(Buffer.from(at, 'base64').toString())]));
}

function encode(expires: number): string {
  return Buffer.from(String(expires)).toString('base64');
}

/** Why no mark of a session fits; undefined when one does. */
function noRoom(marks: Marks, session: Session, now: number): string | undefined {
  const live = [...marks].filter(([, expires]) => expires > now).map(([id]) => id);
  const person = personOf(sessionIdOf(session));
  if (live.length >= MOST_MARKS) return `${MOST_MARKS} sessions ended`;
  if (live.filter((id) => personOf(id) === person).length >= MOST_OF_PERSON)
    return `you signed out ${MOST_OF_PERSON} times`;
  return undefined;
}

export interface EndedSessionsDeps {
  client: Pick<KubeClient, 'get' | 'create' | 'patch'>;
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Berth's own. */
  namespace: string;
}

/**
 * The sessions that people have ended. A session is a sealed text that a browser keeps, and a copy of it stays one: so
 * there is a mark of it until it would have ended by itself, an hour at most.
 */
export class EndedSessions {
  readonly #deps: EndedSessionsDeps;
  #known: { marks: Marks; askedAt: number } | undefined;
  #asking: Promise<Marks> | undefined;

  constructor(deps: EndedSessionsDeps) {
    this.#deps = deps;
  }

  /** Rejects when the API server does not say. */
  async has(session: Session): Promise<boolean> {
    const { clock } = this.#deps;
    const isFresh = this.#known !== undefined && clock.monotonic() - this.#known.askedAt < ASK_AGAIN_MS;
    const marks = isFresh ? this.#known?.marks : await this.#ask();
    return marks?.has(sessionIdOf(session)) ?? false;
  }

  /** Ends a session on all replicas. Rejects when it stays, with the reason. */
  async end(session: Session): Promise<void> {
    const { client, clock, namespace } = this.#deps;
    const id = sessionIdOf(session);
    const marks = await this.#read();
    if (marks.has(id)) return;
    const now = clock.now();
    const full = noRoom(marks, session, now);
    if (full !== undefined) throw stays(session, full, now);
    const old = [...marks].filter(([, expires]) => expires <= now - SKEW_MS).map(([one]) => [one, null]);
    const mark = { [id]: encode(session.expires) };
    const metadata = { namespace, name: ENDED_SECRET };
    // Each replica writes only its own marks, so none undoes those of another.
    const patch = (): Promise<unknown> =>
      client.patch(SECRETS, metadata, { data: { ...Object.fromEntries(old), ...mark } }, { type: 'merge' });
    try {
      await patch();
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      await client.create(SECRETS, { metadata, type: 'Opaque', data: mark }).catch((refused: unknown) => {
        if (!(refused instanceof AlreadyExistsError)) throw refused;
        return patch();
      });
    }
    this.#known = undefined;
  }

  #ask(): Promise<Marks> {
    this.#asking ??= this.#read().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #read(): Promise<Marks> {
    const { client, clock, namespace } = this.#deps;
    const askedAt = clock.monotonic();
    const marks = await client.get(SECRETS, { namespace, name: ENDED_SECRET }).then(marksOf, (error: unknown) => {
      if (error instanceof NotFoundError) return new Map<string, number>();
      throw error;
    });
    this.#known = { marks, askedAt };
    return marks;
  }
}

/** The 429 of a sign-out that only this browser knows of. */
function stays({ expires }: Session, why: string, now: number): ApiError {
  const message = `This browser is signed out. But ${why} in the last hour, so a copy of this session is good until ${new Date(expires).toISOString()}.`;
  return new ApiError('rate_limit_exceeded', message, { retryAfterSeconds: Math.ceil((expires - now) / 1000) });
}
