import { afterEach, describe, expect, it } from 'vitest';
import { modelServerStatus } from '../../../src/controllers/status/model-server.ts';
import type { Secret } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { ModelServer, ModelServerSpec } from '../../../src/resources/model-servers/model-server.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { startOutside } from '../../support/outside-server.ts';
import type { EngineOptions } from '../../support/scripted-engine.ts';

const KEY = 'sk-outside-0123456789';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function look(
  spec: Partial<ModelServerSpec>,
  {
    key = KEY,
    owner = 'berth-system/provider',
    engine = {},
  }: { key?: string; owner?: string; engine?: EngineOptions } = {},
): Promise<[string | undefined, string | undefined, string | undefined]> {
  const outside = await startOutside({ apiKey: KEY, ...engine });
  closers.push(() => outside.close());
  const secret: Secret = {
    metadata: { name: 'provider-key', annotations: { 'berth.dev/model-credential-for': owner } },
    data: { 'api-key': Buffer.from(key).toString('base64') },
  };
  const server: ModelServer = {
    metadata: { name: 'provider', namespace: 'berth-system', uid: 'uid', generation: 3 },
    spec: {
      baseURL: outside.baseURL,
      caBundle: outside.ca,
      credentialSecret: 'provider-key',
      dialects: ['chat'],
      models: [{ name: 'big' }],
      ...spec,
    },
  };
  const secrets = { names: ['provider-key'], read: () => Promise.resolve(secret) };
  const kind = modelServerStatus({ store: new FakeStore<ModelServer>(), secrets }, systemClock());
  const status = await kind.statusOf(server, Date.now(), new AbortController().signal);
  expect(status.observedGeneration).toBe(3);
  expect(JSON.stringify(status)).not.toContain(key);
  const [ready] = status.conditions ?? [];
  return [ready?.status, ready?.reason, ready?.message];
}

describe('the condition of a server outside', () => {
  it.each<[string, Partial<ModelServerSpec>, Parameters<typeof look>[1]?]>([
    ['Answering', {}],
    ['Answering', { dialects: ['messages'] }],
    ['CredentialRefused', {}, { key: 'sk-old' }],
    ['CredentialRefused', { credentialSecret: undefined }],
    ['SecretNotListed', { credentialSecret: 'another' }],
    ['SecretInvalid', {}, { owner: 'tenant-a/provider' }],
    ['CertificateRefused', { caBundle: undefined }],
    ['InvalidCABundle', { caBundle: 'none' }],
    ['InvalidURL', { baseURL: 'http://api.example.com/v1' }],
    ['InvalidURL', { baseURL: 'https://169.254.169.254/v1' }],
    ['InvalidURL', { baseURL: 'https://[fd00:ec2::254]/v1' }],
    ['InvalidURL', { baseURL: 'https://[64:ff9b::a9fe:a9fe]/v1' }],
    ['AddressRefused', { baseURL: 'https://localhost/v1' }],
  ])('says %s for %j', async (reason, spec, more) => {
    expect((await look(spec, more)).slice(0, 2)).toEqual([reason === 'Answering' ? 'True' : 'False', reason]);
  });
});
