import type { Api } from '../api/client.ts';
import { instancePath } from '../api/find-instance.ts';
import { followEvents } from '../api/follow-events.ts';
import type { InstanceRecord } from '../../wire/records.ts';
import { CliFailure } from '../failure.ts';
import type { Session } from '../session.ts';
import { plain } from '../text.ts';

type Stage = keyof InstanceRecord['stages'];

const STAGES = {
  accepted: 'queued',
  claimed: 'GPU assigned',
  scheduled: 'scheduled',
  pulled: 'image pulled',
  started: 'started',
  ready: 'SSH ready',
} as const satisfies Partial<Record<Stage, string>>;

/** States that no start leaves by itself. */
const OVER = new Set(['failed', 'stopped', 'deleting']);

/** Reasons that a start passes through in seconds: nothing to tell. */
const BRIEF = new Set(['Pending', 'Scheduling', 'PullingImage', 'Starting', 'WaitingForLogin', 'Running']);

/**
 * The new lines about a start between two records of its instance.
 * @param from the stage at which the seconds begin: the instance of another start was accepted long before
 */
export function progress(
  before: InstanceRecord | undefined,
  now: InstanceRecord,
  from: 'accepted' | 'claimed' = 'accepted',
): string[] {
  const begin = Date.parse(now.stages[from] ?? now.created_at);
  const lines = Object.entries(STAGES).flatMap(([name, words]) => {
    const stage = name as keyof typeof STAGES;
    const at = now.stages[stage];
    if (at === undefined || before?.stages[stage] === at) return [];
    const seconds = Math.max(0, Date.parse(at) - begin) / 1000;
    return [`  ${words.padEnd(14)} ${seconds.toFixed(1).padStart(6)} s`];
  });
  const said = (record: InstanceRecord | undefined): string => `${record?.reason} ${record?.message}`;
  if (BRIEF.has(now.reason) || said(before) === said(now)) return lines;
  const place = now.place_in_line === null ? '' : ` Place in line: ${now.place_in_line}.`;
  return [...lines, `  ${now.state}: ${plain(now.message || now.reason)}${place}`];
}

/** Whether a login works; throws when it never will. */
function isReady(record: InstanceRecord): boolean {
  if (OVER.has(record.state)) {
    throw new CliFailure(`${plain(record.id)} is ${record.state}: ${plain(record.message || record.reason)}`, {
      next: `berth events ${plain(record.id)} tells its history, and berth rm ${plain(record.id)} removes it.`,
    });
  }
  return record.state === 'running';
}

/** The records of an instance as they change, over lost connections and from replica to replica. */
async function* recordsOf(api: Api, id: string, session: Session): AsyncGenerator<InstanceRecord> {
  for await (const { type, data } of followEvents(api, instancePath(id), session)) {
    if (type === 'deleted') {
      throw new CliFailure(`${plain(id)} was deleted.`, { next: `berth events ${plain(id)} tells its history.` });
    }
    yield JSON.parse(data) as InstanceRecord;
  }
}

/**
 * Tells whether a record is of the end before another start: because the replica has not seen the request for that start
 * yet, or because the controller has not acted on it.
 */
function earlierEnd(ended: InstanceRecord): (record: InstanceRecord) => boolean {
  const shown = ({ state, reason, message, stages }: InstanceRecord): string =>
    JSON.stringify([state, reason, message, stages]);
  let isSeen = false;
  return (record) => {
    const isWanted = record.desired_state === 'running';
    isSeen ||= isWanted;
    if (!OVER.has(record.state)) return false;
    // No start that is wanted ends as Stopped.
    return isWanted ? record.reason === 'Stopped' || shown(record) === shown(ended) : !isSeen;
  };
}

/**
 * Tells about a start until its login works, and returns the record. Throws when it fails.
 * @param ended the record before another start was asked for
 */
export async function followStart(
  api: Api,
  id: string,
  session: Session,
  ended?: InstanceRecord,
): Promise<InstanceRecord> {
  const isEarlierEnd = ended === undefined ? () => false : earlierEnd(ended);
  let before = ended;
  for await (const record of recordsOf(api, id, session)) {
    if (isEarlierEnd(record)) continue;
    for (const line of progress(before, record, ended && 'claimed')) session.terminal.say(line);
    if (isReady(record)) return record;
    before = record;
  }
  throw new CliFailure('The stream of events ended.', { next: `berth show ${plain(id)} says how far it is.` });
}
