import { Authenticator } from '../../../src/access/authenticator.ts';
import { Tenants } from '../../../src/access/tenants.ts';
import { createdByKey } from '../../../src/resources/api-key.ts';
import { Activity } from '../../../src/access/activity.ts';
import { ceilingsReader } from '../../../src/access/ceilings.ts';
import { budgetReader } from '../../../src/budgets/counted.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { ClaimWaiter } from '../../../src/http/features/instances/claim-waiter.ts';
import { type CreateDeps, createInstance } from '../../../src/http/features/instances/create.ts';
import { PendingRemovals, runReaper } from '../../../src/http/features/instances/reaper.ts';
import { createInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { toInstanceSpec } from '../../../src/http/features/instances/to-spec.ts';
import { objectNames, requestHash } from '../../../src/http/interface/idempotency.ts';
import { DEVICE_CACHES } from '../../../src/caches/table.ts';
import { API_CACHES } from '../../../src/http/server/context.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import { OWN } from '../own.ts';
import { BerthProcess, type ProcessDeps } from './process.ts';

/** Requests that one replica lets wait for the controller at once, as the api role has it. */
const CLAIMS_AT_ONCE = 32;

export interface Asked {
  namespace: string;
  body: object;
  key?: string | undefined;
  /** Of an API key; without it the caller is the one key that every tenant has. */
  token?: string | undefined;
}

/** A replica that serves instances: the paths of the api role behind HTTP itself, and the reports of sessions. */
export class FrontProcess extends BerthProcess {
  readonly inventory: Inventory;
  readonly activity: Activity;
  readonly #deps: CreateDeps;
  readonly #authenticator: Authenticator;

  constructor(deps: ProcessDeps, id: string) {
    super(deps, { texts: true });
    const { clock, client, log } = this;
    const stores = this.caches.pick(API_CACHES);
    const devices = deps.api.servesDevices ? this.caches.pick(DEVICE_CACHES) : undefined;
    this.inventory = new Inventory({ ...stores, devices, storageClasses: this.caches.get('storageClasses') }, clock);
    const removals = new PendingRemovals();
    this.#deps = {
      gate: new ClaimGate(CLAIMS_AT_ONCE, clock),
      client,
      waiter: new ClaimWaiter(stores.instances, clock),
      idempotentName: objectNames(() => Promise.resolve(Buffer.from('a key of sessions'))),
      removals,
      log,
      offers: this.inventory,
      ceilings: ceilingsReader(stores.tenantLimits),
      budgets: budgetReader(stores.tenantLimits, clock),
      clock,
    };
    const tenants = new Tenants(stores.namespaces, { own: OWN, requireLabel: true });
    this.#authenticator = new Authenticator({ apiKeys: stores.apiKeys, tenants, clock });
    void runReaper({ client, stores, removals, clock, log }, this.watching.signal);
    this.activity = new Activity({ client, instances: stores.instances, clock, log, namespace: OWN, role: 'ssh', id });
    void this.activity.run(this.watching.signal);
  }

  /** False until it has read the keys: until then it serves nobody. */
  get knowsKeys(): boolean {
    return this.#authenticator.knowsKeys;
  }

  /** The name of the key that a token is of; undefined: it may not rent. */
  callerOf(token: string): string | undefined {
    const caller = this.#authenticator.authenticate(token);
    const isRefused =
      caller === undefined || this.#authenticator.refusal(caller, { scope: 'compute:write' }) !== undefined;
    return isRefused ? undefined : caller.name;
  }

  /** POST /instances. Rejects as the route does. */
  async rent({ namespace, body, key, token }: Asked, signal: AbortSignal = new AbortController().signal) {
    const caller = token === undefined ? 'one' : this.callerOf(token);
    if (caller === undefined) throw new Error('Invalid API key.');
    const parsed = createInstanceSchema.parse(body);
    const { spec } = toInstanceSpec(parsed);
    const idempotency = key === undefined ? undefined : { key, hash: requestHash(parsed) };
    return createInstance(this.#deps, { namespace, spec, createdBy: createdByKey(caller), idempotency, signal });
  }
}
