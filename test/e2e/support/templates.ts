import { expect } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import type { Tenant } from './http.ts';
import type { Rented } from './rented.ts';
import { login, type newIdentity, runOver } from './ssh.ts';

interface Renter {
  user: Tenant;
  rent: (wanted: object) => Promise<Rented>;
  identity: ReturnType<typeof newIdentity>;
}

/** Makes a template, rents with it, changes and extends, and gives all of it back: with an API key alone. */
export async function tryTemplates({ user, rent, identity }: Renter): Promise<void> {
  const content = { name: 'greeter', env: { FROM: 'nobody' }, on_start: 'echo "$GREETING from $FROM" > /tmp/greeting' };
  const made = await user.call('POST', '/api/v1/templates', content);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const path = `/api/v1/templates/${String(made.body['id'])}`;
  const changed = await user.call('PUT', path, { ...content, env: { FROM: 'the template' } });
  expect((await user.call('GET', path)).body).toEqual(changed.body);

  const env = { GREETING: 'hello' };
  const instance = await rent({ template_hash_id: changed.body['hash_id'], env, disk_gb: 1, max_duration: '1h' });
  const session = await login(await instance.place(), identity);
  await waitFor('the start script', async () => {
    return (await runOver(session, 'cat /tmp/greeting 2>&1')) === 'hello from the template\n';
  });
  session.end();
  const one = `/api/v1/instances/${instance.id}`;
  const extended = await user.call('PATCH', one, { max_duration: '2h' });
  expect([extended.status, extended.body['max_duration']]).toEqual([200, '2h']);
  expect((await user.call('DELETE', path)).status).toBe(200);
  expect((await user.call('GET', path)).status).toBe(404);
  expect((await user.call('DELETE', one)).status).toBe(200);
  await waitFor('the instance is gone', async () => (await user.call('GET', one)).status === 404, 120_000);
}
