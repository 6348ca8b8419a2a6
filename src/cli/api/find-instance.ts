import type { InstanceRecord, List } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import { plain } from '../text.ts';
import type { Api } from './client.ts';
import { ApiFailure } from './failures.ts';

/** The path of an instance, with what comes below it. */
export function instancePath(id: string, below = ''): string {
  return `/instances/${encodeURIComponent(id)}${below}`;
}

/** The instance with this id, else the one with this name. Throws when there is none, and when several have the name. */
export async function findInstance(api: Api, wanted: string): Promise<InstanceRecord> {
  try {
    return await api.get<InstanceRecord>(instancePath(wanted));
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    const { data } = await api.get<List<InstanceRecord>>('/instances');
    const named = data.filter(({ name }) => name === wanted);
    if (named.length > 1) {
      const ids = named.map(({ id }) => plain(id)).join(', ');
      const message = `${named.length} instances have the name ${plain(wanted)}: ${ids}.`;
      throw new CliFailure(message, { exitCode: EXIT.usage, next: 'Write the id of one.' });
    }
    if (named[0] !== undefined) return named[0];
    const message = `No instance has the id or the name ${plain(wanted)}.`;
    throw new CliFailure(message, { exitCode: EXIT.notFound, next: 'berth ls lists your instances.' });
  }
}
