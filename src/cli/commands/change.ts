import type { Api } from '../api/client.ts';
import { findInstance, instancePath } from '../api/find-instance.ts';
import type { InstanceRecord, List } from '../../wire/records.ts';
import { CliFailure, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { lifeOf } from '../rent/body.ts';
import { followStart } from '../rent/progress.ts';
import { confirm, printJson, type Session } from '../session.ts';
import { durationOf, plain, secondsOf } from '../text.ts';

function patch(api: Api, { id }: InstanceRecord, body: Record<string, unknown>): Promise<InstanceRecord> {
  return api.call<InstanceRecord>('PATCH', instancePath(id), { body });
}

async function wanted(input: Input, session: Session): Promise<{ api: Api; record: InstanceRecord }> {
  const api = await session.api();
  return { api, record: await findInstance(api, input.operands[0] ?? '') };
}

async function say(session: Session, input: Input, record: InstanceRecord, text: string): Promise<void> {
  session.terminal.say(text);
  if (input.flag('json')) await printJson(session, record);
}

/** `berth stop`: frees the GPUs, and keeps the disk where that survives a stop. */
export async function stop(input: Input, session: Session): Promise<void> {
  const { api, record } = await wanted(input, session);
  const { id, disk_persistent: isKept, disk_gb: gb, node, simulated } = record;
  const loses = isKept === false && node !== null && !simulated;
  const question = `Stop ${id}? Its disk is on the node: /workspace (${gb ?? 0} GB) will be deleted.`;
  if (loses && !(await confirm(session, question, input.flag('yes')))) throw new CliFailure('Nothing was stopped.');
  const after = await patch(api, record, { state: 'stopped' });
  const disk = isKept === true ? 'Its disk stays. ' : loses ? '/workspace is deleted. ' : '';
  await say(session, input, after, `${id} stops. ${disk}A later start may have to wait for a GPU.`);
}

/** `berth start`: starts an instance that is stopped, and tells about it until a login works. */
export async function start(input: Input, session: Session): Promise<void> {
  const { api, record } = await wanted(input, session);
  const asked = await patch(api, record, { state: 'running' });
  const after = input.flag('no-wait') ? asked : await followStart(api, record.id, session, record);
  await say(session, input, after, input.flag('no-wait') ? `${record.id} starts.` : `${record.id} runs.`);
}

function doomed({ id, name, state, disk_policy: policy }: InstanceRecord): string {
  const disk = policy === 'retain' ? 'its disk is kept' : 'its disk is deleted too';
  return `${name === null ? id : `${id} (${plain(name)})`}? It is ${state}, and ${disk}.`;
}

async function doomedOnes(api: Api, input: Input): Promise<readonly InstanceRecord[]> {
  if (input.flag('all')) {
    if (input.operands.length > 0) throw usageFailure('berth rm --all takes no INSTANCE.', 'Leave one of them out.');
    const { data } = await api.get<List<InstanceRecord>>('/instances');
    return data.filter(({ state }) => state !== 'deleting');
  }
  if (input.operands.length === 0) throw usageFailure('berth rm needs INSTANCE.', 'Or --all for all of them.');
  const records = new Map<string, InstanceRecord>();
  for (const word of input.operands) {
    const record = await findInstance(api, word);
    records.set(record.id, record);
  }
  return [...records.values()];
}

/** `berth rm`: gives instances back. All are found before any is deleted. */
export async function remove(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const all = await doomedOnes(api, input);
  const [first] = all;
  if (first === undefined) return session.terminal.say('You have no instances.');
  const question =
    all.length === 1
      ? `Delete ${doomed(first)}`
      : `${all.map((one) => `${doomed(one)}\n`).join('')}Delete these ${all.length}?`;
  if (!(await confirm(session, question, input.flag('yes')))) throw new CliFailure('Nothing was deleted.');
  for (const { id } of all) {
    await api.call('DELETE', instancePath(id));
    session.terminal.say(`${id} is being deleted.`);
  }
}

/** `berth set`: changes what may change in the life of an instance. */
export async function set(input: Input, session: Session): Promise<void> {
  const label = input.text('label');
  const body = { ...lifeOf(input, true), ...(label !== undefined && { label: label === 'none' ? null : label }) };
  if (Object.keys(body).length === 0) throw usageFailure('berth set needs an option.', 'Run berth set --help.');
  const { api, record } = await wanted(input, session);
  await say(session, input, await patch(api, record, body), `${record.id} is changed.`);
}

/** The longest time of a start with `more` added. Throws for times that are not valid. */
export function extended(now: string, more: string): string {
  const [before, added] = [secondsOf(now), secondsOf(more)];
  if (before !== undefined && added !== undefined && added > 0) return durationOf(before + added);
  throw usageFailure(`${more} is no time: write, for example, 90m or 12h.`);
}

/** `berth extend`: lets an instance run for longer than it was rented for. */
export async function extend(input: Input, session: Session): Promise<void> {
  const more = input.operands[1] ?? '';
  extended('1s', more);
  const { api, record } = await wanted(input, session);
  if (record.max_duration === null)
    return say(session, input, record, `${record.id} has no end that could be extended.`);
  const after = await patch(api, record, { max_duration: extended(record.max_duration, more) });
  const end =
    after.expires_at === null
      ? `for ${after.max_duration} from when its container first runs`
      : `until ${after.expires_at}`;
  await say(session, input, after, `${record.id} may run ${end}.`);
}
