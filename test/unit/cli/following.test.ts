import { describe, expect, it } from 'vitest';
import { berth, json, refuse, stream } from '../../support/scripted-cli.ts';

const INSTANCE = json(200, { id: 'i-1', name: 'train', state: 'running' });

function event(id: number, reason: string, more: object = {}): string {
  const at = `2026-11-27T12:46:${String(30 + id).padStart(2, '0')}.660Z`;
  const data = { at, last_at: null, type: 'normal', reason, message: `${reason} it is.`, count: 1, start: 1, ...more };
  return `event: event\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}
const END = `event: end\ndata: {"reason":"Deleted","message":"The instance is deleted."}\n\n`;

describe('berth events -f', () => {
  it('prints each event once, over a lost connection, until the instance is gone', async () => {
    const answers = [
      INSTANCE,
      stream(`${event(1, 'Accepted')}${event(2, 'Started')}`, false),
      refuse(503, 'cluster_unavailable', 'Not now.'),
      stream(`${event(3, 'CrashLoop', { type: 'warning', count: 2, last_at: '2026-11-27T12:50:00Z' })}${END}`),
    ];
    const { code, out, said, seen } = await berth(['events', '-f', 'i-1'], answers);
    expect(code).toBe(0);
    expect(out.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['TIME (UTC)', 'TYPE', 'WHAT'],
      ['2026-11-27T12:46:31Z', 'normal', 'Accepted'],
      ['2026-11-27T12:46:32Z', 'normal', 'Started'],
      ['2026-11-27T12:50:00Z', 'warning', 'CrashLoop (2 times)'],
      [''],
    ]);
    expect(said).toBe('The connection broke. Trying again.\nThe instance is deleted.');
    expect(seen.slice(1).map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '2', '2']);
  });

  it('has a line of JSON for each event, and fits a narrow screen', async () => {
    const answers = [INSTANCE, stream(`${event(1, 'Accepted')}${event(2, 'Started')}${END}`)];
    const { out } = await berth(['events', '-f', 'i-1', '--json'], answers);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { reason: string }).reason),
    ).toEqual(['Accepted', 'Started']);
    const screen = (await berth(['events', '-f', 'i-1'], answers, [], { width: 60 })).out;
    expect(screen.match(/TIME/g)).toHaveLength(1);
    expect(screen).toMatch(/^11-27 12:46:31 {2}normal {3}Accepted {12}Accepted it is\.$/m);
    expect(screen).toMatch(/^11-27 12:46:32 {2}normal {3}Started {13}Started it is\.$/m);
    expect(screen.split('\n').filter((line) => line.length > 60)).toEqual([]);
  });

  it('ends where the key is revoked', async () => {
    const { code } = await berth(
      ['events', '-f', 'i-1'],
      [INSTANCE, refuse(401, 'invalid_api_key', 'Invalid API key.')],
    );
    expect(code).toBe(3);
  });
});

describe('berth top -w', () => {
  const hour = (load: number) =>
    json(200, {
      instance_id: 'i-1',
      step_seconds: 15,
      gpus: [],
      data: [{ name: 'gpu_utilization_ratio', gpu: 0, values: [load] }],
    });

  it('draws again with new values, also after a replica is replaced, until the instance is gone', async () => {
    const answers = [
      INSTANCE,
      hour(0.25),
      refuse(503, 'cluster_unavailable', 'Not now.'),
      hour(0.75),
      refuse(404, 'instance_not_found', 'Gone.'),
    ];
    const { code, out } = await berth(['top', '-w', 'i-1'], answers);
    expect(code).toBe(4);
    expect(out.match(/\d+ %/g)).toEqual(['25 %', '75 %']);
    expect(out).not.toContain('\u001b');
    const screen = await berth(['top', '-w', 'i-1'], answers, [], { width: 60 });
    expect(
      screen.out
        .split('\u001b[H\u001b[J')
        .slice(1)
        .map((one) => /\d+ %/.exec(one)?.[0]),
    ).toEqual(['25 %', '75 %']);
  });

  it('prints the record each time with --json', async () => {
    const { out } = await berth(
      ['top', '-w', 'i-1', '--json'],
      [INSTANCE, hour(0.5), refuse(404, 'instance_not_found', 'Gone.')],
    );
    expect(JSON.parse(out)).toMatchObject({ instance_id: 'i-1' });
  });
});
