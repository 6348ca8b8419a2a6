import type { ModelRouterDeps } from '../deps.ts';
import { BROKE_OFF, type StreamTranslator } from '../dialects/index.ts';
import type { Model } from '../balance/model.ts';
import type { Endpoint } from '../endpoint.ts';
import { tryMember, unable, type SendDeps, type Serving } from './send.ts';
import { requestToGoOn } from './upstream-request.ts';

const MAX_CONTINUATIONS = 2;

export type GoOnDeps = SendDeps & Pick<ModelRouterDeps, 'catalog'>;

/**
 * Has other servers of the model go on with a stream that broke off, where that is exact: twice at most, and no further
 * behind one that crashed where it began, because the answer may be what breaks them. It is no retry: what is left to
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
  // Its name may be that of others by now, with another price.
  const servers = new Map(serving.model.members.map(({ endpoint, upstreamModel }) => [endpoint.server, upstreamModel]));
  const others = ({ members }: Model): Endpoint[] =>
    members.flatMap(({ endpoint, upstreamModel }) =>
      servers.get(endpoint.server) === upstreamModel ? [] : [endpoint],
    );
  let brokeAt = -1;
  while (served.continuations < MAX_CONTINUATIONS && client.over === undefined) {
    const { told } = answer;
    if (told?.text.length === brokeAt) break;
    // By now its servers may be others, and the tenant may call it no more.
    const model = deps.catalog().find(namespace, serving.model.name);
    const member = model?.pick(undefined, [...tried, ...unable(model, call), ...others(model)], namespace);
    if (told === undefined || member === undefined) break;
    tried.push(member.endpoint);
    const further = requestToGoOn(call, member, { told, joinsSystem: served.joinsSystem });
    if (further === undefined) continue;
    const { crashes } = served;
    served.continuations += 1;
    client.continuations = served.continuations;
    answer.goOn(further.goingOn);
    member.endpoint.enter(call);
    const failure = await tryMember(serving, member, { request: further.request, answer });
    if (failure === undefined) return;
    // One that refused, or could not be reached, has not had the answer.
    if (served.crashes > crashes) brokeAt = told.text.length;
  }
  served.outcome = client.over === undefined ? 'interrupted' : client.gone ? 'client_closed' : 'cut';
  client.endStream(answer.fail(client.cutBy ?? BROKE_OFF));
}
