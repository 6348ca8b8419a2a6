import { LastUsed } from './auth/last-used.ts';
import type { ApiContext, ApiDeps } from './context.ts';
import { InstanceEvents } from './events/instance-events.ts';
import { OfferEvents } from './events/offer-events.ts';
import { StreamRegistry } from './events/stream-registry.ts';
import { ClaimGate } from './instances/claim-gate.ts';
import { ClaimWaiter } from './instances/claim-waiter.ts';
import { PendingRemovals } from './instances/reaper.ts';
import { TemplateFinder } from './instances/templates.ts';
import { InstancePresenter } from './records/instance-presenter.ts';

/** Requests of one replica that wait for the controller's decision at the same time. */
const CLAIMS_AT_ONCE = 32;

/** The parts of the API, made once per process. */
export function createContext(deps: ApiDeps): ApiContext {
  const { clock, stores } = deps;
  const templates = new TemplateFinder(stores.templates);
  const instances = new InstancePresenter({ ...deps, nodes: stores.nodes, templates });
  return {
    ...deps,
    lastUsed: new LastUsed({ ...deps, apiKeys: stores.apiKeys }),
    waiter: new ClaimWaiter(stores.instances, clock),
    gate: new ClaimGate(CLAIMS_AT_ONCE, clock),
    removals: new PendingRemovals(),
    templates,
    instances,
    streams: new StreamRegistry(deps),
    instanceEvents: new InstanceEvents(stores.instances, instances),
    offerEvents: new OfferEvents(deps),
  };
}
