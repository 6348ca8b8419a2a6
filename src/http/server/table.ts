import { MODEL_ENDPOINTS, type ModelEndpoint } from '../../wire/model-endpoints.ts';
import { readEventsRoute } from '../features/events/routes.ts';
import { readFleetRoute } from '../features/fleet/routes.ts';
import { createInstanceRoute } from '../features/instances/create-route.ts';
import {
  deleteInstanceRoute,
  listInstancesRoute,
  readInstanceRoute,
  updateInstanceRoute,
} from '../features/instances/routes.ts';
import { readLimitsRoute } from '../features/limits/routes.ts';
import { readLogsRoute } from '../features/logs/routes.ts';
import { readMetricsRoute } from '../features/metrics/routes.ts';
import {
  modelFormSchema,
  modelListSchema,
  modelRequestSchema,
  modelResponseSchema,
  wholeModelRequestSchema,
} from '../features/models/schema.ts';
import { listOffersRoute, searchOffersRoute } from '../features/offers/routes.ts';
import { createLinkRoute } from '../features/ports/routes.ts';
import { registryRoutes } from '../features/registries/routes.ts';
import { sshKeyRoutes } from '../features/ssh-keys/routes.ts';
import { templateRoutes } from '../features/templates/routes.ts';
import { readUsageRoute } from '../features/usage/routes.ts';
import { webhookRoutes } from '../features/webhooks/routes.ts';
import type { Operation, Resource } from '../interface/route.ts';
import type { ApiContext } from './context.ts';

/** What this interface serves itself. */
export const RESOURCES: readonly Resource<ApiContext>[] = [
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

const MODEL_SCHEMAS = {
  ModelRequest: modelRequestSchema,
  WholeModelRequest: wholeModelRequestSchema,
  ModelForm: modelFormSchema,
  ModelList: modelListSchema,
  ModelResponse: modelResponseSchema,
};

/** A model endpoint as an operation; undefined where the document leaves it out. */
function operationOf({ method, path, id, call, openApi }: ModelEndpoint): Operation | undefined {
  if (openApi === undefined) return undefined;
  const { summary, request, success } = openApi;
  const isForm = call !== undefined && 'form' in call;
  return {
    tag: 'Models',
    scope: 'models',
    method,
    path,
    id,
    summary,
    success: { status: 200, schema: MODEL_SCHEMAS[success.schema], description: success.description },
    ...(request !== undefined && {
      request: {
        schema: MODEL_SCHEMAS[request],
        required: true,
        examples: {},
        ...(isForm && { media: 'multipart/form-data' as const }),
      },
    }),
    ...(request === 'ModelRequest' && { events: 'those of the named API, with "stream": true' }),
  };
}

const MODEL_OPERATIONS = MODEL_ENDPOINTS.flatMap((one) => operationOf(one) ?? []);

/** The table of the interface: every operation. Those of the model gateway with the same schema stand together. */
export const OPERATIONS: readonly Operation[] = [
  ...RESOURCES.flatMap(({ routes }) => routes),
  ...[...Map.groupBy(MODEL_OPERATIONS, ({ request }) => request?.schema).values()].flat(),
];
