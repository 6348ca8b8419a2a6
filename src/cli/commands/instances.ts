import type { Api } from '../api/client.ts';
import { findInstance } from '../api/find-instance.ts';
import { followEvents } from '../api/follow-events.ts';
import { costSoFar } from '../../wire/cost-so-far.ts';
import { plainJson } from '../../wire/plain.ts';
import type { InstanceRecord, List } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { colourOf, printList, stateColours } from '../print-list.ts';
import { printJson, type Session } from '../session.ts';
import { age, pairs, plain, table } from '../text.ts';
import { shortGpu } from './offers.ts';

function gpusOf({ gpu_count: count, gpu_name: name }: InstanceRecord, { terminal }: Session): string {
  return `${count} x ${name === null ? 'any GPU' : shortGpu(name, terminal.columns.out)}`;
}

function priceOf({ price_per_hour: price, currency }: InstanceRecord): string {
  return price === null ? '' : `${price} ${currency ?? ''}`.trim();
}

const TITLES = ['ID', 'NAME', 'STATE', 'GPU', 'PER HOUR', 'AGE', 'IMAGE', 'NODE', 'LABEL', 'REASON'];

function rowOf(one: InstanceRecord, session: Session): string[] {
  return [
    one.id,
    one.name ?? '',
    one.state,
    gpusOf(one, session),
    priceOf(one),
    age(one.created_at, session.now()),
    one.template_image,
    one.node ?? '',
    one.label ?? '',
    one.reason,
  ];
}

/** `berth ls`: all instances. */
export async function list(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  if (input.flag('watch')) return watch(api, input, session);
  const answer = await api.get<List<InstanceRecord>>('/instances');
  await printList(input, session, answer, {
    titles: TITLES,
    rows: answer.data.map((one) => rowOf(one, session)),
    optional: ['IMAGE', 'AGE', 'PER HOUR', 'NAME'],
    kept: ['STATE', 'GPU'],
    wide: ['NODE', 'LABEL', 'REASON'],
    empty: 'You have no instances. berth rent rents one.',
  });
}

/** The longest state: lines come one by one. */
const LEAST = { STATE: 11 };

/** Prints a line for each instance, and another one for each change, over lost connections. */
async function watch(api: Api, input: Input, session: Session): Promise<void> {
  const { terminal } = session;
  const isWide = input.text('output') === 'wide';
  const titles = isWide ? TITLES : ['ID', 'STATE', 'GPU', 'NAME'];
  let isFirst = true;
  const print = async (records: readonly InstanceRecord[]): Promise<void> => {
    if (input.flag('json')) return terminal.out(records.map((one) => `${plainJson(one)}\n`).join(''));
    if (input.text('output') === 'name') return terminal.out(records.map(({ id }) => `${plain(id)}\n`).join(''));
    const rows = records.map((one) => rowOf(one, session));
    const shown = isWide ? rows : rows.map(([id = '', name = '', state = '', gpu = '']) => [id, state, gpu, name]);
    const width = isWide ? undefined : terminal.columns.out;
    const text = table(titles, shown, { width, optional: [], least: LEAST, paint: stateColours(session) });
    await terminal.out(isFirst ? text : text.slice(text.indexOf('\n') + 1));
    isFirst = false;
  };
  for await (const { type, data } of followEvents(api, '/instances', session)) {
    if (type === 'deleted') terminal.say(`${plain((JSON.parse(data) as { id: string }).id)} is gone.`);
    else if (type === 'instance') await print([JSON.parse(data) as InstanceRecord]);
    else if (type === 'snapshot' || type === 'resync') await print((JSON.parse(data) as List<InstanceRecord>).data);
  }
}

/** What all starts have cost, with the one that runs. */
function costText(record: InstanceRecord, now: number): string | undefined {
  const { usage, currency, billed_since: since } = record;
  if (usage === null && since === null) return undefined;
  return `${costSoFar(record, now).toFixed(4)} ${usage?.currency ?? currency ?? ''}${since === null ? '' : ', and it runs'}`;
}

/** `berth show`: one instance. */
export async function show(input: Input, session: Session): Promise<void> {
  const record = await findInstance(await session.api(), input.operands[0] ?? '');
  if (input.flag('json')) return printJson(session, record);
  const { state, ports } = record;
  const isOver = state === 'stopped' || state === 'failed';
  const entries: [string, string | undefined, number?][] = [
    ['id', record.id],
    ['name', record.name ?? undefined],
    ['label', record.label ?? undefined],
    ['state', `${record.state} (${record.reason})`, colourOf(session, record.state)],
    ['message', record.message],
    ['next step', isOver ? `berth start ${record.id}` : undefined],
    ['place in line', record.place_in_line === null ? undefined : String(record.place_in_line)],
    ['gpu', gpusOf(record, session)],
    ['node', record.node === null ? undefined : `${record.node}${record.simulated ? ' (simulated)' : ''}`],
    ['price per hour', priceOf(record)],
    ['at most per hour', record.max_price_per_hour ?? undefined],
    ['cost so far', costText(record, session.now())],
    ['image', record.template_image],
    ['runtype', record.runtype],
    ['disk', record.disk_gb === null ? undefined : `${record.disk_gb} GB`],
    ['variables', record.env_names.join(', ')],
    ['ports', ports.map(({ container_port: port, protocol }) => `${port}/${protocol}`).join(', ')],
    ['created', record.created_at],
    ['billed since', record.billed_since ?? undefined],
    ['SSH ready since', record.stages['ready']],
    ['ends', record.expires_at ?? undefined],
    ['idle timeout', record.idle_timeout ?? undefined],
    ['ssh', record.ssh?.command],
    ...record.warnings.map((warning): [string, string] => ['warning', warning]),
  ];
  await session.terminal.out(pairs(entries, session.terminal.columns.out));
}
