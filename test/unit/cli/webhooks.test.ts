import { expect, it } from 'vitest';
import { berth, json, list } from '../../support/scripted-cli.ts';

const HOOK = {
  id: 'w-1',
  name: 'bot',
  url: 'https://chat.example.com/services/T0/hunter2',
  events: null,
  delivering: { status: false, reason: 'TargetRefused', message: 'The target answered with the status 500.' },
  last_delivered_at: '2026-01-01T00:00:00Z',
  failed_since: '2026-01-01T00:01:00Z',
  dropped: 3,
  created_at: '2026-01-01T00:00:00Z',
};

it('a webhook is made of a URL and types, and its secret is all that comes out', async () => {
  const words = ['webhooks', 'add', HOOK.url, '--event', 'instance.ready', '--event', 'budget.spent', '-n', 'bot'];
  const made = json(201, { ...HOOK, secret: 'whsec_abc' });
  const result = await berth(words, [made]);
  expect([result.code, result.out]).toEqual([0, 'whsec_abc\n']);
  expect([result.seen[0]?.line, JSON.parse(result.seen[0]?.body ?? '')]).toEqual([
    'POST /api/v1/webhooks',
    { url: HOOK.url, events: ['instance.ready', 'budget.spent'], name: 'bot' },
  ]);
  expect(result.said).toContain('w-1 is made');
  const whole = await berth(['webhooks', 'add', HOOK.url, '--json'], [made]);
  expect(JSON.parse(whole.out)).toMatchObject({ id: 'w-1', secret: 'whsec_abc' });
  expect([whole.said, JSON.parse(whole.seen[0]?.body ?? '')]).toEqual(['', { url: HOOK.url }]);
});

it('the list of webhooks has hosts, and one webhook has its URL and how it goes', async () => {
  const all = await berth(
    ['webhooks'],
    [list(HOOK, { ...HOOK, id: 'w-2', delivering: null, last_delivered_at: null })],
  );
  expect(all.out).toMatch(/^w-1 +bot +chat\.example\.com +TargetRefused +\d+d +3 +\d+d$/m);
  expect(all.out).toMatch(/^w-2 +bot +chat\.example\.com +- +- +3 /m);
  expect(all.out).not.toContain('hunter2');
  const one = await berth(['webhooks', 'show', 'w-1'], [json(200, HOOK)]);
  expect(one.seen[0]?.line).toBe('GET /api/v1/webhooks/w-1');
  expect(one.out).toContain(`url             ${HOOK.url}\nevents          all\ndelivering      no (TargetRefused)\n`);
  expect(one.out).toContain('failing since   2026-01-01T00:01:00Z\ndropped         3\n');
});

it('a webhook gets another secret, and ends', async () => {
  const rotated = await berth(['webhooks', 'rotate', 'w-1'], [json(200, { ...HOOK, secret: 'whsec_new' })]);
  expect([rotated.out, rotated.seen[0]?.line]).toEqual(['whsec_new\n', 'POST /api/v1/webhooks/w-1/secret']);
  const removed = await berth(['webhooks', 'rm', 'w-1'], [json(200, { id: 'w-1', deleted: true })]);
  expect([removed.code, removed.seen[0]?.line]).toEqual([0, 'DELETE /api/v1/webhooks/w-1']);
});
