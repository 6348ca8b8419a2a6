import { StringDecoder } from 'node:string_decoder';
import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { AlreadyExistsError } from '../../kube/errors.ts';
import { NewestLines } from '../../kube/streams/newest-lines.ts';
import { type LogLine, logLines, type LogOptions, openPodLog } from '../../kube/streams/pod-log.ts';
import type { Pod } from '../../kube/types.ts';
import { HISTORY_OF } from '../../resources/instance-history.ts';
import {
  INSTANCE_LOGS,
  instanceLogName,
  KEPT,
  KEPT_PREVIOUS,
  LOG_BYTES,
  LOG_OF_START,
  packLines,
} from '../../resources/instance-log.ts';
import { INSTANCE_UID_LABEL, instanceUidOf, startOf } from '../../resources/pod/owner.ts';
import { MAIN_CONTAINER } from '../../resources/pod/tools-volume.ts';
import { KEPT_BYTES, removeOldLogs } from './old-logs.ts';

/** Bytes of a line that are kept. One long line must not push out all others. */
const MOST_LINE = 8 * 1024;
const CUT = ' [line cut by Berth]';
/** Old logs of a tenant are looked for when so many bytes were written since. */
const TRIM_AFTER = KEPT_BYTES / 4;
/** Bytes that are followed. A program that floods its log while it ends costs no more than this. */
const MOST_FOLLOWED = 16 * 1024 * 1024;

/** A start whose log is to be kept. */
export interface LogSubject {
  pod: Pod;
  /** `running`: what is there now, and more may come. `ending`: read until the program ends. */
  phase: 'running' | 'ending' | 'ended';
}

export type KeepLog = (subject: LogSubject, signal: AbortSignal) => Promise<void>;

interface KeeperDeps {
  client: KubeClient;
  log: Logger;
}

/** A text of so many bytes at most, cut between two characters. */
function cut({ time, text }: LogLine): LogLine {
  const bytes = Buffer.from(text);
  if (bytes.length <= MOST_LINE) return { time, text };
  return { time, text: new StringDecoder('utf8').write(bytes.subarray(0, MOST_LINE)) + CUT };
}

async function* bounded(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > MOST_FOLLOWED) throw new Error('The program floods its log while it ends.');
    yield chunk;
  }
}

/** The start that a pod is of. Throws where it is of none. */
function subjectOf(pod: Pod): { name: string; uid: string; start: number } {
  const [uid, start] = [instanceUidOf(pod), startOf(pod)];
  if (uid === undefined || start === undefined) throw new Error('The pod names no instance.');
  return { name: start.name, uid, start: start.incarnation };
}

/** Keeps the ends of the logs of starts that are over, as objects in the namespaces of their tenants. */
export class LogKeeper {
  readonly #deps: KeeperDeps;
  /** Bytes that were written by namespace since its old logs were looked for. */
  readonly #written = new Map<string, number>();

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /**
   * Reads the end of a log and writes it. It replaces what was kept of the start before: the container ran then. Throws
   * when a log that is followed breaks off.
   *
   * @param signal ends the reading
   */
  async keep({ pod, phase }: LogSubject, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const { namespace = '' } = pod.metadata;
    const { name, uid, start } = subjectOf(pod);
    const main = pod.status?.containerStatuses?.find((one) => one.name === MAIN_CONTAINER);
    const restarted = main?.lastState?.terminated !== undefined && main.state?.waiting === undefined;
    // Both at once: the kubelet may remove either as soon as the program has ended.
    const [end, earlier] = await Promise.all([
      this.#read(pod, KEPT, { follow: phase === 'ending', signal }),
      restarted ? this.#read(pod, KEPT_PREVIOUS, { previous: true, signal }).catch(() => undefined) : undefined,
    ]);
    const spec = {
      instance: name,
      instanceUid: uid,
      start,
      lines: packLines(end.lines),
      // The kubelet may have removed the container before the last one. What was kept of it then stays.
      ...(earlier !== undefined && earlier.lines.length > 0 && { previous: packLines(earlier.lines) }),
      truncated: end.truncated,
    };
    const bytes = spec.lines.length + (spec.previous?.length ?? 0);
    const ref = { namespace, name: instanceLogName(uid, start) };
    const labels = { [HISTORY_OF]: name, [INSTANCE_UID_LABEL]: uid, [LOG_OF_START]: String(start) };
    const annotations = { [LOG_BYTES]: String(bytes) };
    try {
      await client.create(INSTANCE_LOGS, { metadata: { ...ref, labels, annotations }, spec });
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
      // The kubelet has removed the container: what was kept while it ran is more.
      if (phase !== 'running' && end.lines.length === 0) return;
      await client.patch(INSTANCE_LOGS, ref, { metadata: { annotations }, spec }, { type: 'merge' });
    }
    await this.#trim(namespace, bytes);
  }

  async #read(
    pod: Pod,
    most: typeof KEPT | typeof KEPT_PREVIOUS,
    options: Pick<LogOptions, 'follow' | 'previous' | 'signal'>,
  ) {
    const { namespace = '', name } = pod.metadata;
    const target = { namespace, pod: name, container: MAIN_CONTAINER };
    const newest = new NewestLines(most);
    // One more than is kept says whether there are more.
    const stream = await openPodLog(this.#deps.client, target, { ...options, tail: most.lines + 1 });
    let count = 0;
    for await (const batch of logLines(options.follow === true ? bounded(stream) : stream)) {
      count += batch.length;
      for (const line of batch) newest.add(cut(line));
    }
    return { lines: newest.lines, truncated: newest.truncated || count > most.lines };
  }

  async #trim(namespace: string, bytes: number): Promise<void> {
    const written = (this.#written.get(namespace) ?? 0) + bytes;
    this.#written.set(namespace, written);
    if (written < TRIM_AFTER) return;
    this.#written.delete(namespace);
    await removeOldLogs(this.#deps.client, { namespace, isKnown: () => true });
  }
}
