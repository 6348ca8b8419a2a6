import { createLastUsed } from './auth/last-used.ts';
import type { ApiContext, ApiDeps } from './context.ts';
import { createInstanceEvents } from './events/instance-events.ts';
import { createOfferEvents } from './events/offer-events.ts';
import { createStreamRegistry } from './events/stream-registry.ts';
import { createAbandoned } from './instances/abandoned.ts';
import { createClaimGate } from './instances/claim-gate.ts';
import { createClaimWaiter } from './instances/claim-waiter.ts';
import { createTemplateFinder } from './instances/templates.ts';
import { createInstancePresenter } from './records/instance-presenter.ts';

/** Creates of one replica that wait for the controller at the same time. */
const CLAIMS_AT_ONCE = 32;

/** The parts of the API, made once per process. */
export function createContext(deps: ApiDeps): ApiContext {
  const { client, clock, log, stores } = deps;
  const templates = createTemplateFinder(stores.templates);
  const instances = createInstancePresenter({ ...deps, nodes: stores.nodes, templates });
  return {
    ...deps,
    lastUsed: createLastUsed({ client, apiKeys: stores.apiKeys, clock, log }),
    waiter: createClaimWaiter(stores.instances, clock),
    gate: createClaimGate(CLAIMS_AT_ONCE, clock),
    abandoned: createAbandoned(),
    templates,
    instances,
    streams: createStreamRegistry(deps),
    instanceEvents: createInstanceEvents(stores.instances, instances),
    offerEvents: createOfferEvents(deps),
  };
}
