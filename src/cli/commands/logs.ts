import { isPassing, type Api } from '../api/client.ts';
import { ApiFailure } from '../api/failures.ts';
import { eventsOf } from '../../wire/event-stream.ts';
import { findInstance, instancePath } from '../api/find-instance.ts';
import type { EventRecord, InstanceRecord, List, LogLine } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { isBroken } from '../rent/progress.ts';
import { printJson, type Session } from '../session.ts';
import { logLine, plain, table } from '../text.ts';

/** Attempts after the connection is lost, two seconds apart. */
const ATTEMPTS = 150;
/** How often a key may be refused after that which worked before. */
const REFUSALS = 5;

function queryOf(input: Input, more: Record<string, string> = {}): string {
  const query = new URLSearchParams(more);
  const tail = input.number('tail');
  const since = input.text('since');
  if (tail !== undefined) query.set('tail', String(tail));
  if (since !== undefined) query.set('since', since);
  if (input.flag('previous')) query.set('previous', 'true');
  return `?${query.toString()}`;
}

/** Prints lines as the program wrote them; on a terminal without what would move its cursor. */
function printer({ terminal }: Session, input: Input): (lines: readonly LogLine[]) => Promise<void> {
  const json = input.flag('json');
  const one = (line: LogLine): string => {
    if (json) return JSON.stringify(line);
    return terminal.screen ? logLine(line.text) : line.text;
  };
  return (lines) => terminal.out(lines.map((line) => `${one(line)}\n`).join(''));
}

const TOLD: Readonly<Record<string, string>> = {
  restart: 'The container was started again.',
  gap: 'Lines may be missing here: the log was rotated, or went with an earlier start.',
};

/** Says what is not a line. */
function told(type: string, data: string): string | undefined {
  if (type !== 'waiting' && type !== 'end') return TOLD[type];
  const { state, message, reason } = JSON.parse(data) as Partial<Record<string, string>>;
  const what = [state, message || reason].filter(Boolean).join(': ');
  return `${type === 'end' ? 'The log ends' : 'Waiting'}: ${plain(what || data)}`;
}

/** Follows a log to its end, from replica to replica: no line is lost and none comes twice. */
async function follow(api: Api, id: string, input: Input, session: Session): Promise<void> {
  const print = printer(session, input);
  let last = '';
  let refusals = 0;
  for (let failures = 0; ;) {
    const headers = { accept: 'text/event-stream', ...(last && { 'last-event-id': last }) };
    try {
      const body = await api.open('GET', instancePath(id, `/logs${queryOf(input, { follow: 'true' })}`), { headers });
      for await (const { type, data } of eventsOf(body)) {
        [failures, refusals] = [0, 0];
        if (type === 'line') {
          const line = JSON.parse(data) as LogLine;
          await print([line]);
          last = line.id;
          continue;
        }
        const text = told(type, data);
        if (text !== undefined) session.terminal.say(text);
        if (type === 'end') return;
      }
    } catch (error) {
      // A replica that has just begun does not know the key yet, and a forward of kubectl may lead there.
      const isNew = failures > 0 && refusals < REFUSALS && error instanceof ApiFailure && error.status === 401;
      if (isNew) refusals += 1;
      else if (!isPassing(error) && !isBroken(error)) throw error;
      failures += 1;
      if (failures === 1) session.terminal.say('The connection broke. Trying again.');
      if (failures > ATTEMPTS) throw error;
    }
    await session.sleep(2000);
  }
}

/** `berth logs`: what the container says. */
export async function logs(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const { id } = await findInstance(api, input.operands[0] ?? '');
  if (input.flag('follow')) return follow(api, id, input, session);
  const path = instancePath(id, `/logs${queryOf(input)}`);
  const { data, truncated } = await api.get<List<LogLine> & { truncated: boolean }>(path);
  if (truncated) session.terminal.say('Older lines are left out: an answer has 1 MiB.');
  await printer(session, input)(data);
}

/** The id of an instance, also of one that is gone: its history stays for a week. */
async function idOf(api: Api, wanted: string): Promise<string> {
  const { data } = await api.get<List<InstanceRecord>>('/instances');
  return (data.find(({ id }) => id === wanted) ?? data.find(({ name }) => name === wanted))?.id ?? wanted;
}

/** `berth events`: what happened to an instance, in words. */
export async function events(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const id = await idOf(api, input.operands[0] ?? '');
  const answer = await api.get<List<EventRecord>>(instancePath(id, '/events'));
  if (input.flag('json')) return printJson(session, answer);
  const rows = answer.data.map(({ at, count, type, reason, message }) => [
    at,
    type,
    count === 1 ? reason : `${reason} (${count} times)`,
    message,
  ]);
  await session.terminal.out(table(['TIME', 'TYPE', 'WHAT', 'MESSAGE'], rows));
}
