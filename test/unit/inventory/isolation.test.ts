import { describe, expect, test } from 'vitest';
import type { GpuPoolSpec } from '../../../src/resources/gpu-pool.ts';
import { gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { type IsolationNeeds, isolationOn } from '../../../src/inventory/nodes/isolation.ts';
import { nodeFacts } from '../../../src/inventory/nodes/node-view.ts';
import { poolIsolation } from '../../../src/inventory/pool-isolation.ts';
import { gpuNode, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

type Shape = Parameters<typeof gpuNode>[1];
type Handlers = NonNullable<Shape>['userNamespaces'];
/** The spec of the pool, and what the node says of its handlers. */
type Around = [pool: Partial<GpuPoolSpec>, userNamespaces: Handlers];

function facts(spec: Partial<GpuPoolSpec>, shape: Shape = {}, name = 'n') {
  return nodeFacts(gpuNode(name, shape), [{ name: 'p', spec: gpuPoolSpecSchema.parse(spec) }]);
}

const needs = (over: Partial<IsolationNeeds> = {}): IsolationNeeds => ({
  runtimeClassName: undefined,
  mayChoose: false,
  userNamespaces: false,
  ...over,
});

const YES: Handlers = { '': true };
const KATA: Handlers = { '': true, kata: false };
const required = { userNamespaces: true };

describe('how a pod runs on a node', () => {
  test.each<[string, Around, Partial<IsolationNeeds>, object | string]>([
    ['nothing is asked', [{}, YES], {}, { userNamespaces: false, isRequired: false }],
    ['the pool prefers', [{ userNamespaces: 'Preferred' }, YES], {}, { userNamespaces: true, isRequired: false }],
    ['the pool prefers in vain', [{ userNamespaces: 'Preferred' }, undefined], {}, { userNamespaces: false }],
    ['the pool requires', [{ userNamespaces: 'Required' }, YES], {}, { userNamespaces: true, isRequired: true }],
    ['the pool requires in vain', [{ userNamespaces: 'Required' }, { '': false }], {}, 'UserNamespaces'],
    ['the tenant requires, the pool never', [{ userNamespaces: 'Never' }, YES], required, { userNamespaces: true }],
    ['the tenant requires of an old kubelet', [{}, undefined], required, 'UserNamespaces'],
    ['the handler of the class cannot', [{ runtimeClassName: 'kata' }, KATA], required, 'UserNamespaces'],
    ['an unknown class where not all can', [{ runtimeClassName: 'other' }, KATA], required, 'UserNamespaces'],
    ['an unknown class where all can', [{ runtimeClassName: 'other' }, YES], required, { userNamespaces: true }],
    [
      'leaving the class of the pool',
      [{ runtimeClassName: 'kata' }, YES],
      { runtimeClassName: 'runc' },
      'RuntimeClass',
    ],
    [
      'leaving it with a class that the tenant may choose elsewhere',
      [{ runtimeClassName: 'kata' }, YES],
      { runtimeClassName: 'runc', mayChoose: true },
      'RuntimeClass',
    ],
    ['a class that is not allowed', [{}, YES], { runtimeClassName: 'gvisor' }, 'RuntimeClass'],
    [
      'a class that is allowed',
      [{}, YES],
      { runtimeClassName: 'gvisor', mayChoose: true },
      { runtimeClassName: 'gvisor' },
    ],
  ])('%s', (_name, [pool, userNamespaces], asked, expected) => {
    const found = isolationOn(facts(pool, { ...(userNamespaces && { userNamespaces }) }), needs(asked));
    if (typeof expected === 'string') expect(found).toBe(expected);
    else expect(found).toMatchObject(expected);
  });
});

test('a pool that requires user namespaces offers nothing on nodes that have none', () => {
  const pools = [gpuPool('p', { userNamespaces: 'Required' })];
  const nodes = [gpuNode('old'), gpuNode('new', { userNamespaces: YES })];
  const [one] = inventoryOf({ nodes, pools }).inventory.offers();
  expect(one?.available).toBe(8);
});

describe('what the pool says about its isolation', () => {
  const confirmed = { 'berth.dev/gpu-isolation': 'enforced' };

  test.each<[string, ReturnType<typeof facts>[], object]>([
    ['no nodes', [], { status: 'Unknown', reason: 'NoNodes' }],
    [
      'simulated nodes alone',
      [facts({}, { labels: { 'berth.dev/simulated': 'true' } })],
      { status: 'Unknown', reason: 'NoNodes' },
    ],
    ['nodes that the operator confirmed', [facts({}, { labels: confirmed })], { status: 'True', reason: 'Enforced' }],
    [
      'one that he did not',
      [facts({}, { labels: confirmed }), facts({}, {}, 'm')],
      { status: 'Unknown', reason: 'NotConfirmed', message: expect.stringContaining('node m lets') },
    ],
    [
      'one with another word',
      [facts({}, { labels: { 'berth.dev/gpu-isolation': 'none' } })],
      { status: 'Unknown', reason: 'NotConfirmed' },
    ],
    [
      'shared GPUs',
      [facts({}, { labels: { ...confirmed, 'nvidia.com/gpu.replicas': '4' } })],
      { status: 'False', reason: 'SharedGPUs' },
    ],
    [
      'no user namespaces where they are required',
      [facts({ userNamespaces: 'Required' }, { labels: confirmed })],
      { status: 'False', reason: 'NoUserNamespaces' },
    ],
  ])('%s', (_name, nodes, expected) => {
    expect(poolIsolation(nodes)).toMatchObject(expected);
  });

  test('names a few of many nodes', () => {
    const many = Array.from({ length: 8 }, (_, index) => facts({}, {}, `n${index}`));
    expect(poolIsolation(many).message).toContain('n0, n1, n2, n3, n4 and 3 more');
  });
});
