import { findInstance } from '../api/find-instance.ts';
import type { InstanceRecord, List } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { age, pairs, table } from '../text.ts';

const gpusOf = ({ gpu_count: count, gpu_name: name }: InstanceRecord): string => `${count} x ${name ?? 'any GPU'}`;

function priceOf({ price_per_hour: price, currency }: InstanceRecord): string {
  return price === null ? '' : `${price} ${currency ?? ''}`.trim();
}

/** `berth ls`: all instances. */
export async function list(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<InstanceRecord>>('/instances');
  if (input.flag('json')) return printJson(session, answer);
  if (answer.data.length === 0) return session.terminal.say('You have no instances. berth rent rents one.');
  const rows = answer.data.map((one) => [
    one.id,
    one.name ?? '',
    one.state,
    gpusOf(one),
    priceOf(one),
    age(one.created_at, session.now()),
    one.template_image,
  ]);
  const fit = { width: session.terminal.columns.out, optional: ['IMAGE', 'AGE'] };
  await session.terminal.out(table(['ID', 'NAME', 'STATE', 'GPU', 'PER HOUR', 'AGE', 'IMAGE'], rows, fit));
}

/** `berth show`: one instance. */
export async function show(input: Input, session: Session): Promise<void> {
  const record = await findInstance(await session.api(), input.operands[0] ?? '');
  if (input.flag('json')) return printJson(session, record);
  const { usage, ports } = record;
  const entries: [string, string | undefined][] = [
    ['id', record.id],
    ['name', record.name ?? undefined],
    ['label', record.label ?? undefined],
    ['state', `${record.state} (${record.reason})`],
    ['message', record.message],
    ['place in line', record.place_in_line === null ? undefined : String(record.place_in_line)],
    ['gpu', gpusOf(record)],
    ['node', record.node === null ? undefined : `${record.node}${record.simulated ? ' (simulated)' : ''}`],
    ['price per hour', priceOf(record)],
    ['used so far', usage === null ? undefined : `${usage.cost} ${usage.currency} in the starts that have ended`],
    ['image', record.template_image],
    ['runtype', record.runtype],
    ['disk', record.disk_gb === null ? undefined : `${record.disk_gb} GB`],
    ['variables', record.env_names.join(', ')],
    ['ports', ports.map(({ container_port: port, protocol }) => `${port}/${protocol}`).join(', ')],
    ['created', record.created_at],
    ['login works since', record.stages['ready']],
    ['ends', record.expires_at ?? undefined],
    ['idle timeout', record.idle_timeout ?? undefined],
    ['ssh', record.ssh?.command],
    ...record.warnings.map((warning): [string, string] => ['warning', warning]),
  ];
  await session.terminal.out(pairs(entries));
}
