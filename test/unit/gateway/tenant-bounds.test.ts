import { expect, it, vi } from 'vitest';
import { buildCatalog, ModelCache } from '../../../src/gateway/discovery/catalog.ts';
import type { ServerState } from '../../../src/gateway/discovery/names.ts';
import { boundNames, TargetBudget } from '../../../src/gateway/discovery/tenant-bounds.ts';
import { poolTargetsOf } from '../../../src/gateway/discovery/targets.ts';
import type { ServerSpec, Target } from '../../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { probeOf } from '../../support/probe.ts';

const OWN = 'berth-system';
const isBounded = (namespace: string): boolean => namespace !== OWN;

function serverOf(namespace: string, name: string): ServerSpec {
  return { namespace, name, uid: `${namespace}/${name}`, aliases: [], problems: [] };
}

function targetsOf(server: ServerSpec, count: number): Target[] {
  return Array.from({ length: count }, (_, index) => {
    const key = `${server.uid}/${index}`;
    return { key, place: key, origin: `http://${key}`, restarts: '', server, available: true };
  });
}

/** A server with so many pods, each of which has these models. */
function stateOf(namespace: string, name: string, pods: number, models: readonly string[]): ServerState {
  const server = serverOf(namespace, name);
  const probe = probeOf({ models: models.map((id) => ({ id })) });
  const endpoints = targetsOf(server, pods).map((target) => {
    const endpoint = new Endpoint(target, fakeClock());
    endpoint.update(target, probe);
    return endpoint;
  });
  return { server, endpoints, lastProbe: probe };
}

it('a tenant has a bound of names in the catalogue, over all its servers and their pods, and others lose none', () => {
  const names = Array.from({ length: 512 }, (_, index) => `model-${index}`);
  const hostile = Array.from({ length: 256 }, (_, index) =>
    stateOf(
      'hostile',
      `s-${index}`,
      2,
      names.map((name) => `${name}-${index}`),
    ),
  );
  const many = names.map((name) => `shared-${name}`);
  const states = boundNames(
    [...hostile, stateOf('honest', 'llm', 3, ['mine']), stateOf(OWN, 'big', 40, many)],
    isBounded,
  );
  const catalog = buildCatalog(states, new ModelCache(fakeClock()));
  const listed = catalog.list('hostile');
  expect(listed.length).toBeGreaterThan(1000);
  expect(listed.length + listed.reduce((sum, { members }) => sum + members.length, 0)).toBeLessThanOrEqual(8192);
  expect(catalog.find('honest', 'mine')?.members).toHaveLength(3);
  expect(catalog.find(OWN, 'shared-model-511')?.members).toHaveLength(40);
});

it('one server with many pods keeps as many of them as fit', () => {
  const [state] = boundNames(
    [
      stateOf(
        'a',
        'llm',
        100,
        Array.from({ length: 500 }, (_, index) => `m-${index}`),
      ),
    ],
    isBounded,
  );
  expect(state?.lastProbe?.models).toHaveLength(500);
  expect(state?.endpoints).toHaveLength(15);
});

it('aliases of a server count as names, and a server without room for them is in no list', () => {
  const aliases = Array.from({ length: 1000 }, (_, index) => ({ alias: `alias-${index}`, model: 'm' }));
  const states = ['a', 'b', 'c'].map((name) => {
    const state = stateOf('hostile', name, 3, ['m']);
    return { ...state, server: { ...state.server, aliases } };
  });
  const kept = boundNames(states, isBounded);
  expect(kept.map(({ endpoints, lastProbe }) => [endpoints.length, lastProbe === undefined])).toEqual([
    [3, false],
    [3, false],
    [0, true],
  ]);
});

it('a tenant has a bound of addresses, in the order of its servers', () => {
  const servers = [
    ...['a', 'b', 'c'].map((name) => ({ server: serverOf('hostile', name), count: 600 })),
    { server: serverOf('honest', 'llm'), count: 10 },
    { server: serverOf(OWN, 'big'), count: 3000 },
  ];
  const budget = new TargetBudget(isBounded);
  const kept = servers.map(({ server, count }) =>
    budget.take(server.namespace, { targets: targetsOf(server, count), ignored: 0 }),
  );
  expect(kept.map(({ length }) => length)).toEqual([600, 424, 0, 10, 3000]);
  expect(budget.ignored).toBe(776);
});

it('pools that select the same thousands of pods make no more addresses than one tenant may have', () => {
  const labels = { app: 'vllm' };
  const looks = vi.fn();
  const pods: Pod[] = Array.from({ length: 4000 }, (_, index) => ({
    metadata: {
      name: `p-${index}`,
      uid: `p-${index}`,
      get labels() {
        looks();
        return labels;
      },
    },
    status: { podIP: '10.0.0.1' },
  }));
  const pool = {
    metadata: { name: 'pool' },
    spec: { selector: { matchLabels: labels }, targetPorts: [8000, 8001, 8002].map((number) => ({ number })) },
  };
  const budget = new TargetBudget(isBounded);
  const read = (namespace: string, pools: number): number => {
    const own = budget.podsFor(namespace, pools, pods);
    const made = Array.from({ length: pools }, (_, index) => {
      const found = poolTargetsOf(serverOf(namespace, `${index}`), pool, own, budget.left(namespace));
      expect(budget.take(namespace, found)).toHaveLength(found.targets.length);
      return found.targets.length;
    });
    return made.reduce((sum, count) => sum + count, 0);
  };
  expect(read('hostile', 256)).toBe(1024);
  expect(looks).toHaveBeenCalledTimes(65_536);
  expect(budget.ignored).toBe(65_536 * 3 - 1024);
  expect(read('honest', 1)).toBe(1024);
  expect(read(OWN, 1)).toBe(12_000);
});
