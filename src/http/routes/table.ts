import { readFleetRoute } from '../fleet/route.ts';
import { readEventsRoute } from '../history/route.ts';
import { readLogsRoute } from '../logs/route.ts';
import { readMetricsRoute } from '../monitoring/route.ts';
import { registryRoutes } from '../registries/routes.ts';
import { readUsageRoute } from '../usage/route.ts';
import { type ModelEndpoint, MODEL_ENDPOINTS } from '../../wire/model-endpoints.ts';
import { webhookRoutes } from '../webhooks/routes.ts';
import { createInstanceRoute } from './instances/create-instance.ts';
import { deleteInstanceRoute, listInstancesRoute, readInstanceRoute } from './instances/instances.ts';
import { readLimitsRoute } from './limits.ts';
import { listOffersRoute, searchOffersRoute } from './offers.ts';
import { createLinkRoute } from './ports.ts';
import type { Operation, Resource } from './route.ts';
import { sshKeyRoutes } from './ssh-keys.ts';
import { templateRoutes } from './templates.ts';
import { updateInstanceRoute } from './instances/update-instance.ts';

/** What this interface serves itself. */
export const RESOURCES: readonly Resource[] = [
  { path: '/offers', compressed: true, routes: [listOffersRoute, searchOffersRoute] },
  {
    path: '/instances',
    routes: [
      listInstancesRoute,
      createInstanceRoute,
      readInstanceRoute,
      updateInstanceRoute,
      deleteInstanceRoute,
      createLinkRoute,
      readLogsRoute,
      readEventsRoute,
      readMetricsRoute,
    ],
  },
  { path: '/templates', compressed: true, routes: templateRoutes },
  { path: '/limits', routes: [readLimitsRoute] },
  { path: '/usage', routes: [readUsageRoute] },
  { path: '/fleet', compressed: true, routes: [readFleetRoute] },
  { path: '/ssh-keys', compressed: true, routes: sshKeyRoutes },
  { path: '/registries', compressed: true, routes: registryRoutes },
  { path: '/webhooks', routes: webhookRoutes },
];

/** A model endpoint as an operation; undefined where the document leaves it out. */
function operationOf({ method, path, id, call, openApi }: ModelEndpoint): Operation | undefined {
  if (openApi === undefined) return undefined;
  const { summary, request: schema, success } = openApi;
  const isForm = call !== undefined && 'form' in call;
  return {
    tag: 'Models',
    scope: 'models',
    method,
    path,
    id,
    summary,
    success: { status: 200, ...success },
    ...(schema !== undefined && {
      request: { schema, required: true, examples: {}, ...(isForm && { media: 'multipart/form-data' as const }) },
    }),
    ...(schema === 'ModelRequest' && { events: 'those of the named API, with "stream": true' }),
  };
}

const MODEL_OPERATIONS = MODEL_ENDPOINTS.flatMap((one) => operationOf(one) ?? []);

/** The table of the interface: every operation. Those of the model gateway with the same schema stand together. */
export const OPERATIONS: readonly Operation[] = [
  ...RESOURCES.flatMap(({ routes }) => routes),
  ...[...Map.groupBy(MODEL_OPERATIONS, ({ request }) => request?.schema).values()].flat(),
];
