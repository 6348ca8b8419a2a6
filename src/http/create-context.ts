import type { ApiContext, ApiDeps } from './context.ts';
import { createAuthenticator } from './auth/authenticator.ts';
import { createLastUsed } from './auth/last-used.ts';
import { createClaimWaiter } from './instances/claim-waiter.ts';
import { createTemplateFinder } from './instances/templates.ts';
import { createInstancePresenter } from './records/instance-presenter.ts';

/** The parts of the API, made once per process. */
export function createContext(deps: ApiDeps): ApiContext {
  const { client, clock, log, stores } = deps;
  const templates = createTemplateFinder(stores.templates);
  return {
    ...deps,
    authenticator: createAuthenticator({ apiKeys: stores.apiKeys, clock }),
    lastUsed: createLastUsed({ client, apiKeys: stores.apiKeys, clock, log }),
    waiter: createClaimWaiter(stores.instances, clock),
    templates,
    instances: createInstancePresenter({ ...deps, nodes: stores.nodes, templates }),
  };
}
