import type { ServerEvent } from '../../wire/event-stream.ts';
import type { LogLine } from '../../wire/records.ts';
import type { Session } from '../session.ts';
import type { Api } from './client.ts';
import { instancePath } from './find-instance.ts';
import { followEvents } from './follow-events.ts';

/** Attempts after the connection is lost, two seconds apart. */
const ATTEMPTS = 150;
/** How often a key may be refused after that which worked before. */
const REFUSALS = 5;

/** What is followed: the query of the log, without `follow`. */
export interface Followed {
  id: string;
  query: URLSearchParams;
  /** Ends the following. */
  signal?: AbortSignal;
}

/** The line in an event, if it is one. */
export function lineOf({ type, data }: ServerEvent): LogLine | undefined {
  return type === 'line' ? (JSON.parse(data) as LogLine) : undefined;
}

/** The events of a log to its end, from replica to replica: no line is lost and none comes twice. */
export async function* followLog(
  api: Api,
  { id, query, signal }: Followed,
  session: Pick<Session, 'terminal' | 'sleep'>,
): AsyncGenerator<ServerEvent> {
  const all = new URLSearchParams([['follow', 'true'], ...query]);
  const onBreak = (): void => session.terminal.say('The connection broke. Trying again.');
  const following = { attempts: ATTEMPTS, refusals: REFUSALS, onBreak, signal };
  for await (const event of followEvents(api, instancePath(id, `/logs?${all.toString()}`), session, following)) {
    yield event;
    if (event.type === 'end') return;
  }
}

const NOTICES: Readonly<Record<string, string>> = {
  restart: 'The container was started again.',
  gap: 'Lines may be missing here: the log was rotated, or went with an earlier start.',
};

/** Words for an event that is no line, of which the last is what happened to the instance. */
export function noticeOf({ type, data }: ServerEvent): string | undefined {
  if (type !== 'waiting' && type !== 'end') return NOTICES[type];
  const { state, message, reason } = JSON.parse(data) as Partial<Record<string, string>>;
  const what = [state, message || reason].filter(Boolean).join(': ');
  return `${type === 'end' ? 'The log ends' : 'Waiting'}: ${what || data}`;
}
