import type { Stores } from '../../../caches/caches.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { FairShares } from '../../../lib/shares.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { overloaded } from '../../interface/errors/busy.ts';
import { lastEventId, limitLife, wantsEvents } from '../../interface/events/event-stream.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import { type Call, route } from '../../interface/route.ts';
import { sendJson, sendText } from '../../interface/send.ts';
import { parseQuery } from '../../interface/validate.ts';
import {
  isSimulated,
  logFailure,
  loggedContainer,
  noContainer,
  nodeSilent,
  simulatedHasNoLog,
} from '../instances/container.ts';
import { instanceOf, type InstanceSource } from '../instances/find.ts';
import { LogFollower } from './follow.ts';
import { idOf, LineCursor, positionOf } from './position.ts';
import { readLog } from './read.ts';
import { type LogQuery, logQuerySchema, logSchema } from './schema.ts';

export interface LogsContext extends InstanceSource {
  clock: Clock;
  streams: StreamRegistry;
  logReads: FairShares;
  logFollows: FairShares;
  stores: Stores<'instances' | 'pods'>;
}

/** Milliseconds for one answer. */
const READ_MS = 30_000;

/** The log of the container as one answer. */
async function read(context: LogsContext, { request, response, caller }: Call, query: LogQuery, instance: GpuInstance) {
  const { client, clock, logReads, stores } = context;
  const container = loggedContainer(instance, stores.pods);
  if (container === undefined) throw noContainer(instance);
  if (logReads.take(caller.namespace, 1) !== 'taken') throw overloaded('readings of logs');
  const over = new AbortController();
  const cancel = clock.setTimeout(() => over.abort(nodeSilent(instance, 'The log did not arrive in time.')), READ_MS);
  response.once('close', () => over.abort());
  try {
    const { signal } = over;
    const { lines, truncated } = await readLog(container.target, { client, query, now: clock.now(), signal });
    if (request.accepts(['json', 'text']) === 'text') {
      sendText(response, lines.map(({ text }) => `${text}\n`).join(''));
      return;
    }
    const cursor = new LineCursor(container.start, undefined);
    const data = lines.map((line) => {
      const position = cursor.admit(line)?.position ?? { ...line, start: container.start, count: 0 };
      return { id: idOf(position), at: line.time, text: line.text };
    });
    const about = { instance_id: instance.metadata.name, source: query.source, truncated };
    sendJson(response, JSON.stringify({ object: 'list', ...about, data }));
  } catch (error) {
    if (response.destroyed) return;
    throw logFailure(error, instance);
  } finally {
    cancel();
    logReads.give(caller.namespace, 1);
  }
}

async function follow(
  context: LogsContext,
  { request, response, caller }: Call,
  query: LogQuery,
  instance: GpuInstance,
) {
  // It closed while the instance was looked up: nothing would give back what it holds.
  if (response.destroyed) return;
  const after = positionOf(lastEventId(request));
  const { clock, client, logFollows, stores, streams } = context;
  const container = loggedContainer(instance, stores.pods);
  const { state } = instanceState(instance);
  const isOver = container === undefined && (state === 'stopped' || state === 'failed');
  if (isOver && after === undefined) throw noContainer(instance);
  if (logFollows.take(caller.namespace, 1) !== 'taken') throw overloaded('followed logs');
  response.once('close', () => logFollows.give(caller.namespace, 1));
  const stream = streams.open(request, response);
  const ended = new AbortController();
  response.once('close', () => ended.abort());
  const alive = limitLife(stream, clock, ended);
  const follower = new LogFollower(
    {
      client,
      clock,
      instances: stores.instances,
      pods: stores.pods,
      signal: ended.signal,
      send: (events) => {
        alive();
        for (const event of events) stream.send(event);
        return stream.ready();
      },
    },
    { instance: instance.metadata, query, after },
  );
  await follower.run();
  ended.abort();
  stream.end();
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
    'What the container of the current start writes to its standard output and error, and what its start script writes. ' +
    'With Accept: text/plain the lines alone. With follow=true or Accept: text/event-stream: line (a new line), ' +
    'restart (the container was started again), gap (lines before are lost), waiting (the log will go on), end (it ' +
    'will not). A stream ends after an hour, and after 15 minutes without a line; it goes on at any replica with the last id as Last-Event-ID.',
  query: logQuerySchema,
  success: { status: 200, schema: logSchema, description: 'The last lines, oldest first.' },
  plainText: 'The lines alone.',
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
    const query = parseQuery(logQuerySchema, call.request.originalUrl);
    const instance = await instanceOf(context, call.request);
    if (isSimulated(instance)) throw simulatedHasNoLog();
    const asStream = query.follow || wantsEvents(call.request);
    await (asStream ? follow : read)(context, call, query, instance);
  },
});
