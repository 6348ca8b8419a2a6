import { expect, it } from 'vitest';
import { buildCatalog, ModelCache } from '../../../src/gateway/discovery/catalog.ts';
import type { ServerState } from '../../../src/gateway/discovery/names.ts';
import { boundNames, boundTargets } from '../../../src/gateway/discovery/tenant-bounds.ts';
import type { ServerSpec, Target } from '../../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
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
  ].map(({ server, count }) => ({ server, targets: targetsOf(server, count) }));
  expect(boundTargets(servers, isBounded).map(({ targets }) => targets.length)).toEqual([600, 424, 0, 10, 3000]);
});
