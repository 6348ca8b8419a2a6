import type { List } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import { didYouMean } from '../nearest.ts';
import { plain } from '../text.ts';
import type { Api } from './client.ts';
import { ambiguous } from './find-instance.ts';

/** A list of things that have ids and names. */
const LISTS = {
  key: { path: '/ssh-keys', what: 'SSH key', command: 'berth ssh-keys' },
  template: { path: '/templates', what: 'template', command: 'berth templates' },
} as const;

interface Named {
  id: number;
  name: string;
}

/** The id of the thing with this id or name. A number is an id, and is not looked up. Throws when there are none or several. */
export async function idOfNamed(api: Api, kind: keyof typeof LISTS, wanted: string): Promise<string> {
  if (/^\d+$/.test(wanted)) return wanted;
  const { path, what, command } = LISTS[kind];
  const { data } = await api.get<List<Named>>(path);
  const found = data.filter(({ id, name }) => String(id) === wanted || name === wanted);
  if (found.length === 1) return String(found[0]?.id);
  if (found.length > 1)
    throw ambiguous(
      `of the kind ${what} have the name ${plain(wanted)}`,
      found.map(({ id }) => String(id)),
    );
  const known = data.flatMap(({ id, name }) => [String(id), name]);
  throw new CliFailure(`No ${what} has the id or the name ${plain(wanted)}.`, {
    exitCode: EXIT.notFound,
    next: didYouMean(wanted, known, plain) ?? `${command} lists what there is.`,
  });
}
