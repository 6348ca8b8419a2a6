import { getPrincipal } from '../../access/principal.ts';
import { FairShares } from '../../lib/shares.ts';
import type { Connections } from './connections.ts';
import { overloaded } from '../interface/errors/busy.ts';
import type { Step } from '../interface/step.ts';

/** A tenant may have as many requests under way as connections are left for others: half of all when it is alone. */
const FACTOR = 1;

/**
 * Keeps the connection of a request whose key was accepted. Connections that are kept give way to none, so a tenant has
 * a share of them.
 * @param most connections of the replica
 */
export function keepAccepted(connections: Connections, most: number): Step {
  const shares = new FairShares(most, FACTOR);
  return (request, response, next) => {
    const { namespace } = getPrincipal(request);
    if (response.closed) return;
    if (shares.take(namespace, 1) !== 'taken') throw overloaded('requests of this tenant');
    response.once('close', () => shares.give(namespace, 1));
    connections.keep(response);
    next();
  };
}
