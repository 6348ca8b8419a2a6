import { expect, it } from 'vitest';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { SshKey } from '../../../src/resources/ssh-key.ts';
import { fakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { startLoneApi } from '../../support/http/lone-api.ts';

const KIB = 1024;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';

const metadata = (namespace: string, name: string) => ({
  name,
  namespace,
  uid: `${namespace}/${name}`,
  creationTimestamp: '2026-01-01T00:00:00Z',
});

function instance(namespace: string, name: string, bytes: number): GpuInstance {
  return { metadata: metadata(namespace, name), spec: { args: ['x'.repeat(bytes)] } } as GpuInstance;
}

function sshKey(namespace: string, name: string, bytes: number): SshKey {
  return { metadata: metadata(namespace, name), spec: { publicKey: `${KEY} ${'c'.repeat(bytes)}`, displayName: '' } };
}

const many = <T>(count: number, make: (name: string) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(`i-${at}`));

async function start(clock: FakeClock) {
  const api = await startLoneApi({
    tenants: ['hostile', 'honest'],
    clock,
    instances: [
      ...many(55, (name) => instance('hostile', name, 60 * KIB)),
      ...many(200, (name) => instance('honest', name, 200)),
    ],
    sshKeys: [
      ...many(220, (name) => sshKey('hostile', name, 16 * KIB - 100)),
      ...many(200, (name) => sshKey('honest', name, 20)),
    ],
  });
  const ask = async (tenant: string, path: string, accept = 'application/json') => {
    const left = new AbortController();
    const headers = { authorization: `Bearer ${tenant}`, accept, 'accept-encoding': 'identity' };
    const url = `http://127.0.0.1:${api.address.port}/api/v1${path}`;
    const { status, headers: got } = await fetch(url, { headers, signal: left.signal });
    left.abort();
    return { status, wait: got.get('retry-after') };
  };
  const close = async (): Promise<void> => {
    const closed = api.close();
    await clock.advance(60_000);
    await closed;
  };
  return { ask, close };
}

const OK = { status: 200, wait: null };

it.each([
  ['/instances', 'application/json'],
  ['/instances', 'text/event-stream'],
  ['/ssh-keys', 'application/json'],
])('a tenant has its long texts listed at its pace, and others theirs: %s as %s', async (path, accept) => {
  const clock = fakeClock();
  const { ask, close } = await start(clock);
  expect(await ask('hostile', path, accept)).toEqual(OK);
  for (let again = 0; again < 3; again += 1)
    expect(await ask('hostile', path, accept)).toEqual({ status: 429, wait: '1' });
  expect(await ask('hostile', '/limits')).toEqual(OK);
  for (let again = 0; again < 10; again += 1) expect(await ask('honest', path, accept)).toEqual(OK);
  await clock.advance(1000);
  expect(await ask('hostile', path, accept)).toEqual(OK);
  expect((await ask('hostile', path, accept)).status).toBe(429);
  await close();
});
