import type { Api } from '../api/client.ts';
import { findInstance, instancePath } from '../api/find-instance.ts';
import { followEvents } from '../api/follow-events.ts';
import { followLog, lineOf, noticeOf } from '../api/follow-log.ts';
import { plainJson } from '../../wire/plain.ts';
import type { EventRecord, List, LogLine, LogRecord } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { logLine, plain, table } from '../text.ts';

function queryOf(input: Input): URLSearchParams {
  const query = new URLSearchParams();
  const tail = input.number('tail');
  const since = input.text('since');
  if (tail !== undefined) query.set('tail', String(tail));
  if (since !== undefined) query.set('since', since);
  const start = input.number('start');
  if (input.flag('previous')) query.set('previous', 'true');
  if (start !== undefined) query.set('start', String(start));
  return query;
}

/** Prints lines as the program wrote them; on a terminal without what would move its cursor. */
function printer({ terminal }: Session, input: Input): (lines: readonly LogLine[]) => Promise<void> {
  const json = input.flag('json');
  const one = (line: LogLine): string => {
    if (json) return plainJson(line);
    return terminal.screen ? logLine(line.text) : line.text;
  };
  return (lines) => terminal.out(lines.map((line) => `${one(line)}\n`).join(''));
}

async function follow(api: Api, id: string, input: Input, session: Session): Promise<void> {
  const print = printer(session, input);
  for await (const event of followLog(api, { id, query: queryOf(input) }, session)) {
    const line = lineOf(event);
    if (line !== undefined) await print([line]);
    const notice = noticeOf(event);
    if (notice !== undefined) session.terminal.say(plain(notice));
  }
}

/** `berth logs`: what the container says. */
export async function logs(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const id = await idOf(api, input.operands[0] ?? '');
  if (input.flag('follow')) return follow(api, id, input, session);
  const query = queryOf(input);
  const path = instancePath(id, `/logs?${query.toString()}`);
  const { data, kept, start, truncated } = await api.get<LogRecord>(path);
  if (kept) session.terminal.say(`Start ${start} is over. This is the end of its log:`);
  if (truncated)
    session.terminal.say(`Older lines are left out: ${kept ? '64 KiB were kept' : 'an answer has 1 MiB'}.`);
  if (data.length === 0 && !input.flag('json') && query.size === 0)
    session.terminal.say(`Nothing was written${kept ? '.' : ' yet. berth logs -f waits for it.'}`);
  await printer(session, input)(data);
}

/** The id of an instance, also of one that is gone: its history and the end of its log stay for a week. */
async function idOf(api: Api, wanted: string): Promise<string> {
  try {
    return (await findInstance(api, wanted)).id;
  } catch (error) {
    if (error instanceof CliFailure && error.exitCode === EXIT.notFound) return wanted;
    throw error;
  }
}

const TITLES = ['TIME (UTC)', 'TYPE', 'WHAT', 'MESSAGE'];
/** What most reasons fit into: the lines of a history that is followed come one by one. */
const LEAST = { TYPE: 7, WHAT: 18 };

/** A time to the second, which is what the API server keeps of most; on a screen, where the history has a week, without its year. */
function timeText(at: string, { terminal }: Session): string {
  const second = at.slice(0, 19);
  return terminal.columns.out === undefined ? `${second}Z` : second.slice(5).replace('T', ' ');
}

function printEvents(session: Session): (events: readonly EventRecord[]) => Promise<void> {
  const { terminal } = session;
  let isFirst = true;
  return async (events) => {
    const rows = events.map(({ at, last_at: last, count, type, reason, message }) => [
      timeText(last ?? at, session),
      type,
      count === 1 ? reason : `${reason} (${count} times)`,
      message,
    ]);
    const fit = { width: terminal.columns.out, optional: ['TYPE'], sentences: 24, least: LEAST };
    const text = table(TITLES, rows, fit);
    await terminal.out(isFirst ? text : text.slice(text.indexOf('\n') + 1));
    isFirst = false;
  };
}

/** Prints each event as it happens, over lost connections and from replica to replica, until the instance is gone. */
async function followHistory(api: Api, path: string, input: Input, session: Session): Promise<void> {
  const { terminal } = session;
  const print = printEvents(session);
  const onBreak = (): void => terminal.say('The connection broke. Trying again.');
  for await (const { type, data } of followEvents(api, path, session, { refusals: 5, onBreak })) {
    if (type === 'end') return terminal.say(plain((JSON.parse(data) as { message: string }).message));
    if (type !== 'event') continue;
    const event = JSON.parse(data) as EventRecord;
    await (input.flag('json') ? terminal.out(`${plainJson(event)}\n`) : print([event]));
  }
}

/** `berth events`: what happened to an instance, in words. */
export async function events(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const path = instancePath(await idOf(api, input.operands[0] ?? ''), '/events');
  if (input.flag('follow')) return followHistory(api, path, input, session);
  const answer = await api.get<List<EventRecord>>(path);
  await (input.flag('json') ? printJson(session, answer) : printEvents(session)(answer.data));
}
