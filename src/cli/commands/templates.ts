import type { Api } from '../api/client.ts';
import { idOfNamed } from '../api/find-named.ts';
import type { List, TemplateRecord } from '../../wire/records.ts';
import { usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { fileOf, present, programOf } from '../rent/body.ts';
import { printList } from '../print-list.ts';
import { printJson, type Session } from '../session.ts';
import { plain } from '../text.ts';

async function pathOf(api: Api, { operands }: Input): Promise<string> {
  return `/templates/${await idOfNamed(api, 'template', operands[0] ?? '')}`;
}

/** `berth templates`: the templates that the tenant may use. */
export async function templates(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<TemplateRecord>>('/templates');
  await printList(input, session, answer, {
    titles: ['ID', 'NAME', 'IMAGE', 'RUNTYPE', 'NOTES', 'HASH'],
    rows: answer.data.map((one) => [
      String(one.id),
      one.name,
      one.image ?? 'the default image',
      one.runtype ?? '',
      one.shared ? 'shared' : '',
      one.hash_id,
    ]),
    optional: ['HASH', 'RUNTYPE'],
    empty: 'There are no templates. berth templates create makes one.',
  });
}

/** `berth templates show`: all of one template. */
export async function showTemplate(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  await printJson(session, await api.get<TemplateRecord>(await pathOf(api, input)));
}

async function contentOf(input: Input, session: Session): Promise<unknown> {
  const text = await fileOf('file', input.text('file'));
  if (text === undefined) {
    const options = { name: input.text('name'), image: input.text('image'), ...(await programOf(input, session.env)) };
    return present(options);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw usageFailure(`--file is not valid JSON: ${said}.`, 'berth templates show ID prints a template as JSON.');
  }
}

async function stored(input: Input, session: Session, isNew: boolean): Promise<void> {
  const body = await contentOf(input, session);
  const api = await session.api();
  const made = isNew
    ? await api.call<TemplateRecord>('POST', '/templates', { body })
    : await api.call<TemplateRecord>('PUT', await pathOf(api, input), { body });
  if (input.flag('json')) return printJson(session, made);
  session.terminal.say(
    `The template ${plain(made.name)} has the hash ${made.hash_id}. Rent it with: berth rent --template ${made.id}`,
  );
  await session.terminal.out(`${made.id}\n`);
}

/** `berth templates create`: makes a template of options, or of a JSON file. */
export function createTemplate(input: Input, session: Session): Promise<void> {
  return stored(input, session, true);
}

/** `berth templates replace`: the same id with another content. */
export function replaceTemplate(input: Input, session: Session): Promise<void> {
  return stored(input, session, false);
}

/** `berth templates rm`: deletes a template; instances of it go on. */
export async function removeTemplate(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  await api.call('DELETE', await pathOf(api, input));
  session.terminal.say(
    `The template ${input.operands[0]} is deleted. Instances that were rented with it keep running.`,
  );
}
