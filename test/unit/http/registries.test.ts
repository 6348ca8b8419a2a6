import { expect, test } from 'vitest';
import { storeCredentials } from '../../../src/http/features/registries/secret.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import type { RegistryCredential } from '../../../src/resources/registry-credential.ts';

const BODY = { name: 'ghcr', server: 'ghcr.io', username: 'octocat', password: 'hunter2' };

function taken(): Promise<never> {
  return Promise.reject(new AlreadyExistsError({ status: 409, reason: 'AlreadyExists', message: 'It exists.' }));
}

/** Credentials that were deleted, which the controller has not let go. */
const GOING: RegistryCredential = {
  metadata: { name: 'ghcr', namespace: 'acme', finalizers: [FINALIZER], deletionTimestamp: '2026-01-01T00:00:00Z' },
  spec: { server: 'ghcr.io', username: 'octocat' },
};

test.each([
  ['their Secret is there', taken],
  [
    'they are',
    (_type: unknown, _object: unknown, options: { dryRun?: boolean } = {}) =>
      options.dryRun ? Promise.resolve({}) : taken(),
  ],
])('deleted credentials that no controller lets go hold their name, and are told to while %s', async (_, create) => {
  const client = { get: () => Promise.resolve(GOING), create } as unknown as KubeClient;
  const clock = { ...systemClock(), sleep: () => Promise.resolve() };
  const refused = storeCredentials({ client, clock }, 'acme', BODY);
  await expect(refused).rejects.toMatchObject({ code: 'registry_exists' });
  await expect(refused).rejects.toThrow(/^Credentials of the name ghcr were deleted, .* Try again in a minute\.$/);
});
