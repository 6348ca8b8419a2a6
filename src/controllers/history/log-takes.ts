import type { Logger } from 'pino';
import type { Clock } from '../../lib/clock.ts';
import { Lru } from '../../lib/lru.ts';
import type { Pod } from '../../kube/types.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { KeepLog, LogSubject } from './keep-log.ts';

/** The log of one pod, of a container that runs or that has ended. */
interface Take {
  id: string;
  /** Nothing waits for it any more: it is kept, or the time is over. */
  isOver: boolean;
}

/** The log of a pod that is being deleted, read while its program ends. */
interface Follow {
  uid: string | undefined;
  namespace: string;
  abort: AbortController;
  /** Whether it was kept to its end. */
  kept: Promise<boolean>;
}

interface LogTakesOptions {
  keep: KeepLog;
  clock: Pick<Clock, 'setTimeout'>;
  log: Logger;
}

/** Milliseconds that a pod waits for its log to be kept. A kubelet that does not answer holds its GPUs no longer. */
const WAIT_MS = {
  running: 2_000,
  /** Nothing is billed any more, and no later reading has the last words of the program. */
  ended: 10_000,
};
/** Logs that are read at once of one tenant. The next one begins when one of these has ended. */
const MOST_AT_ONCE = 8;
/** Logs that are followed at once, of one tenant and of all. Others are read when their program has ended. */
const MOST_FOLLOWED = { ofTenant: 16, inAll: 256 };
const MAX_KNOWN = 4_096;

/** Keeps the logs of pods that are about to go, beside the workers: no other instance waits for a kubelet. */
export class LogTakes {
  readonly #options: LogTakesOptions;
  readonly #takes = new Lru<string, Take>(MAX_KNOWN);
  /** By namespace: what waits for its turn, while so many are read. */
  readonly #tenants = new Map<string, { running: number; waiting: (() => void)[] }>();
  readonly #follows = new Lru<string, Follow>(MAX_KNOWN);
  readonly #running = new Set<Follow>();
  #wake: AddKey | undefined;

  /** Adds the keys of instances that have no log to wait for any more. */
  readonly source: Source = {
    synced: Promise.resolve(),
    start: (add) => {
      this.#wake = add;
      return () => {
        this.#wake = undefined;
        for (const { abort } of this.#running) abort.abort();
      };
    },
  };

  constructor(options: LogTakesOptions) {
    this.#options = options;
  }

  /** Whether the pod need not wait for its log. The first question begins to keep it. */
  isOver(key: string, subject: LogSubject): boolean {
    const id = `${subject.pod.metadata.uid} ${subject.phase}`;
    const known = this.#takes.get(key);
    if (known?.id === id) return known.isOver;
    const take: Take = { id, isOver: false };
    this.#takes.set(key, take);
    void this.#run(key, subject, take);
    return false;
  }

  /**
   * Follows the log of a pod that is being deleted and whose program still runs. A kubelet removes the log of such a pod
   * within a second of the end, so that whoever reads it afterwards may come too late.
   */
  follow(key: string, pod: Pod): void {
    const { namespace = '', name, uid } = pod.metadata;
    if (this.#follows.get(key)?.uid === uid) return;
    const ofTenant = [...this.#running].filter((one) => one.namespace === namespace).length;
    if (ofTenant >= MOST_FOLLOWED.ofTenant || this.#running.size >= MOST_FOLLOWED.inAll) return;
    const { keep, log } = this.#options;
    const abort = new AbortController();
    const kept = keep({ pod, phase: 'ending' }, abort.signal).then(
      () => true,
      (err: unknown) => {
        if (!abort.signal.aborted) log.warn({ err, namespace, pod: name }, 'The log of a pod that ends broke off');
        return false;
      },
    );
    const follow = { uid, namespace, abort, kept };
    this.#follows.set(key, follow);
    this.#running.add(follow);
    void kept.then(() => this.#running.delete(follow));
  }

  /** Ends what is followed of a pod that goes. */
  leave(key: string, { metadata: { uid } }: Pod): void {
    const follow = this.#follows.get(key);
    if (follow?.uid === uid) follow?.abort.abort();
  }

  async #run(key: string, subject: LogSubject, take: Take): Promise<void> {
    const { clock, keep, log } = this.#options;
    const { namespace = '', name: pod, uid } = subject.pod.metadata;
    const known = this.#follows.get(key);
    const follow = known?.uid === uid ? known : undefined;
    const timeUp = new AbortController();
    const cancel = clock.setTimeout(
      () => {
        timeUp.abort(new Error('The kubelet did not give the log in time.'));
        follow?.abort.abort();
        this.#end(key, take);
      },
      subject.phase === 'running' ? WAIT_MS.running : WAIT_MS.ended,
    );
    if ((await follow?.kept) !== true) {
      await this.#turn(namespace);
      try {
        timeUp.signal.throwIfAborted();
        await keep(subject, timeUp.signal);
      } catch (err) {
        log.warn({ err, namespace, pod }, 'The end of a log was not kept');
      }
      this.#next(namespace);
    }
    cancel();
    this.#end(key, take);
  }

  #end(key: string, take: Take): void {
    if (take.isOver) return;
    take.isOver = true;
    this.#wake?.(key);
  }

  #turn(namespace: string): Promise<void> | undefined {
    const tenant = this.#tenants.get(namespace) ?? { running: 0, waiting: [] };
    this.#tenants.set(namespace, tenant);
    if (tenant.running >= MOST_AT_ONCE) return new Promise((resolve) => tenant.waiting.push(resolve));
    tenant.running += 1;
    return undefined;
  }

  #next(namespace: string): void {
    const tenant = this.#tenants.get(namespace);
    const next = tenant?.waiting.shift();
    if (next !== undefined) next();
    else if (tenant !== undefined && (tenant.running -= 1) === 0) this.#tenants.delete(namespace);
  }
}
