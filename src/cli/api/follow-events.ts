import { eventsOf, type ServerEvent } from '../../wire/event-stream.ts';
import type { Session } from '../session.ts';
import { type Api, isPassing } from './client.ts';
import { ApiFailure, isBroken } from './failures.ts';

/** Between two attempts. */
const PAUSE_MS = 2000;

interface Following {
  /** Attempts after the connection is lost. */
  attempts?: number;
  /** How often a key may be refused after that which worked before. */
  refusals?: number;
  /** Called when the connection is lost. */
  onBreak?: () => void;
  /** Ends the following. */
  signal?: AbortSignal | undefined;
}

/**
 * The events of a stream of the server, over lost connections and from replica to replica. An event counts as taken when the
 * next one is asked for. It ends only where who reads it does, or with the signal.
 */
export async function* followEvents(
  api: Api,
  path: string,
  { sleep }: Pick<Session, 'sleep'>,
  { attempts = 30, refusals = 0, onBreak, signal }: Following = {},
): AsyncGenerator<ServerEvent> {
  let last = '';
  let refused = 0;
  for (let failures = 0; ;) {
    try {
      for await (const event of eventsOf(await api.events(path, last))) {
        [failures, refused] = [0, 0];
        if (signal?.aborted) return;
        yield event;
        last = event.id || last;
      }
    } catch (error) {
      // A replica that has just begun does not know the key yet, and a forward of kubectl may lead there.
      const isNew = failures > 0 && refused < refusals && error instanceof ApiFailure && error.status === 401;
      if (isNew) refused += 1;
      else if (!isPassing(error) && !isBroken(error)) throw error;
      failures += 1;
      if (failures === 1) onBreak?.();
      if (failures > attempts) throw error;
    }
    if (signal?.aborted) return;
    await sleep(PAUSE_MS);
  }
}
