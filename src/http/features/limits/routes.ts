import type { CeilingsOf } from '../../../access/ceilings.ts';
import { asCreatedBy } from '../../../access/principal.ts';
import type { Stores } from '../../../caches/caches.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import { keyOf } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TENANT_LIMIT_NAME } from '../../../resources/tenants/tenant-limit.ts';
import type { Webhook } from '../../../resources/webhook.ts';
import { route } from '../../interface/route.ts';
import { sendJson } from '../../interface/send.ts';
import { diskGbOf, toBudgetRecord, toLimitsRecord } from './record.ts';
import { type LimitsRecord, limitsSchema } from './schema.ts';

export interface LimitsContext {
  clock: Clock;
  ceilings: CeilingsOf;
  offers: Inventory;
  stores: Stores<'tenantLimits' | 'instances' | 'sshKeys' | 'templates' | 'apiKeys' | 'registries'>;
  /** Undefined where webhooks are off. */
  webhooks?: { store: ReadStore<Webhook> } | undefined;
}

export const readLimitsRoute = route({
  method: 'get',
  path: '/limits',
  id: 'getLimits',
  tag: 'Limits',
  scope: 'compute:read',
  summary: 'Read your ceilings, and what is used of them',
  success: { status: 200, schema: limitsSchema, description: 'The ceilings of the tenant.' },
  handle({ stores, offers, ceilings, clock, webhooks }: LimitsContext, { response, caller }) {
    const { namespace, keyId, scopes } = caller;
    const now = clock.now();
    const [key] = stores.apiKeys.by('uid', keyId);
    const limit = stores.tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
    const { budget } = ceilings(namespace);
    const instances = stores.instances.by('namespace', namespace);
    const used = {
      instances: instances.length,
      sshKeys: stores.sshKeys.by('namespace', namespace).length,
      templates: stores.templates.by('namespace', namespace).length,
      apiKeys: stores.apiKeys.by('namespace', namespace).length,
      registries: stores.registries.by('namespace', namespace).length,
      webhooks: webhooks?.store.by('namespace', namespace).length ?? 0,
      gpus: offers.heldBy(namespace),
      diskGb: instances.reduce((sum, instance) => sum + diskGbOf(instance), 0),
      keptDisks: limit?.status?.keptDisks ?? { count: 0, gb: 0 },
    };
    const limits = toLimitsRecord(ceilings(namespace), limit?.spec.policies ?? [], used, {
      budget: toBudgetRecord({ budget, status: limit?.status?.budget }, now),
      key_budget: toBudgetRecord({ budget: key?.spec.limits?.budget, status: key?.status?.budget }, now),
    });
    const who = { id: asCreatedBy(caller), name: key?.spec.displayName || null, scopes: [...scopes] };
    const record: LimitsRecord = { ...limits, namespace, caller: who };
    sendJson(response, JSON.stringify(record));
  },
});
