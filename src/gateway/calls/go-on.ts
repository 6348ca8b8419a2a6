import type { ModelRouterDeps } from '../deps.ts';
import { BROKE_OFF, type StreamTranslator } from '../dialects/index.ts';
import type { Endpoint } from '../endpoint.ts';
import { tryMember, unable, type SendDeps, type Serving } from './send.ts';
import { requestToGoOn } from './upstream-request.ts';

const MAX_CONTINUATIONS = 2;

export type GoOnDeps = SendDeps & Pick<ModelRouterDeps, 'catalog'>;

/**
 * Has other servers of the model go on with a stream that broke off, where that is exact: twice at most, and no further
 * behind one that broke off where it began, because the answer may be what breaks them. It is no retry: what is left to
 * write is written once. Tells the client when none can.
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
  let begunAt = -1;
  while (served.continuations < MAX_CONTINUATIONS && client.over === undefined) {
    const { told } = answer;
    if (told?.text.length === begunAt) break;
    // By now its servers may be others, and the tenant may call it no more.
    const model = deps.catalog().find(namespace, serving.model.name);
    const member = model?.pick(undefined, [...tried, ...unable(model, call)], namespace);
    if (told === undefined || member === undefined) break;
    tried.push(member.endpoint);
    const further = requestToGoOn(call, member, told);
    if (further === undefined) continue;
    begunAt = told.text.length;
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
