import type { BudgetRecord, InstanceRecord, LimitsRecord, List, UsageAnswer, UsedAmount } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { pairs, table } from '../text.ts';

const TITLES: Readonly<Record<string, string>> = {
  day: 'DAY',
  instance: 'ID',
  key: 'BY',
  starter: 'STARTED BY',
  model: 'MODEL',
};

/** In a currency, and in GPU-hours: on a screen, what is less stands in one line with all that is less. */
const SMALL = { cost: 0.01, hours: 0.005 };

type Item = UsageAnswer['items'][number];

/** The items that are worth a line, and the sums of the others by currency. */
function folded(items: readonly Item[]): { shown: readonly Item[]; small: readonly string[] } {
  const isSmall = ({ cost, gpu_seconds: seconds, open }: Item): boolean =>
    !open && Math.abs(Number(cost)) < SMALL.cost && Math.abs(seconds) < SMALL.hours * 3600;
  const small = items.filter(isSmall);
  // One line more is as short as what is said in its place.
  if (small.length < 2) return { shown: items, small: [] };
  const sums = [...Map.groupBy(small, ({ currency }) => currency)].map(([currency, some]) => {
    const cost = some.reduce((sum, one) => sum + Number(one.cost), 0);
    return `${some.length} more with ${cost.toFixed(4)} ${currency} together`;
  });
  return { shown: items.filter((one) => !isSmall(one)), small: sums };
}

function hoursOf(gpuSeconds: number): string {
  return (gpuSeconds / 3600).toFixed(2);
}

/** Models have no GPU, and several GPUs no name. */
function productOf({ product, gpu_seconds: seconds }: Item): string {
  return product ?? (seconds === 0 ? '-' : 'several');
}

function tokensOf({ input_tokens: input, output_tokens: output }: UsedAmount): string[] {
  return [String(input), String(output)];
}

/** What was used in these days; undefined when it is nothing. Tokens have columns where there are any. */
function costsOf({ group, from, to, items, totals }: UsageAnswer, width: number | undefined): string | undefined {
  if (items.length === 0) return undefined;
  const hasTokens = totals.some(({ calls }) => calls > 0);
  const tokens = (one: UsedAmount): string[] => (hasTokens ? tokensOf(one) : []);
  const { shown, small } = width === undefined ? { shown: items, small: [] } : folded(items);
  const hasNames = shown.some(({ name }) => Boolean(name));
  const rows = shown.map((one) => [
    one.group,
    ...(hasNames ? [one.name ?? ''] : []),
    productOf(one),
    hoursOf(one.gpu_seconds),
    ...tokens(one),
    `${one.cost} ${one.currency}`,
    one.open ? 'yes' : 'no',
  ]);
  const sums = totals.map((total) => [
    'all',
    ...(hasNames ? [''] : []),
    `${from} to ${to}`,
    hoursOf(total.gpu_seconds),
    ...tokens(total),
    `${total.cost} ${total.currency}`,
    '',
  ]);
  const names = hasNames ? ['NAME'] : [];
  const titles = [...names, 'GPU', 'GPU HOURS', ...(hasTokens ? ['TOKENS IN', 'TOKENS OUT'] : []), 'COST', 'RUNNING'];
  const fit = { width, optional: ['RUNNING', 'GPU HOURS'], kept: ['COST', 'NAME'] };
  const text = table([TITLES[group] ?? 'GROUP', ...titles], [...rows, ...sums], fit);
  return `${text}${small.map((line) => `${line}: --json has all.\n`).join('')}`;
}

function limitLines(limits: LimitsRecord): [string, string][] {
  const counted = (['instances', 'ssh_keys', 'templates', 'api_keys', 'registries', 'webhooks'] as const).map(
    (name): [string, string] => [name.replace('_', ' '), `${limits[name].used} of ${limits[name].limit}`],
  );
  const gpus = limits.gpus.map(({ pool, gpu_name: gpu, used, limit }): [string, string] => [
    ['GPUs', gpu, pool === null ? undefined : `in pool ${pool}`].filter(Boolean).join(' '),
    `${used} of ${limit}`,
  ]);
  const disks = diskLines(limits);
  const budgets = [...budgetLines('budget', limits.budget), ...budgetLines('budget of the key', limits.key_budget)];
  return [...budgets, ['GPUs in use', String(limits.gpus_used)], ...gpus, ...disks, ...counted];
}

/** A server of an earlier release says nothing of disks. */
function diskLines({ disk_gb: disks, kept_disks: kept }: Partial<LimitsRecord>): [string, string][] {
  if (disks === undefined || kept === undefined) return [];
  const all = disks.limit === null ? `${disks.used} GB` : `${disks.used} of ${disks.limit} GB`;
  const some = kept.count === 0 ? '' : `, ${kept.gb} GB of them kept from deleted instances`;
  return [['disks', `${all}${some}`]];
}

function budgetLines(name: string, budget: BudgetRecord | null | undefined): [string, string][] {
  if (budget == null) return [];
  const { lines, renews_at: renewsAt } = budget;
  return lines.map(({ unit, limit, spent, left }) => [
    `${name}, ${unit}`,
    `${spent} of ${limit}, ${left} left until ${renewsAt.slice(0, 10)}`,
  ]);
}

/** `berth usage`: what was used and what it cost, starts that still run included, and the limits of the tenant. */
export async function usage(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const [group = 'instance', from, to] = ['by', 'since', 'until'].map((name) => input.text(name));
  const query = new URLSearchParams({ group, ...(from !== undefined && { from }), ...(to !== undefined && { to }) });
  const [limits, spent] = await Promise.all([
    api.get<LimitsRecord>('/limits'),
    api.get<UsageAnswer>(`/usage?${query.toString()}`),
  ]);
  if (input.flag('json')) {
    const { data } = await api.get<List<InstanceRecord>>('/instances');
    const instances = data.map(({ id, name, state, usage: ended, price_per_hour }) => ({
      id,
      name,
      state,
      usage: ended,
      price_per_hour,
    }));
    return printJson(session, { limits, instances, usage: spent });
  }
  const { out: width } = session.terminal.columns;
  const costs = costsOf(spent, width);
  await session.terminal.out(`${costs === undefined ? '' : `${costs}\n`}${pairs(limitLines(limits), width)}`);
  if (spent.unreadable !== undefined)
    session.terminal.say(
      `Not counted, because an amount or a time in it cannot be read: ${spent.unreadable.join(', ')}. Tell the operator.`,
    );
  if (limits.policies.length > 0)
    session.terminal.say(
      `The operator can change the limits in TenantPolicy ${limits.policies.join(' and TenantPolicy ')}.`,
    );
}
