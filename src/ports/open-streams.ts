import { PortError } from './errors.ts';

/** Who uses a port, and until when he may. */
export interface User {
  /** metadata.uid of the API key. */
  keyId: string;
}

export interface OpenStreams {
  /** Counts one more stream to the pod; its signal aborts when its user may no longer. Throws {@link PortError}. */
  open(user: User, podUid: string): { signal: AbortSignal; close(): void };
  /** Ends the streams of users who may no longer. */
  recheck(): void;
  /** Ends all. */
  close(): void;
}

const MAX_PER_POD = 128;
const MAX_STREAMS = 4096;

/** What is under way, bounded for each pod and in all. */
export function createOpenStreams(mayGoOn: (user: User) => boolean): OpenStreams {
  const all = new Set<{ user: User; cut: AbortController }>();
  const perPod = new Map<string, number>();
  return {
    open: (user, podUid) => {
      const count = perPod.get(podUid) ?? 0;
      if (count >= MAX_PER_POD || all.size >= MAX_STREAMS) {
        const [whose, most] = count >= MAX_PER_POD ? ['to this instance', MAX_PER_POD] : ['to instances', MAX_STREAMS];
        throw new PortError('too_many_streams', `${most} connections ${whose} are open, which is the most. Close one.`);
      }
      const entry = { user, cut: new AbortController() };
      all.add(entry);
      perPod.set(podUid, count + 1);
      return {
        signal: entry.cut.signal,
        close: () => {
          if (!all.delete(entry)) return;
          const left = (perPod.get(podUid) ?? 1) - 1;
          if (left === 0) perPod.delete(podUid);
          else perPod.set(podUid, left);
        },
      };
    },
    recheck: () => {
      for (const { user, cut } of all) if (!mayGoOn(user)) cut.abort();
    },
    close: () => {
      for (const { cut } of all) cut.abort();
    },
  };
}
