import { Webhook } from 'standardwebhooks';
import { expect } from 'vitest';
import { PODS, SERVICES } from '../../../src/kube/types.ts';
import { waitFor } from '../../support/wait-for.ts';
import { tenant } from './http.ts';
import { INSTANCE_IMAGE } from './images.ts';
import { TENANT, VALUES } from './release.ts';
import type { World } from './world.ts';

const MINUTES = 60_000;
const TARGET = { namespace: 'default', name: 'target' };
/** Takes every request, and prints it. A connection whose end gets lost holds up no other. */
const ANSWER = String.raw`printf 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'; { echo; cat 2>/dev/null; echo; } >&2`;
const TAKE = ['nc', '-ll', '-p', '8080', '-e', 'sh', '-c', ANSWER];

/** Starts the target, and returns the address of its pod. */
async function startTarget({ client }: World): Promise<string> {
  await client.create(PODS, {
    metadata: TARGET,
    spec: { containers: [{ name: 'main', image: INSTANCE_IMAGE, command: TAKE }] },
  });
  return waitFor('the target', async () => (await client.get(PODS, TARGET)).status?.podIP, MINUTES);
}

/** The deliveries in the log of the target that this secret has signed. */
function deliveriesIn(log: string, secret: string): { type: string; data: Record<string, unknown> }[] {
  const requests = log.split(/^POST /m).slice(1);
  return requests.flatMap((text) => {
    const [head = '', body = ''] = text.split(/\r?\n\r?\n/);
    const headers = Object.fromEntries(
      [...head.matchAll(/^(webhook-\w+|content-length): (.*)\r?$/gim)].map(([, name, value]) => [name, value]),
    ) as Record<string, string>;
    // One that broke off comes again.
    if (Buffer.byteLength(body.trim()) < Number(headers['content-length'])) return [];
    return [new Webhook(secret).verify(body.trim(), headers) as never];
  });
}

/** A tenant is told by the notifier of the chart, with its rights and its network policy, and nobody else is called. */
export async function tryWebhook(world: World): Promise<void> {
  const { client, release } = world;
  const address = await startTarget(world);
  const { resources } = VALUES.ssh;
  await release.upgrade({ webhooks: { enabled: true, allowedNetworks: [`${address}/32`], resources } });
  const { host, port } = await world.service('berth-api');
  const user = await tenant(client, TENANT, `http://${host}:${port}`);
  const make = (url: string) =>
    waitFor('a webhook', async () => {
      const { status, body } = await user.call('POST', '/api/v1/webhooks', { url, events: ['instance.ready'] });
      return status === 201 ? (body as { id: string; secret: string }) : undefined;
    });
  const { id, secret } = await make(`http://${address}:8080/hook`);
  const { spec } = await client.get(SERVICES, { namespace: 'default', name: 'kubernetes' });
  const inside = await make(`https://${spec?.clusterIP ?? ''}/`);
  const rented = await user.call('POST', '/api/v1/instances', {});
  expect(rented.status, JSON.stringify(rented.body)).toBe(201);
  const log = await waitFor(
    'the delivery',
    async () => {
      const { stdout } = await world.kubectl(['logs', '-n', TARGET.namespace, TARGET.name]);
      return stdout.includes('instance.ready') && stdout;
    },
    3 * MINUTES,
  ).catch(async (error: unknown) => {
    const [hook, instance] = await Promise.all(
      [`/api/v1/webhooks/${id}`, `/api/v1/instances/${String(rented.body['id'])}`].map((path) =>
        user.call('GET', path),
      ),
    );
    const seen = JSON.stringify([hook?.body['delivering'], instance?.body['state']]);
    throw new Error(`The webhook and its instance are ${seen}`, { cause: error });
  });
  const [delivery] = deliveriesIn(log, secret);
  expect(delivery).toMatchObject({ type: 'instance.ready', data: { instance_id: rented.body['id'] } });
  await waitFor('the refusal of a target inside', async () => {
    const { body } = await user.call('GET', `/api/v1/webhooks/${inside.id}`);
    return JSON.stringify(body['delivering']).includes('TargetNotAllowed');
  });
}
