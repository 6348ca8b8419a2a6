import { readFleetRoute } from '../features/fleet/routes.ts';
import { readEventsRoute } from '../features/events/routes.ts';
import { readLogsRoute } from '../features/logs/routes.ts';
import { readMetricsRoute } from '../features/metrics/routes.ts';
import { registryRoutes } from '../features/registries/routes.ts';
import { readUsageRoute } from '../features/usage/routes.ts';
import { webhookRoutes } from '../features/webhooks/routes.ts';
import { createInstanceRoute } from '../features/instances/create-route.ts';
import { deleteInstanceRoute, listInstancesRoute, readInstanceRoute } from '../features/instances/routes.ts';
import { readLimitsRoute } from '../features/limits/routes.ts';
import { listOffersRoute, searchOffersRoute } from '../features/offers/routes.ts';
import { createLinkRoute } from '../features/ports/routes.ts';
import type { Operation, Resource } from '../interface/route.ts';
import { sshKeyRoutes } from '../features/ssh-keys/routes.ts';
import { templateRoutes } from '../features/templates/routes.ts';
import { updateInstanceRoute } from '../features/instances/update-route.ts';
import {
  modelListSchema,
  modelRequestSchema,
  modelResponseSchema,
  wholeModelRequestSchema,
} from '../features/models/schema.ts';
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

const models = { tag: 'Models', scope: 'models' } as const;

const modelCall = {
  ...models,
  method: 'post',
  request: { schema: modelRequestSchema, required: true, examples: {} },
  success: { status: 200, schema: modelResponseSchema, description: "The model's answer." },
  events: 'those of the named API, with "stream": true',
} as const satisfies Partial<Operation>;

const { events: _events, ...withoutEvents } = modelCall;
const wholeCall = {
  ...withoutEvents,
  request: { ...modelCall.request, schema: wholeModelRequestSchema },
} as const satisfies Partial<Operation>;

/** The table of the interface: every operation, those of the model gateway included. */
export const OPERATIONS: readonly Operation[] = [
  ...RESOURCES.flatMap(({ routes }) => routes),
  {
    ...models,
    method: 'get',
    path: '/models',
    id: 'listModels',
    summary: 'List the models that the cluster serves',
    success: { status: 200, schema: modelListSchema, description: 'All models.' },
  },
  {
    ...modelCall,
    path: '/chat/completions',
    id: 'createChatCompletion',
    summary: "OpenAI's Chat Completions API",
  },
  { ...modelCall, path: '/responses', id: 'createResponse', summary: "OpenAI's Responses API" },
  { ...modelCall, path: '/messages', id: 'createMessage', summary: "Anthropic's Messages API" },
  { ...modelCall, path: '/completions', id: 'createCompletion', summary: "OpenAI's Completions API" },
  { ...wholeCall, path: '/embeddings', id: 'createEmbedding', summary: "OpenAI's Embeddings API" },
  { ...wholeCall, path: '/rerank', id: 'createRerank', summary: 'Rerank API of Jina and Cohere' },
  {
    ...wholeCall,
    path: '/audio/transcriptions',
    id: 'createTranscription',
    summary: "OpenAI's Transcriptions API",
    request: { ...wholeCall.request, media: 'multipart/form-data' },
  },
];
