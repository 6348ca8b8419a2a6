import { readFleetRoute } from '../fleet/route.ts';
import { readEventsRoute } from '../history/route.ts';
import { readLogsRoute } from '../logs/route.ts';
import { readMetricsRoute } from '../monitoring/route.ts';
import { registryRoutes } from '../registries/routes.ts';
import { readUsageRoute } from '../usage/route.ts';
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

const models = { tag: 'Models', scope: 'models' } as const;

const modelCall = {
  ...models,
  method: 'post',
  request: { schema: 'ModelRequest', required: true, examples: {} },
  success: { status: 200, schema: 'ModelResponse', description: "The model's answer." },
  events: 'those of the named API, with "stream": true',
} as const satisfies Partial<Operation>;

const { events: _events, ...withoutEvents } = modelCall;
const wholeCall = {
  ...withoutEvents,
  request: { ...modelCall.request, schema: 'WholeModelRequest' },
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
    success: { status: 200, schema: 'ModelList', description: 'All models.' },
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
