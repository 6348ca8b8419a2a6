import { beforeEach, describe, expect, it } from 'vitest';
import { DRAIN_MS, LOOK_MS } from '../../../src/controllers/model-servers/decide.ts';
import { ModelServers } from '../../../src/controllers/model-servers/controller.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import {
  ConflictError,
  ForbiddenError,
  type KubeError,
  NotFoundError,
  TransportError,
} from '../../../src/kube/errors.ts';
import { keyOf, type KubeObject, type Lease, type ObjectRef, type Service } from '../../../src/kube/types.ts';
import { isAsleep, LEASE_PROBLEM, LEASE_SERVICE, modelLeaseName } from '../../../src/resources/model-servers/lease.ts';
import type { Result } from '../../../src/runtime/controller.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { quiet } from '../../support/model-gateway.ts';

const IDLE_MS = 300_000;
const OWN = 'berth-system';
const fields = (status: number, reason: string) => ({ message: reason, status, reason });

/** Leases and the scale of workloads, with the conditions on versions that the API server keeps. */
class FakeApi {
  readonly leases = new FakeStore<Lease>();
  readonly scales = new Map<string, { replicas: number; version: number }>();
  /** Every scale that was written: path and replicas. */
  readonly scaled: [string, number][] = [];
  /** What every call for a scale meets. */
  refusal: KubeError | undefined;
  #version = 0;

  put(lease: Lease): Lease {
    this.#version += 1;
    const metadata = { ...lease.metadata, resourceVersion: String(this.#version) };
    this.leases.put({ ...lease, metadata });
    return { ...lease, metadata };
  }

  get client(): KubeClient {
    const client: Pick<KubeClient, 'get' | 'create' | 'patch' | 'delete' | 'raw'> = {
      get: (_type, ref) => Promise.resolve(this.#find(ref) as never),
      create: (_type, object) => Promise.resolve(this.put(object as Lease) as never),
      delete: (_type, ref) => {
        this.leases.remove(keyOf(ref));
        return Promise.resolve();
      },
      raw: (_method, path) => {
        if (this.refusal !== undefined) return Promise.reject(this.refusal);
        const scale = this.scales.get(path.split('/').at(-2) ?? '');
        if (scale === undefined) return Promise.reject(new NotFoundError(fields(404, 'NotFound')));
        const found = { metadata: { name: 'x', resourceVersion: String(scale.version) }, spec: scale };
        return Promise.resolve(found as never);
      },
      patch: (type, ref, body) =>
        Promise.resolve(
          type.kind === 'Scale' ? this.#scale(ref, body as KubeObject) : this.#merge(ref, body as Lease),
        ) as never,
    };
    return client as KubeClient;
  }

  #find(ref: ObjectRef): Lease {
    const lease = this.leases.get(keyOf(ref));
    if (lease === undefined) throw new NotFoundError(fields(404, 'NotFound'));
    return lease;
  }

  #merge(ref: ObjectRef, { metadata }: Lease): Lease {
    const lease = this.#find(ref);
    const { resourceVersion, annotations: changes = {} } = metadata;
    if (resourceVersion !== undefined && resourceVersion !== lease.metadata.resourceVersion)
      throw new ConflictError(fields(409, 'Conflict'));
    const annotations = { ...lease.metadata.annotations };
    for (const [name, value] of Object.entries(changes as Record<string, string | null>)) {
      if (value === null) delete annotations[name];
      else annotations[name] = value;
    }
    return this.put({ ...lease, metadata: { ...lease.metadata, annotations } });
  }

  #scale({ name }: ObjectRef, body: KubeObject & { spec?: { replicas: number } }): KubeObject {
    if (this.refusal !== undefined) throw this.refusal;
    const scale = this.scales.get(name);
    const replicas = body.spec?.replicas ?? 0;
    if (scale === undefined || String(scale.version) !== body.metadata.resourceVersion)
      throw new ConflictError(fields(409, 'Conflict'));
    this.scales.set(name, { replicas, version: scale.version + 1 });
    this.scaled.push([name, replicas]);
    return body;
  }
}

function service(name: string, target = 'deployments.apps/llm', namespace = 'llms'): Service {
  const annotations = { 'berth.dev/scale-target': target, 'berth.dev/scale-idle-seconds': String(IDLE_MS / 1000) };
  return { metadata: { name, namespace, uid: `uid-${name}`, annotations } };
}

describe('the controller of model servers', () => {
  let api: FakeApi;
  let clock: ReturnType<typeof fakeClock>;
  let services: FakeStore<Service>;
  let servers: ModelServers;
  let renewals = 0;

  function lead(): ModelServers {
    const fence = new Fence(clock, quiet);
    const { client, leases } = api;
    return new ModelServers({ client, services, leases, namespaces: ['llms'], namespace: OWN, fence, clock });
  }

  beforeEach(() => {
    api = new FakeApi();
    clock = fakeClock();
    services = new FakeStore();
    servers = lead();
    services.put(service('llm'));
    api.scales.set('llm', { replicas: 1, version: 1 });
  });

  function leaseOf(name = 'llm'): Lease | undefined {
    return api.leases.get(`${OWN}/${modelLeaseName(`uid-${name}`)}`);
  }

  function renew(name = 'llm'): void {
    const lease = leaseOf(name);
    if (lease === undefined) throw new Error('There is no Lease.');
    renewals += 1;
    api.put({ ...lease, spec: { renewTime: `r${renewals}` } });
  }

  /** Looks once, and again as long as it is to look at once. */
  async function look(name = 'llm'): Promise<Result> {
    const context = { signal: new AbortController().signal, log: quiet };
    let result = await servers.reconcile(`llms/${name}`, context);
    for (let round = 0; result === undefined || result.requeueAfterMs === 0; round += 1) {
      if (round === 5 || services.get(`llms/${name}`) === undefined) break;
      result = await servers.reconcile(`llms/${name}`, context);
    }
    return result;
  }

  async function sleep(): Promise<void> {
    await look();
    await clock.advance(IDLE_MS);
    await look();
    await clock.advance(DRAIN_MS);
    await look();
    expect(api.scaled).toEqual([['llm', 0]]);
  }

  it('lets a workload that nobody calls go to zero, and brings it back after a renewal', async () => {
    await sleep();
    expect(leaseOf()?.metadata.annotations).toMatchObject({ [LEASE_SERVICE]: 'llms/llm' });
    await clock.advance(10 * IDLE_MS);
    expect(await look()).toEqual({ requeueAfterMs: LOOK_MS });
    renew();
    await look();
    renew();
    await look();
    expect(api.scaled).toEqual([
      ['llm', 0],
      ['llm', 1],
    ]);
  });

  it('does not go to zero when a replica of the gateway renews after the mark', async () => {
    await look();
    await clock.advance(IDLE_MS);
    expect(await look()).toEqual({ requeueAfterMs: DRAIN_MS });
    expect(isAsleep(leaseOf() as Lease)).toBe(true);
    renew();
    await clock.advance(DRAIN_MS);
    expect(await look()).toEqual({ requeueAfterMs: LOOK_MS });
    expect(api.scaled).toEqual([]);
  });

  it('begins the idle time anew when the API server was away after the mark', async () => {
    await look();
    await clock.advance(IDLE_MS);
    await look();
    api.refusal = new TransportError(fields(0, 'ECONNREFUSED'));
    await clock.advance(DRAIN_MS);
    await expect(look()).rejects.toThrow('ECONNREFUSED');
    api.refusal = undefined;
    await look();
    await clock.advance(DRAIN_MS);
    await look();
    expect(api.scaled).toEqual([]);
    await clock.advance(IDLE_MS);
    await look();
    await clock.advance(DRAIN_MS);
    await look();
    expect(api.scaled).toEqual([['llm', 0]]);
  });

  it('begins the idle time anew when another replica leads', async () => {
    await look();
    await clock.advance(IDLE_MS);
    await look();
    servers = lead();
    await clock.advance(DRAIN_MS);
    await look();
    expect(isAsleep(leaseOf() as Lease)).toBe(false);
    await clock.advance(DRAIN_MS);
    await look();
    expect(api.scaled).toEqual([]);
  });

  it('keeps a workload up while another Service in front of it is called', async () => {
    services.put(service('alias'));
    await look();
    await look('alias');
    await clock.advance(IDLE_MS);
    renew('alias');
    await look('alias');
    await look();
    await clock.advance(DRAIN_MS);
    await look();
    expect(api.scaled).toEqual([]);
    await clock.advance(IDLE_MS);
    await look('alias');
    await clock.advance(DRAIN_MS);
    await look('alias');
    expect(api.scaled).toEqual([['llm', 0]]);
  });

  it.each([
    [new NotFoundError(fields(404, 'NotFound')), "deployments.apps 'llm', which does not exist"],
    [new ForbiddenError(fields(403, 'Forbidden')), 'The operator can allow it in models.scaleFromZero'],
  ])('says to the gateway that it cannot scale, until it can: %s', async (error, words) => {
    api.refusal = error;
    expect(await look()).toEqual({ requeueAfterMs: LOOK_MS });
    expect(leaseOf()?.metadata.annotations?.[LEASE_PROBLEM]).toContain(words);
    api.refusal = undefined;
    await look();
    expect(leaseOf()?.metadata.annotations).not.toHaveProperty([LEASE_PROBLEM]);
  });

  it('follows 200 Services of a namespace', async () => {
    const names = Array.from({ length: 201 }, (_, index) => `llm-${index}`);
    for (const name of names) services.put(service(name));
    for (const name of names) await look(name);
    expect(api.leases.size).toBe(200);
    expect(leaseOf('llm-200')).toBeUndefined();
  });

  it('scales nothing in a namespace that the operator did not name, and keeps no Lease of a Service that is gone', async () => {
    services.put(service('theirs', 'deployments.apps/llm', 'tenant-b'));
    await servers.reconcile('tenant-b/theirs', { signal: new AbortController().signal, log: quiet });
    expect(api.leases.size).toBe(0);
    await look();
    expect(api.leases.size).toBe(1);
    services.remove('llms/llm');
    await look();
    expect(api.leases.size).toBe(0);
  });
});
