import { API_KEYS, hashToken } from '../../../src/resources/api-key.ts';
import { TENANT_POLICIES, tenantPolicySpecSchema } from '../../../src/resources/tenants/tenant-policy.ts';
import { ENDED_LABEL, USAGE_RECORDS, type UsageRecord } from '../../../src/resources/usage-record.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import type { FrontProcess } from '../berth/front-process.ts';
import type { World } from '../world.ts';
import type { Act } from './acts.ts';
import type { Told } from './perform.ts';

type Rent = Extract<Act, { do: 'rent' }>;

function nameOf(key: number): string {
  return `key-${key}`;
}

function budgetOf(usd: string): { costs: { currency: string; max: string }[] } {
  return { costs: [{ currency: 'USD', max: usd }] };
}

/** Makes and ends API keys, sets budgets, and corrects, deletes and copies bills: tenants and operators with kubectl. */
export class Treasurer {
  readonly #world: World;
  readonly #toldOf: (of: number) => Told | undefined;
  /** Of the last key of a name, by tenant and name. */
  readonly #tokens = new Map<string, string>();

  /** `toldOf`: what is known of the instance that an act rented. */
  constructor(world: World, toldOf: (of: number) => Told | undefined) {
    this.#world = world;
    this.#toldOf = toldOf;
  }

  /** Whether the act is one of its own. Throws Failure where the API server refuses it. */
  does(act: Act): boolean {
    switch (act.do) {
      case 'makeKey':
        this.#makeKey(act);
        return true;
      case 'budgetKey':
        this.#changeKey(act, { limits: act.usd === undefined ? null : { budget: budgetOf(act.usd) } });
        return true;
      case 'revokeKey':
        this.#changeKey(act, { revoked: true });
        return true;
      case 'deleteKey':
        this.#world.cluster.api.delete(API_KEYS, { namespace: `tenant-${act.tenant}`, name: nameOf(act.key) });
        return true;
      case 'budget':
        this.#setBudget(act);
        return true;
      case 'correct':
        this.#correct(act);
        return true;
      case 'deleteRecords':
        this.#deleteRecords(act);
        return true;
      case 'export':
        this.#world.exportUsage(act.all, act.killedAfterMs);
        return true;
      default:
        return false;
    }
  }

  /** The token that somebody rents with; undefined: that of the key that is always there. The judge looks who is let in. */
  tokenFor({ tenant, key }: Rent, front: FrontProcess): string | undefined {
    if (key === undefined) return undefined;
    const owner = `tenant-${tenant}/${nameOf(key)}`;
    const token = this.#tokens.get(owner) ?? 'none';
    if (!front.knowsKeys) return token;
    const { judge } = this.#world;
    const [caller, may] = [front.callerOf(token), judge.mayCall(hashToken(token))];
    if (may === false && caller !== undefined) judge.blame(10, `${owner} is let in, and was revoked or deleted`);
    if (may === true && caller !== nameOf(key)) judge.blame(8, `${owner} is refused, and nobody revoked it`);
    return token;
  }

  #makeKey({ id, tenant, key, usd }: Extract<Act, { do: 'makeKey' | 'budgetKey' }>): void {
    const [namespace, name] = [`tenant-${tenant}`, nameOf(key)];
    const token = `the token of act ${id}`;
    const limits = usd === undefined ? {} : { limits: { budget: budgetOf(usd) } };
    const spec = { hash: hashToken(token), displayName: name, ...limits };
    this.#world.cluster.api.create(API_KEYS, { metadata: { namespace, name }, spec } as KubeObject);
    this.#tokens.set(`${namespace}/${name}`, token);
  }

  #changeKey({ tenant, key }: { tenant: number; key: number }, spec: object): void {
    this.#world.cluster.api.merge(API_KEYS, { namespace: `tenant-${tenant}`, name: nameOf(key) }, { spec });
  }

  /** What a tenant may spend in a month, in a policy of its own. */
  #setBudget({ tenant: of, usd }: Extract<Act, { do: 'budget' }>): void {
    const { api } = this.#world.cluster;
    const metadata = { name: `budget-tenant-${of}` };
    const isThere = api.find(TENANT_POLICIES, metadata) !== undefined;
    if (usd === undefined) {
      if (isThere) api.delete(TENANT_POLICIES, metadata);
      return;
    }
    const namespaceLabels = { 'kubernetes.io/metadata.name': `tenant-${of}` };
    const spec = tenantPolicySpecSchema.parse({ namespaceLabels, budget: budgetOf(usd) });
    if (isThere) api.merge(TENANT_POLICIES, metadata, { spec });
    else api.create(TENANT_POLICIES, { metadata, spec } as KubeObject);
  }

  /** An operator corrects the bill of an instance, for now. */
  #correct({ id, of, type, usd }: Extract<Act, { do: 'correct' }>): void {
    const told = this.#toldOf(of);
    if (told === undefined) return;
    const endedAt = new Date(this.#world.time.wall).toISOString();
    const record: UsageRecord = {
      metadata: {
        name: `correction-${id}`,
        namespace: told.ref.namespace,
        labels: { [ENDED_LABEL]: endedAt.slice(0, 7) },
      },
      spec: {
        adjustment: { type, reason: 'The node was slow.' },
        instance: told.ref.name,
        instanceUid: '',
        product: '',
        gpuCount: 0,
        gpuSeconds: 0,
        cost: usd,
        currency: 'USD',
        endedAt,
      },
    };
    this.#world.cluster.api.create(USAGE_RECORDS, record);
  }

  /** An operator deletes what is recorded of an instance, also while it is there. */
  #deleteRecords({ of }: Extract<Act, { do: 'deleteRecords' }>): void {
    const { api } = this.#world.cluster;
    const told = this.#toldOf(of);
    if (told === undefined) return;
    for (const { metadata, spec } of api.list<UsageRecord>(USAGE_RECORDS, told.ref.namespace))
      if (spec.adjustment === undefined && spec.instance === told.ref.name) api.delete(USAGE_RECORDS, metadata);
  }
}
