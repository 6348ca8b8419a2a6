import type { BudgetRecord, InstanceRecord, LimitsRecord, List, UsageAnswer, UsedAmount } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { pairs, table } from '../text.ts';

const TITLES: Readonly<Record<string, string>> = { day: 'DAY', instance: 'ID', key: 'BY', model: 'MODEL' };

function hoursOf(gpuSeconds: number): string {
  return (gpuSeconds / 3600).toFixed(2);
}

/** Models have no GPU, and several GPUs no name. */
function productOf({ product, gpu_seconds: seconds }: UsageAnswer['items'][number]): string {
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
  const rows = items.map((one) => [
    one.group,
    productOf(one),
    hoursOf(one.gpu_seconds),
    ...tokens(one),
    `${one.cost} ${one.currency}`,
    one.open ? 'yes' : 'no',
  ]);
  const sums = totals.map((total) => [
    'all',
    `${from} to ${to}`,
    hoursOf(total.gpu_seconds),
    ...tokens(total),
    `${total.cost} ${total.currency}`,
    '',
  ]);
  const titles = ['GPU', 'GPU HOURS', ...(hasTokens ? ['TOKENS IN', 'TOKENS OUT'] : []), 'COST', 'RUNNING'];
  const fit = { width, optional: ['RUNNING', 'GPU HOURS'], kept: ['COST'] };
  return table([TITLES[group] ?? 'GROUP', ...titles], [...rows, ...sums], fit);
}

function limitLines(limits: LimitsRecord): [string, string][] {
  const counted = (['instances', 'ssh_keys', 'templates', 'api_keys', 'registries', 'webhooks'] as const).map(
    (name): [string, string] => [name.replace('_', ' '), `${limits[name].used} of ${limits[name].limit}`],
  );
  const gpus = limits.gpus.map(({ pool, gpu_name: gpu, used, limit }): [string, string] => [
    ['GPUs', gpu, pool === null ? undefined : `in pool ${pool}`].filter(Boolean).join(' '),
    `${used} of ${limit}`,
  ]);
  const budgets = [...budgetLines('budget', limits.budget), ...budgetLines('budget of the key', limits.key_budget)];
  return [...budgets, ['GPUs in use', String(limits.gpus_used)], ...gpus, ...counted];
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
