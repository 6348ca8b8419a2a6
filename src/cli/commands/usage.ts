import type { Instance, Limits, List } from '../api/records.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { pairs, table } from '../text.ts';

/** What the present start of an instance has cost, about: from the login on, at its price. Bills are exact, this is not. */
export function runningCost({ price_per_hour: price, stages, state }: Instance, now: number): number {
  const ready = stages['ready'];
  if (price === null || ready === undefined || state === 'stopped' || state === 'failed') return 0;
  return (Math.max(0, now - Date.parse(ready)) / 3_600_000) * Number(price);
}

function costRow(one: Instance, now: number): string[] {
  const { usage, gpu_count: gpus } = one;
  const ended = Number(usage?.cost ?? 0);
  const hours = (usage?.gpu_seconds ?? 0) / 3600;
  const running = runningCost(one, now);
  const runningHours =
    one.price_per_hour === null || Number(one.price_per_hour) === 0 ? 0 : (running / Number(one.price_per_hour)) * gpus;
  const currency = usage?.currency ?? one.currency ?? '';
  return [
    one.id,
    one.name ?? '',
    one.state,
    (hours + runningHours).toFixed(2),
    `${(ended + running).toFixed(2)} ${currency}`.trim(),
  ];
}

function limitLines(limits: Limits): [string, string][] {
  const counted = (['instances', 'ssh_keys', 'templates', 'api_keys', 'registries'] as const).map(
    (name): [string, string] => [name.replace('_', ' '), `${limits[name].used} of ${limits[name].limit}`],
  );
  const gpus = limits.gpus.map(({ pool, gpu_name: gpu, used, limit }): [string, string] => [
    ['GPUs', gpu, pool === null ? undefined : `in pool ${pool}`].filter(Boolean).join(' '),
    `${used} of ${limit}`,
  ]);
  return [['GPUs in use', String(limits.gpus_used)], ...gpus, ...counted];
}

/** `berth usage`: what the instances have cost, and the limits of the tenant. */
export async function usage(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const [limits, { data }] = await Promise.all([api.get<Limits>('/limits'), api.get<List<Instance>>('/instances')]);
  if (input.flag('json')) {
    const instances = data.map(({ id, name, state, usage, price_per_hour }) => ({
      id,
      name,
      state,
      usage,
      price_per_hour,
    }));
    return printJson(session, { limits, instances });
  }
  const rows = data.map((one) => costRow(one, session.now()));
  const costs = rows.length === 0 ? '' : `${table(['ID', 'NAME', 'STATE', 'GPU HOURS', 'COST, ABOUT'], rows)}\n`;
  await session.terminal.out(`${costs}${pairs(limitLines(limits))}`);
  if (limits.policies.length > 0)
    session.terminal.say(`The operator can raise the limits in the TenantPolicy ${limits.policies.join(', ')}.`);
}
