import type { List, WebhookRecord, WebhookWithSecret } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { printList } from '../print-list.ts';
import { printJson, type Session } from '../session.ts';
import { age, pairs, plain } from '../text.ts';

const pathOf = ({ operands }: Input, below = ''): string =>
  `/webhooks/${encodeURIComponent(operands[0] ?? '')}${below}`;

/** What follows the host may be a password of the target, so tables have the host alone. */
function hostOf({ url }: WebhookRecord): string {
  return URL.canParse(url) ? new URL(url).host : '';
}

/** `berth webhooks`: the URLs that are told what happens. */
export async function webhooks(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<WebhookRecord>>('/webhooks');
  await printList(input, session, answer, {
    titles: ['ID', 'NAME', 'HOST', 'DELIVERING', 'LAST', 'DROPPED', 'AGE'],
    rows: answer.data.map((one) => [
      one.id,
      one.name,
      hostOf(one),
      one.delivering?.reason ?? '',
      one.last_delivered_at === null ? '' : age(one.last_delivered_at, session.now()),
      String(one.dropped),
      age(one.created_at, session.now()),
    ]),
    optional: ['AGE', 'DROPPED'],
    empty: 'You have no webhooks. berth webhooks add URL makes one.',
  });
}

/** `berth webhooks show`: one webhook, and how its deliveries go. */
export async function showWebhook(input: Input, session: Session): Promise<void> {
  const record = await (await session.api()).get<WebhookRecord>(pathOf(input));
  if (input.flag('json')) return printJson(session, record);
  const { delivering } = record;
  await session.terminal.out(
    pairs(
      [
        ['id', record.id],
        ['name', record.name],
        ['url', record.url],
        ['events', record.events?.join(', ') ?? 'all'],
        [
          'delivering',
          delivering === null ? 'not known yet' : `${delivering.status ? 'yes' : 'no'} (${delivering.reason})`,
        ],
        ['message', delivering?.message],
        ['last delivered', record.last_delivered_at ?? undefined],
        ['failing since', record.failed_since ?? undefined],
        ['dropped', String(record.dropped)],
        ['created', record.created_at],
      ],
      session.terminal.columns.out,
    ),
  );
}

/** The secret is the result, so that a script can keep it. */
async function printSecret(input: Input, session: Session, made: WebhookWithSecret, words: string): Promise<void> {
  if (input.flag('json')) return printJson(session, made);
  session.terminal.say(`${words} This is its signing secret, which is not shown again:`);
  await session.terminal.out(`${plain(made.secret)}\n`);
}

/** `berth webhooks add`: has a URL told of what happens from now on. */
export async function addWebhook(input: Input, session: Session): Promise<void> {
  const [events, name] = [input.texts('event'), input.text('name')];
  const body = { url: input.operands[0], ...(events.length > 0 && { events }), ...(name !== undefined && { name }) };
  const made = await (await session.api()).call<WebhookWithSecret>('POST', '/webhooks', { body });
  await printSecret(input, session, made, `The webhook ${plain(made.id)} is made.`);
}

/** `berth webhooks rotate`: replaces the signing secret. */
export async function rotateWebhook(input: Input, session: Session): Promise<void> {
  const made = await (await session.api()).call<WebhookWithSecret>('POST', pathOf(input, '/secret'));
  await printSecret(
    input,
    session,
    made,
    `The webhook ${plain(made.id)} has another secret, and the old one signs nothing any more.`,
  );
}

/** `berth webhooks rm`: a URL is told nothing any more. */
export async function removeWebhook(input: Input, session: Session): Promise<void> {
  await (await session.api()).call('DELETE', pathOf(input));
  session.terminal.say(`The webhook ${input.operands[0]} is deleted. Events that were not delivered yet are dropped.`);
}
