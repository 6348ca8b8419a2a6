import type { List, RegistryRecord } from '../../wire/records.ts';
import { usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { printList } from '../print-list.ts';
import { printJson, type Session } from '../session.ts';
import { age } from '../text.ts';

/** `berth registries`: credentials for private images. */
export async function registries(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<RegistryRecord>>('/registries');
  await printList(input, session, answer, {
    titles: ['NAME', 'SERVER', 'USER', 'AGE'],
    rows: answer.data.map((one) => [one.name, one.server, one.username, age(one.created_at, session.now())]),
    optional: ['AGE'],
    empty: 'There are no credentials. berth registries add stores some.',
  });
}

/** `berth registries add`: stores credentials. The password comes from the terminal or the input, never from the command line. */
export async function addRegistry(input: Input, session: Session): Promise<void> {
  const [name = '', server = '', username = ''] = input.operands;
  const password = (
    await session.terminal.secret(`Password or token of ${username} at ${server} (it is not shown): `)
  ).replace(/\r?\n$/, '');
  if (password === '') throw usageFailure('There was no password in the input.', 'Write it into the input: <FILE');
  const body = { name, server, username, password };
  const made = await (await session.api()).call<RegistryRecord>('POST', '/registries', { body });
  if (input.flag('json')) return printJson(session, made);
  session.terminal.say(`Stored. Rent a private image with: berth rent --image IMAGE --registry ${made.name}`);
}

/** `berth registries rm`: deletes credentials. */
export async function removeRegistry({ operands }: Input, session: Session): Promise<void> {
  const name = operands[0] ?? '';
  await (await session.api()).call('DELETE', `/registries/${encodeURIComponent(name)}`);
  session.terminal.say(`The credentials ${name} are deleted.`);
}
