import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { DIALECTS } from '../../../src/gateway/dialects/index.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from '../../../src/gateway/plain-routes.ts';
import { OUTSIDE_DIALECTS, OUTSIDE_ENDPOINTS } from '../../../src/resources/model-servers/model-server.ts';
import { readScale } from '../../../src/resources/model-servers/scale.ts';
import type { Service } from '../../../src/kube/types.ts';

const sample = new URL('../../../deploy/samples/model-from-zero.yaml', import.meta.url);

function read(annotations: Record<string, string>) {
  const problems: string[] = [];
  const scale = readScale(
    Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`berth.dev/${key}`, value])),
    problems,
  );
  return { scale, problems };
}

describe('what a Service says about its workload', () => {
  it.each([
    ['deployments.apps/qwen', { group: 'apps', version: 'v1', plural: 'deployments', name: 'qwen' }],
    ['statefulsets.v1.apps/a.b', { group: 'apps', version: 'v1', plural: 'statefulsets', name: 'a.b' }],
    [
      'leaderworkersets.v1.leaderworkerset.x-k8s.io/big',
      { group: 'leaderworkerset.x-k8s.io', version: 'v1', plural: 'leaderworkersets', name: 'big' },
    ],
  ])('%s is a workload of its own namespace', (target, expected) => {
    expect(read({ 'scale-target': target })).toEqual({
      scale: { target: expected, replicas: 1, idleSeconds: 900, waitSeconds: 300, models: [] },
      problems: [],
    });
  });

  it.each([
    'deployments/qwen',
    'deployments.apps/other/qwen',
    'deployments.apps/../qwen',
    'deployments.apps/qwen/scale?x',
    'deployments.apps/Qwen',
    'leaderworkersets.leaderworkerset.x-k8s.io/big',
    'deployments.apps/',
    '',
  ])('%s names none', (target) => {
    const { scale, problems } = read({ 'scale-target': target });
    expect(scale).toBeUndefined();
    expect(problems).toEqual([expect.stringContaining('berth.dev/scale-target is not')]);
  });

  it('takes the default for a number that is out of bounds, and says so', () => {
    const numbers = { 'scale-replicas': '0', 'scale-idle-seconds': '59', 'scale-wait-seconds': '1.5' };
    const { scale, problems } = read({ 'scale-target': 'deployments.apps/x', 'model-names': 'a,=,b', ...numbers });
    expect(scale).toMatchObject({ replicas: 1, idleSeconds: 900, waitSeconds: 300, models: ['a', 'b'] });
    expect(problems).toHaveLength(4);
  });

  it('says nothing without a workload', () => {
    expect(read({ 'model-names': 'a' })).toEqual({ scale: undefined, problems: [] });
  });

  it('is in the sample as it should be', () => {
    const [, service] = parseAllDocuments(readFileSync(sample, 'utf8')).map((document) => document.toJS() as Service);
    const problems: string[] = [];
    expect(readScale(service?.metadata.annotations ?? {}, problems)).toMatchObject({
      target: { name: 'qwen' },
      models: ['Qwen/Qwen3-8B'],
    });
    expect(problems).toEqual([]);
  });
});

// The resources import nothing of the gateway, so what its tables have stands in the schema again.
it('a server outside may have every dialect and endpoint of the gateway, and no other', () => {
  expect(OUTSIDE_DIALECTS).toEqual(DIALECTS);
  expect(OUTSIDE_ENDPOINTS).toEqual(PLAIN_NAMES.map((name) => PLAIN_ROUTES[name].path));
});
