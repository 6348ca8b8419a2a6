import { type Request, Router } from 'express';
import { getPrincipal } from '../../../access/principal.ts';
import { requireScope } from '../../interface/auth/middleware.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { methodNotAllowed } from '../../interface/route.ts';
import { upgradeOf } from '../../interface/upgrades.ts';
import { instanceOf, type InstanceSource } from '../instances/find.ts';
import type { TerminalGateway } from './pass-on.ts';

export interface TerminalContext extends InstanceSource {
  /** Brings clients to shells in instances; undefined where no SSH gateway is known. */
  terminals?: TerminalGateway | undefined;
}

/** Programs send no Origin, and pages of other sites have no business here: their reader would type into the instance. */
function requireOwnOrigin({ headers }: Request): void {
  const { origin, host } = headers;
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)) return;
  throw new ApiError('bad_request', 'A page of another site opens no terminal. Use the dashboard, or a program.');
}

/** GET /instances/{instanceId}/terminal: a shell in the instance, as a WebSocket. */
export function terminalRouter(context: TerminalContext): Router {
  const router = Router({ caseSensitive: true });
  const path = '/:instanceId/terminal';
  router.get(path, requireScope('compute:write'), async (request, response) => {
    requireOwnOrigin(request);
    const { metadata } = await instanceOf(context, request);
    const { terminals } = context;
    if (terminals === undefined) {
      throw new ApiError('terminal_unavailable', 'This installation has no terminals over HTTP. Use SSH.');
    }
    const { namespace: tenant } = getPrincipal(request);
    const upgrade = upgradeOf(request);
    const address = request.ip ?? '';
    await terminals.pass({ request, response, upgrade, tenant, instance: metadata.name, address });
  });
  router.all(path, methodNotAllowed(['get']));
  return router;
}
