import type { Principal } from '../../access/principal.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { BROKE_OFF, type StreamTranslator } from '../dialects/index.ts';
import type { Endpoint } from '../endpoint.ts';
import type { RetryBudgets } from '../limits/retry-budgets.ts';
import { tryMember, type SendDeps, type Serving } from './send.ts';
import { requestToGoOn } from './upstream-request.ts';

const MAX_CONTINUATIONS = 2;

export interface GoOnDeps extends SendDeps, Pick<ModelRouterDeps, 'catalog'> {
  retries: RetryBudgets;
}

/**
 * Has other servers of the model go on with a stream that broke off, twice at most, where that is exact. Tells the client
 * when none can.
 *
 * @param tried endpoints that failed this call
 */
export async function goOn(
  deps: GoOnDeps,
  serving: Serving,
  answer: StreamTranslator,
  tried: Endpoint[],
): Promise<void> {
  const { call, client, served } = serving;
  const { namespace } = call.principal;
  while (served.continuations < MAX_CONTINUATIONS && client.over === undefined) {
    const { told } = answer;
    // Its servers may be others by now.
    const model = latest(deps, call.principal, serving.model);
    const member = model.pick(undefined, tried, namespace);
    if (told === undefined || member === undefined) break;
    tried.push(member.endpoint);
    const further = requestToGoOn(call, member, told);
    if (further === undefined) continue;
    if (!deps.retries.of(namespace, model.name).spend()) break;
    served.continuations += 1;
    client.continuations = served.continuations;
    answer.goOn(further.goingOn);
    member.endpoint.inFlight += 1;
    const failure = await tryMember(serving, member, { request: further.request, answer });
    if (failure === undefined) return;
  }
  served.outcome = client.over === undefined ? 'interrupted' : client.gone ? 'client_closed' : 'cut';
  client.endStream(answer.fail(client.cutBy ?? BROKE_OFF));
}

function latest({ catalog }: GoOnDeps, { namespace }: Principal, model: Model): Model {
  return catalog().find(namespace, model.name) ?? model;
}
