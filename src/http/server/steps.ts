import { takeProtocolToken } from '../features/terminal/token-protocol.ts';
import { authenticate, requireTenant } from '../interface/auth/middleware.ts';
import { acceptPeople } from '../interface/auth/people.ts';
import type { Step } from '../interface/step.ts';
import type { ApiContext } from './context.ts';
import { isKnown } from './methods.ts';
import { measureRequests } from './metrics.ts';
import { requestId, requestLog } from './request-log.ts';
import { apiSecurity, cors, requireHost } from './security.ts';
import { traceRequests } from './trace-requests.ts';

/** The steps that stand before everything below the API base, in Express and in front of it. */
export interface ApiSteps {
  /** Of every request. */
  opening: readonly Step[];
  /** Of every request but those to the ports of instances. */
  measure: Step;
  /** Of every request below the API base, whose URL is without it. */
  entry: readonly Step[];
}

/** Once per process: the steps have metrics and shares. */
export function createSteps(context: ApiContext): ApiSteps {
  return {
    opening: [context.proxies.hear, requestId, requestLog(context)],
    measure: measureRequests(context),
    entry: [
      cors(isKnown, context.strangers),
      takeProtocolToken,
      acceptPeople(context.people),
      authenticate(context),
      requireTenant(context.tenants),
      ...(context.tracer === undefined ? [] : [traceRequests(context.tracer)]),
      context.keepAccepted,
      context.countAnswers,
      context.takeTurns,
      apiSecurity,
      requireHost,
    ],
  };
}
