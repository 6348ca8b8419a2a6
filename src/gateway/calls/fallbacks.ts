import { mayUseModel } from '../../access/principal.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError, refuseOfServers } from '../dialects/index.ts';
import type { FallbackReason } from '../../resources/model-servers/names.ts';
import { mayFetch, serves } from '../find-model.ts';
import type { Call } from './call.ts';

const NONE: readonly Model[] = [];

/**
 * The models to which a call may go that its own cannot take, in order: those that the Service names for this reason,
 * the key may use, the budgets allow, and have a ready server that takes the call. Where they would go on to is not asked, so no call goes
 * in circles.
 */
export function fallbacksOf(
  { catalog, holds }: Pick<ModelRouterDeps, 'catalog' | 'holds'>,
  call: Call,
  model: Model,
  why: FallbackReason,
): readonly Model[] {
  const { fallback } = model;
  if (fallback === undefined || !fallback.on.includes(why)) return NONE;
  const { principal } = call;
  return fallback.models.flatMap((name) => {
    const target = mayUseModel(principal, name) ? catalog().find(principal.namespace, name) : undefined;
    if (target === undefined || target.servers === model.servers || !takes(target, call, model)) return [];
    return holds.spent(principal, target.prices) === undefined ? [target] : [];
  });
}

function takes({ members, isShared }: Model, call: Call, asked: Model): boolean {
  if (isShared && !asked.isShared && !mayShare(call)) return false;
  return members.some(
    ({ endpoint }) =>
      endpoint.available && serves(endpoint.probe, call.plain?.route) && mayFetch(endpoint.mediaHosts, call.media),
  );
}

/** Whether a call to a server of its own tenant may go to one that tenants share. */
function mayShare({ body, plain, history, references }: Call): boolean {
  if (plain?.form !== undefined) return false;
  try {
    refuseOfServers(body, [...history, ...[...references.values()].flat()]);
    return true;
  } catch (error) {
    if (error instanceof DialectError) return false;
    throw error;
  }
}
