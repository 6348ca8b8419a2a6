import { describe, expect, it } from 'vitest';
import { buildCatalog, ModelCache } from '../../../src/gateway/discovery/catalog.ts';
import type { ServerState } from '../../../src/gateway/discovery/names.ts';
import type { Probe, ServerSpec, Target } from '../../../src/gateway/discovery/types.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import { probeOf } from '../../support/probe.ts';

const OWN = 'berth-system';
const clock = fakeClock();

function probeWith(...models: string[]): Probe {
  return probeOf({ models: models.map((id) => ({ id, contextLength: 4096 })) });
}

function state(
  server: Partial<ServerSpec>,
  probe: Probe | undefined,
  { pods = 1, available = true, origin }: { pods?: number; available?: boolean; origin?: string } = {},
): ServerState {
  const spec: ServerSpec = {
    namespace: OWN,
    name: 'llm',
    uid: `${server.namespace ?? OWN}/${server.name ?? 'llm'}`,
    ...(server.namespace === undefined || server.namespace === OWN ? { sharedRank: -1 } : {}),
    aliases: [],
    problems: [],
    ...server,
  };
  const endpoints = Array.from({ length: pods }, (_, index) => {
    const key = `${spec.uid}/${index}`;
    const target: Target = {
      key,
      place: key,
      origin: origin ?? `http://${key}`,
      restarts: '',
      server: spec,
      available,
    };
    const endpoint = new Endpoint(target, clock);
    endpoint.update(target, probe);
    return endpoint;
  });
  return { server: spec, endpoints, lastProbe: probe };
}

function catalogOf(...states: ServerState[]) {
  return buildCatalog(states, new ModelCache(clock));
}

describe('catalog', () => {
  it('joins the endpoints of all servers of a namespace under the model name', () => {
    const catalog = catalogOf(
      state({ name: 'a' }, probeWith('tiny', 'big'), { pods: 2 }),
      state({ name: 'b' }, probeWith('tiny')),
    );
    expect(catalog.find('tenant', 'tiny')?.readyCount).toBe(3);
    expect(catalog.find('tenant', 'big')?.readyCount).toBe(2);
    expect(catalog.list('tenant').map(({ name }) => name)).toEqual(['big', 'tiny']);
  });

  it('never shows a tenant the servers of another', () => {
    const catalog = catalogOf(
      state({ namespace: 'a' }, probeWith('mine')),
      state({ namespace: 'b' }, probeWith('theirs')),
    );
    expect(catalog.find('a', 'mine')).toBeDefined();
    expect(catalog.find('a', 'theirs')).toBeUndefined();
    expect(catalog.list('a').map(({ name }) => name)).toEqual(['mine']);
    expect(catalog.list('c')).toEqual([]);
  });

  it('serves a name from one namespace: the caller’s own, else Berth’s, else the oldest that may share', () => {
    const catalog = catalogOf(
      state({ namespace: 'late', sharedRank: 20 }, probeWith('tiny', 'other')),
      state({ namespace: 'early', sharedRank: 10 }, probeWith('tiny', 'other')),
      state({ namespace: OWN }, probeWith('tiny')),
      state({ namespace: 'a' }, probeWith('tiny')),
    );
    const namespaces = (caller: string, model: string) =>
      catalog.find(caller, model)?.members.map(({ endpoint }) => endpoint.key.split('/')[0]);
    expect(namespaces('a', 'tiny')).toEqual(['a']);
    expect(namespaces('b', 'tiny')).toEqual([OWN]);
    expect(namespaces('b', 'other')).toEqual(['early']);
    expect(namespaces('late', 'tiny')).toEqual(['late']);
  });

  it('knows aliases, which hide a model of the same name, and drops those of models that are not served', () => {
    const aliases = [{ alias: 'fast' }, { alias: 'big', model: 'tiny' }, { alias: 'gone', model: 'missing' }];
    const catalog = catalogOf(state({ aliases }, probeWith('tiny', 'big')));
    const upstream = (model: string) => catalog.find('t', model)?.members.map(({ upstreamModel }) => upstreamModel);
    expect(upstream('fast')).toEqual(['tiny']);
    expect(upstream('big')).toEqual(['tiny']);
    expect(upstream('gone')).toBeUndefined();
  });

  it('keeps listing a model without a ready endpoint, and an alias before any probe', () => {
    const catalog = catalogOf(
      state({ name: 'a' }, probeWith('tiny'), { available: false }),
      state({ name: 'b', aliases: [{ alias: 'soon' }] }, undefined),
    );
    expect(catalog.find('t', 'tiny')?.readyCount).toBe(0);
    expect(catalog.find('t', 'soon')?.readyCount).toBe(0);
  });

  it('counts a pod that two Services select once', () => {
    const origin = 'http://10.0.0.5:8000';
    const aliases = [{ alias: 'fast' }];
    const catalog = catalogOf(
      state({ name: 'a' }, probeWith('tiny'), { origin }),
      state({ name: 'b', aliases }, probeWith('tiny'), { origin }),
    );
    expect(catalog.find('t', 'tiny')?.readyCount).toBe(1);
    expect(catalog.find('t', 'fast')?.members.map(({ endpoint }) => endpoint.key.split('/')[1])).toEqual(['b']);
  });

  it('serves a name by one model alone: that of the oldest Service which has it', () => {
    const alias = (model: string) => [{ alias: 'fast', model }];
    const old = state({ name: 'z', createdAt: 1, aliases: alias('small') }, probeWith('small'));
    const late = state({ name: 'a', createdAt: 2, aliases: alias('large') }, probeWith('large'));
    const same = state({ name: 'b', createdAt: 3, aliases: alias('small') }, probeWith('small'));
    const catalog = catalogOf(late, same, old);
    const members = catalog.find('t', 'fast')?.members ?? [];
    expect(members.map(({ upstreamModel }) => upstreamModel)).toEqual(['small', 'small']);
    expect(catalog.find('t', 'large')?.readyCount).toBe(1);
    expect(catalog.conflicts.map(({ server, name, served }) => [server.name, name, served])).toEqual([
      ['a', 'fast', 'small'],
    ]);
    // The name goes with its Service, and not before.
    const gone = state({ name: 'z', createdAt: 1, aliases: alias('small') }, probeWith('small'), { pods: 0 });
    expect(catalogOf(late, gone).find('t', 'fast')?.readyCount).toBe(0);
    expect(catalogOf(late).find('t', 'fast')?.members[0]?.upstreamModel).toBe('large');
  });

  it('serves an alias of the first model by what most pods have, while they change', () => {
    const server = { aliases: [{ alias: 'fast' }], uid: 'svc' };
    const before = state({ ...server }, probeWith('v1'), { pods: 2 });
    const after = state({ ...server }, probeWith('v2'), { pods: 1 });
    const [next] = after.endpoints;
    const both = { ...before, endpoints: [...before.endpoints, ...(next === undefined ? [] : [next])] };
    const catalog = catalogOf(both);
    expect(catalog.find('t', 'fast')?.members.map(({ upstreamModel }) => upstreamModel)).toEqual(['v1', 'v1']);
    expect(catalog.find('t', 'v2')?.readyCount).toBe(1);
  });

  it('keeps a model while its members stay', () => {
    const cache = new ModelCache(clock);
    const states = [state({}, probeWith('tiny'), { pods: 2 })];
    const first = buildCatalog(states, cache).find('t', 'tiny');
    expect(buildCatalog(states, cache).find('t', 'tiny')).toBe(first);
    expect(buildCatalog([state({}, probeWith('tiny'), { pods: 2 })], cache).find('t', 'tiny')).not.toBe(first);
  });
});
