import { pino } from 'pino';
import { expect, it } from 'vitest';
import { PullSecrets } from '../../../src/controllers/tenants/pull-secret.ts';
import { credentialsFor, repositoryOf } from '../../../src/resources/image-credentials.ts';
import { InvalidError, NotFoundError } from '../../../src/kube/errors.ts';
import { keyOf, type ObjectRef, type ResourceType, type Secret } from '../../../src/kube/types.ts';
import type { TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const TOOLS = 'mirror.corp:5000/x/berth-dev/berth:0.1.0';
const DEFAULT = 'mirror.corp:5000/x/library/debian:12@sha256:aa';

function dockerSecret(name: string, auths: object): Secret {
  const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
  return { metadata: { namespace: 'berth-system', name }, type: 'kubernetes.io/dockerconfigjson', data };
}

function authsIn(secret: Secret | undefined): unknown {
  const text = Buffer.from(secret?.data?.['.dockerconfigjson'] ?? '', 'base64').toString();
  return (JSON.parse(text) as { auths: unknown }).auths;
}

const limit = (uid = 'limit-1'): TenantLimit =>
  ({ metadata: { namespace: 'acme', name: 'berth', uid }, spec: {} }) as TenantLimit;

/** A cluster with the operator's Secrets, and what the controller did in it. */
function worldOf(...secrets: Secret[]) {
  const held = new Map(secrets.map((secret) => [keyOf(secret.metadata), secret]));
  const done: string[] = [];
  const clock = fakeClock();
  const pull = new PullSecrets({
    clock,
    log: pino({ level: 'silent' }),
    config: {
      namespace: 'berth-system',
      imagePullSecrets: secrets.map(({ metadata }) => metadata.name),
      toolsImage: TOOLS,
      defaultImage: DEFAULT,
    },
    client: {
      get(_type: ResourceType, ref: ObjectRef) {
        const found = held.get(keyOf(ref));
        const gone = new NotFoundError({ message: 'no such Secret', status: 404, reason: 'NotFound' });
        return found === undefined ? Promise.reject(gone) : Promise.resolve(found as never);
      },
      create(_type: ResourceType, secret: object) {
        const made = secret as Secret;
        done.push(`create ${keyOf(made.metadata)}`);
        held.set(keyOf(made.metadata), { ...made, metadata: { ...made.metadata, uid: 'copy' } });
        return Promise.resolve(made as never);
      },
      patch(_type: ResourceType, ref: ObjectRef, body: unknown) {
        done.push(`patch ${keyOf(ref)}`);
        const before = held.get(keyOf(ref));
        if (before?.type !== 'kubernetes.io/dockerconfigjson') {
          const fields = { message: 'wrong data', status: 422, reason: 'Invalid' };
          return Promise.reject(new InvalidError(fields));
        }
        const { metadata, ...rest } = body as Secret;
        held.set(keyOf(ref), { ...before, ...rest, metadata: { ...before.metadata, ...metadata } });
        return Promise.resolve(before as never);
      },
    },
  });
  const keep = (tenantLimit = limit()): Promise<void> => pull.keep(tenantLimit, new AbortController().signal);
  return { held, done, clock, pull, keep, copy: () => held.get('acme/berth.image-pull') };
}

it.each([
  ['debian', 'docker.io/library/debian'],
  ['debian:12', 'docker.io/library/debian'],
  ['index.docker.io/team/app:1', 'docker.io/team/app'],
  ['team/app@sha256:ab', 'docker.io/team/app'],
  ['localhost/app:1', 'localhost/app'],
  ['mirror.corp:5000/x/app:1@sha256:ab', 'mirror.corp:5000/x/app'],
  ['[fd00::1]:5000/app', '[fd00::1]:5000/app'],
])('the repository of %s is %s', (image, repository) => {
  expect(repositoryOf(image)).toBe(repository);
});

it('a copy has credentials for these images and for no other image of the registry', () => {
  const auths = credentialsFor(
    [TOOLS, DEFAULT],
    [dockerSecret('a', { 'mirror.corp:5000': { auth: 'all' }, 'other.corp': { auth: 'other' } })],
  );
  expect(auths).toEqual({
    'mirror.corp:5000/x/berth-dev/berth': { auth: 'all' },
    'mirror.corp:5000/x/library/debian': { auth: 'all' },
  });
});

it('the key that names the most of the path wins, in whatever form Docker wrote it', () => {
  const keys = {
    'https://mirror.corp:5000/v2/': { auth: 'all' },
    'mirror.corp:5000/x/berth-dev': { auth: 'berth' },
    'mirror.corp:5000/x/berth-dev/ber': { auth: 'beside' },
    'https://index.docker.io/v1/': { auth: 'hub' },
  };
  expect(credentialsFor([TOOLS, DEFAULT, 'debian:12'], [dockerSecret('a', keys)])).toEqual({
    'docker.io/library/debian': { auth: 'hub' },
    'mirror.corp:5000/x/berth-dev/berth': { auth: 'berth' },
    'mirror.corp:5000/x/library/debian': { auth: 'all' },
  });
});

it.each<Record<string, string>>([
  {},
  { '.dockerconfigjson': 'bm8=' },
  { '.dockerconfigjson': Buffer.from('{"auths":[]}').toString('base64') },
])('a Secret without credentials has none: %o', (data) => {
  expect(credentialsFor([TOOLS], [{ metadata: { name: 'a' }, data }])).toEqual({});
});

it('makes the copy once, owned by the TenantLimit, and leaves it while it is right', async () => {
  const world = worldOf(dockerSecret('own', { 'mirror.corp:5000': { auth: 'one' } }));
  await world.keep();
  await world.keep();
  expect(world.done).toEqual(['create acme/berth.image-pull']);
  expect(world.copy()).toMatchObject({
    type: 'kubernetes.io/dockerconfigjson',
    metadata: { ownerReferences: [{ kind: 'TenantLimit', name: 'berth', uid: 'limit-1' }] },
  });
});

it('puts back what somebody changed or deleted, and follows the owner', async () => {
  const world = worldOf(dockerSecret('own', { 'mirror.corp:5000': { auth: 'one' } }));
  await world.keep();
  const copy = world.copy() as Secret;
  world.held.set('acme/berth.image-pull', { ...copy, data: { '.dockerconfigjson': 'e30=' } });
  await world.keep();
  world.held.delete('acme/berth.image-pull');
  await world.keep();
  await world.keep(limit('limit-2'));
  expect(world.done.map((line) => line.split(' ')[0])).toEqual(['create', 'patch', 'create', 'patch']);
  expect(world.copy()?.metadata.ownerReferences?.[0]?.uid).toBe('limit-2');
});

it('brings a password that the operator changed, within a minute of its own reads', async () => {
  const world = worldOf(dockerSecret('own', { 'mirror.corp:5000': { auth: 'one' } }));
  await world.keep();
  world.held.set('berth-system/own', dockerSecret('own', { 'mirror.corp:5000': { auth: 'two' } }));
  await world.keep();
  expect(authsIn(world.copy())).toMatchObject({ 'mirror.corp:5000/x/library/debian': { auth: 'one' } });
  await world.clock.advance(60_000);
  await world.keep();
  expect(authsIn(world.copy())).toMatchObject({ 'mirror.corp:5000/x/library/debian': { auth: 'two' } });
});

it('keeps the copies there are while the operator’s Secret is away or has nothing for these images', async () => {
  const world = worldOf(dockerSecret('own', { 'mirror.corp:5000': { auth: 'one' } }));
  await world.keep();
  for (const change of [
    () => world.held.delete('berth-system/own'),
    () => world.held.set('berth-system/own', dockerSecret('own', { 'other.corp': {} })),
  ]) {
    change();
    await world.clock.advance(60_000);
    await world.keep();
  }
  expect(world.done).toEqual(['create acme/berth.image-pull']);
  expect(worldOf().pull.isNeeded).toBe(false);
});

it('a tenant’s own Secret of that name, of another type, stops nothing else', async () => {
  const world = worldOf(dockerSecret('own', { 'mirror.corp:5000': { auth: 'one' } }));
  const metadata = { namespace: 'acme', name: 'berth.image-pull', uid: 'theirs' };
  world.held.set('acme/berth.image-pull', { metadata, type: 'Opaque', data: {} });
  await world.keep();
  expect(world.copy()?.type).toBe('Opaque');
});
