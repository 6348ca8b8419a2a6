import type { Stores } from '../../../caches/caches.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Paces } from '../../../lib/paces.ts';
import type { FairShares } from '../../../lib/shares.ts';
import { NotFoundError } from '../../../kube/errors.ts';
import type { LogLine } from '../../../kube/streams/pod-log.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { overloaded } from '../../interface/errors/busy.ts';
import { lastEventId, limitLife, type StreamEvent, wantsEvents } from '../../interface/events/event-stream.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import { type Call, route } from '../../interface/route.ts';
import { sendJson, sendText } from '../../interface/send.ts';
import { parseQuery } from '../../interface/validate.ts';
import {
  isSimulated,
  logFailure,
  type LoggedContainer,
  loggedContainer,
  noContainer,
  nodeSilent,
  simulatedHasNoLog,
} from '../instances/container.ts';
import { instanceNotFound, instanceOf, type InstanceSource } from '../instances/find.ts';
import { findHistory } from '../instances/histories.ts';
import { keptEvents, LogFollower } from './follow.ts';
import { findKeptLog, type KeptLog, type LoggedInstance, nothingKept, notRestarted } from './kept.ts';
import { idOf, LineCursor, positionOf } from './position.ts';
import { chooseLines, readLog, type ReadOptions } from './read.ts';
import { type LogQuery, logQuerySchema, logSchema } from './schema.ts';

export interface LogsContext extends InstanceSource {
  clock: Clock;
  streams: StreamRegistry;
  logReads: FairShares;
  logFollows: FairShares;
  logPaces: Paces;
  stores: Stores<'instances' | 'pods'>;
}

/** Milliseconds for one answer. */
const READ_MS = 30_000;

/** What a call asks for: the instance as it is, and the container whose log is wanted and still there. */
interface Wanted {
  query: LogQuery;
  subject: LoggedInstance;
  /** Undefined when it is gone. */
  instance: GpuInstance | undefined;
  container: LoggedContainer | undefined;
}

/** The last start of an instance that is gone, as its history tells. Throws 404 when there is no history either. */
async function goneInstance({ client, logReads }: LogsContext, namespace: string, id: string): Promise<LoggedInstance> {
  if (logReads.take(namespace, 1) !== 'taken') throw overloaded('readings of histories');
  try {
    const history = await findHistory(client, { namespace, id });
    if (history === undefined) throw instanceNotFound();
    const { instanceUid: uid, entries } = history.spec;
    return { namespace, name: id, uid, last: Math.max(0, ...entries.map(({ start }) => start)) };
  } finally {
    logReads.give(namespace, 1);
  }
}

async function wantedOf(context: LogsContext, { request, caller }: Call): Promise<Wanted> {
  const query = parseQuery(logQuerySchema, request.originalUrl);
  const instance = await instanceOf(context, request).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'instance_not_found') return undefined;
    throw error;
  });
  if (instance === undefined) {
    const subject = await goneInstance(context, caller.namespace, String(request.params['instanceId']));
    return { query, subject, instance, container: undefined };
  }
  if (isSimulated(instance)) throw simulatedHasNoLog();
  const { namespace = '', name, uid = '' } = instance.metadata;
  const subject = { namespace, name, uid, last: instance.status?.incarnation ?? 0 };
  const container = loggedContainer(instance, context.stores.pods);
  const isAsked = query.start === undefined || query.start === container?.start;
  return { query, subject, instance, container: isAsked ? container : undefined };
}

interface ReadLines {
  lines: readonly LogLine[];
  truncated: boolean;
  start: number;
  kept: boolean;
}

/** What was kept of a start. Throws 409 in the words of the instance when nothing was and no start was asked for. */
async function readKept({ client, clock }: LogsContext, { query, subject, instance }: Wanted): Promise<ReadLines> {
  const start = query.start ?? subject.last;
  const found = await findKeptLog(client, subject, start);
  if (found === undefined && instance !== undefined && query.start === undefined) throw noContainer(instance);
  if (found === undefined) throw nothingKept(start);
  const all = query.previous ? found.previous : found.lines;
  if (all === undefined) throw notRestarted();
  const lines = chooseLines(all, query, clock.now());
  const isFromBegin = lines[0] === all[0] && lines.length < query.tail;
  return { lines, truncated: found.truncated && isFromBegin, start, kept: true };
}

/** The log of the container; what was kept of it when it went meanwhile. */
async function readLines(
  context: LogsContext,
  wanted: Wanted,
  { signal, pace }: Pick<ReadOptions, 'signal' | 'pace'>,
): Promise<ReadLines> {
  const { query, container, instance } = wanted;
  if (container === undefined || instance === undefined) return readKept(context, wanted);
  try {
    const { client, clock } = context;
    const read = await readLog(container.target, { client, query, now: clock.now(), signal, pace });
    return { ...read, start: container.start, kept: false };
  } catch (error) {
    if (error instanceof NotFoundError) return readKept(context, wanted);
    throw logFailure(error, instance);
  }
}

/** Counts what is read of a log for its tenant. */
function paceOf({ logPaces }: LogsContext, tenant: string, signal: AbortSignal): ReadOptions['pace'] {
  return (characters) => {
    logPaces.count(tenant, characters);
    return logPaces.ready(tenant, signal);
  };
}

/** A log as one answer. */
async function read(context: LogsContext, { request, response, caller }: Call, wanted: Wanted) {
  const { clock, logReads } = context;
  const { query, subject, instance } = wanted;
  if (logReads.take(caller.namespace, 1) !== 'taken') throw overloaded('readings of logs');
  const over = new AbortController();
  const cancel = clock.setTimeout(() => over.abort(nodeSilent(instance, 'The log did not arrive in time.')), READ_MS);
  response.once('close', () => over.abort());
  try {
    const { lines, ...about } = await readLines(context, wanted, {
      signal: over.signal,
      pace: paceOf(context, caller.namespace, over.signal),
    });
    if (request.accepts(['json', 'text']) === 'text') {
      sendText(response, lines.map(({ text }) => `${text}\n`).join(''));
      return;
    }
    const cursor = new LineCursor(about.start, undefined);
    const data = lines.map((line) => {
      const position = cursor.admit(line)?.position ?? { ...line, start: about.start, count: 0 };
      return { id: idOf(position), at: line.time, text: line.text };
    });
    const head = { object: 'list', instance_id: subject.name, source: query.source, ...about };
    sendJson(response, JSON.stringify({ ...head, data }));
  } catch (error) {
    if (response.destroyed) return;
    throw error;
  } finally {
    cancel();
    logReads.give(caller.namespace, 1);
  }
}

async function follow(context: LogsContext, { request, response, caller }: Call, wanted: Wanted) {
  const { clock, client, logFollows, stores, streams } = context;
  const { query, subject, instance, container } = wanted;
  const after = positionOf(lastEventId(request));
  const isOfOne = instance === undefined || (query.start !== undefined && container === undefined);
  const state = instance && instanceState(instance).state;
  const isOver = isOfOne || (container === undefined && (state === 'stopped' || state === 'failed'));
  const asked = query.start ?? subject.last;
  const found = isOver ? await findKeptLog(client, subject, asked) : undefined;
  if (isOfOne && found === undefined) throw nothingKept(asked);
  if (isOver && found === undefined && after === undefined && instance !== undefined) throw noContainer(instance);
  // It closed while the instance was looked up: nothing would give back what it holds.
  if (response.destroyed) return;
  if (logFollows.take(caller.namespace, 1) !== 'taken') throw overloaded('followed logs');
  response.once('close', () => logFollows.give(caller.namespace, 1));
  const stream = streams.open(request, response);
  const ended = new AbortController();
  response.once('close', () => ended.abort());
  const alive = limitLife(stream, clock, ended);
  const send = (events: readonly StreamEvent[]): Promise<void> => {
    alive();
    for (const event of events) stream.send(event);
    return stream.ready();
  };
  if (isOfOne && found !== undefined) {
    const position = after?.start === asked ? after : undefined;
    await send(keptEvents(found, { start: asked, query, after: position, isFirst: true, now: clock.now() }));
    await send([endOfKept(asked)]);
  } else {
    const kept = (start: number): Promise<KeptLog | undefined> => findKeptLog(client, subject, start);
    const pace = paceOf(context, caller.namespace, ended.signal);
    const { instances, pods } = stores;
    const deps = { client, clock, instances, pods, kept, signal: ended.signal, pace, send };
    await new LogFollower(deps, { instance: subject, query, after }).run();
  }
  ended.abort();
  stream.end();
}

function endOfKept(start: number): StreamEvent {
  const message = `Start ${start} is over: this is what was kept of its log.`;
  return { type: 'end', data: JSON.stringify({ reason: 'Ended', message }) };
}

export const readLogsRoute = route({
  method: 'get',
  path: '/instances/{instanceId}/logs',
  id: 'getInstanceLogs',
  tag: 'Instances',
  scope: 'compute:read',
  compressed: true,
  summary: 'Read or follow the log of an instance',
  description:
    'The output and errors of the container of the current start, and of its start script. ' +
    'A start that is over has the last 64 KiB that were kept, also for a week after the instance is gone. ' +
    'With Accept: text/plain only the lines. With follow=true or Accept: text/event-stream: line (a new line), ' +
    'restart (the container was started again), gap (lines before are lost), waiting (the log will continue), end (it ' +
    'will not). A stream ends after an hour, and after 15 minutes without a line; it continues at any replica with the last id as Last-Event-ID.',
  query: logQuerySchema,
  success: { status: 200, schema: logSchema, description: 'The last lines, oldest first.' },
  plainText: 'Only the lines.',
  events: 'line, restart, gap, waiting, end',
  errors: [
    'instance_not_found',
    'instance_not_running',
    'instance_simulated',
    'log_not_found',
    'log_unavailable',
    'validation_failed',
  ],
  async handle(context: LogsContext, call) {
    const wanted = await wantedOf(context, call);
    const asStream = wanted.query.follow || wantsEvents(call.request);
    await (asStream ? follow : read)(context, call, wanted);
  },
});
