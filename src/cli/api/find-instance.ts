import type { InstanceRecord, List } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import { didYouMean } from '../nearest.ts';
import { plain } from '../text.ts';
import type { Api } from './client.ts';
import { ApiFailure } from './failures.ts';

/** Characters of an id that stand for it: fewer are typed by mistake. */
const LEAST_PREFIX = 5;

/** The path of an instance, with what comes below it. */
export function instancePath(id: string, below = ''): string {
  return `/instances/${encodeURIComponent(id)}${below}`;
}

/** Why a word means no one thing. */
export function ambiguous(many: string, ids: readonly string[]): CliFailure {
  const message = `${ids.length} ${many}: ${ids.map(plain).join(', ')}.`;
  return new CliFailure(message, { exitCode: EXIT.usage, next: 'Write the id of one.' });
}

/** The instance with this id, else the one with this name, else the one whose id begins so. Throws when there are none or several. */
export async function findInstance(api: Api, wanted: string): Promise<InstanceRecord> {
  try {
    return await api.get<InstanceRecord>(instancePath(wanted));
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    const { data } = await api.get<List<InstanceRecord>>('/instances');
    return instanceIn(data, wanted);
  }
}

/** Finds an instance among all that there are. */
function instanceIn(data: readonly InstanceRecord[], wanted: string): InstanceRecord {
  const named = data.filter(({ name }) => name === wanted);
  const begun = wanted.length < LEAST_PREFIX ? [] : data.filter(({ id }) => id.startsWith(wanted));
  const [found = begun[0]] = named;
  if (named.length > 1)
    throw ambiguous(
      `instances have the name ${plain(wanted)}`,
      named.map(({ id }) => id),
    );
  if (named.length === 0 && begun.length > 1)
    throw ambiguous(
      `instances have an id that begins with ${plain(wanted)}`,
      begun.map(({ id }) => id),
    );
  if (found !== undefined) return found;
  const known = data.flatMap(({ id, name }) => [id, name ?? id]);
  throw new CliFailure(`No instance has the id or the name ${plain(wanted)}.`, {
    exitCode: EXIT.notFound,
    next: didYouMean(wanted, known, plain) ?? 'berth ls lists your instances.',
  });
}
