import { z } from 'zod';
import { type ErrorCode, ERRORS } from '../../interface/errors/catalogue.ts';
import { familyOf, takesOtherKeys } from '../../interface/errors/families.ts';
import { IDEMPOTENCY_KEY } from '../../interface/idempotency.ts';
import type { Operation } from '../../interface/route.ts';
import { LIMITS, namedSchemas, nameOf } from '../../interface/schema.ts';
import { OPERATIONS } from '../table.ts';
import {
  anthropicErrorSchema,
  errorSchema,
  modelUnauthorizedSchema,
  openAiErrorSchema,
  unauthorizedSchema,
} from './error-schemas.ts';

/** Version of the document, section 9 of the interface's specification. */
const VERSION = '1.0.0';

/** Errors of every endpoint. */
const COMMON: readonly ErrorCode[] = [
  'invalid_api_key',
  'insufficient_scope',
  'not_a_tenant',
  'rate_limit_exceeded',
  'internal_error',
  'cluster_unavailable',
  'overloaded',
];

const BODY_ERRORS: readonly ErrorCode[] = [
  'malformed_json',
  'bad_request',
  'payload_too_large',
  'unsupported_media_type',
  'validation_failed',
  'request_timeout',
  'too_many_at_once',
];

const RESUME =
  'Every event has an id. Send the last one as Last-Event-ID to resume. ' +
  '`resync` comes instead of `snapshot` when the server no longer has all missed events; it has everything anew.';

const HEADERS = {
  'x-request-id': { description: 'Id of the request: your own, if you sent one.', schema: { type: 'string' } },
};
const LIMIT_HEADERS = {
  'ratelimit-policy': {
    description: 'Calls that the key may make, and the window in seconds.',
    schema: { type: 'string' },
  },
  ratelimit: { description: 'Calls that are left, and seconds until the window ends.', schema: { type: 'string' } },
};
const RETRY_AFTER = { 'retry-after': { description: 'Seconds to wait.', schema: { type: 'integer' } } };

const uriOf = (id: string): string => `#/components/schemas/${id}`;

function refTo(schema: z.ZodType): { $ref: string } {
  return { $ref: uriOf(nameOf(schema)) };
}

/** `components.schemas` of the document, from the schemas that validate. */
export function componentSchemas(): Record<string, unknown> {
  return namedSchemas(uriOf);
}

function json(schema: z.ZodType) {
  return { 'application/json': { schema: refTo(schema) } };
}

/** A body that may be absent may be null too. */
function bodyOf({ schema, required, examples, media = 'application/json' }: NonNullable<Operation['request']>) {
  const content = required ? refTo(schema) : { anyOf: [refTo(schema), { type: 'null' }] };
  return { [media]: { schema: content, examples } };
}

function isCompute({ path }: Operation): boolean {
  return familyOf(path) === 'compute';
}

function errorSchemaOf({ path }: Operation): z.ZodType {
  return { compute: errorSchema, openai: openAiErrorSchema, anthropic: anthropicErrorSchema }[familyOf(path)];
}

/** Every error that an operation may answer with. */
export function errorsOf(operation: Operation): Set<ErrorCode> {
  const { path, request, events, errors = [] } = operation;
  if (!isCompute(operation)) return new Set(COMMON);
  return new Set([
    ...COMMON,
    ...(request ? BODY_ERRORS : []),
    ...(path.includes('{') ? (['bad_request'] as const) : []),
    ...errors,
    ...(events ? (['too_many_streams'] as const) : []),
  ]);
}

function failures(operation: Operation): Record<string, unknown> {
  const byStatus = Map.groupBy(errorsOf(operation), (code) => ERRORS[code].status);
  const responses = [...byStatus].map(([status, codes]) => {
    const description = codes.map((code) => `\`${code}\`: ${ERRORS[code].help}`).join(' ');
    const headers = { ...HEADERS, ...((status === 429 || status === 503) && RETRY_AFTER) };
    return [String(status), { description, headers, content: json(errorSchemaOf(operation)) }] as const;
  });
  const unauthorized = {
    description: ERRORS.invalid_api_key.help,
    content: json(isCompute(operation) ? unauthorizedSchema : modelUnauthorizedSchema),
  };
  return {
    ...Object.fromEntries(responses),
    '401': unauthorized,
    // The gateway passes errors of the engine on.
    ...(!isCompute(operation) && {
      default: { description: 'Any other error.', content: json(errorSchemaOf(operation)) },
    }),
  };
}

function linksTo(operations: NonNullable<Operation['links']>): Record<string, unknown> {
  const links = Object.entries(operations).map(([operationId, parameter]) => [
    operationId,
    { operationId, parameters: { [parameter]: '$response.body#/id' } },
  ]);
  return Object.fromEntries(links);
}

function successOf(operation: Operation): Record<string, unknown> {
  const { success, events, plainText, openMetrics, csv, method, links } = operation;
  const headers = {
    ...HEADERS,
    ...(isCompute(operation) && LIMIT_HEADERS),
    ...(method === 'get' && { etag: { description: 'Send it as If-None-Match.', schema: { type: 'string' } } }),
    ...(success.status === 201 && {
      location: { description: 'Path of the new resource.', schema: { type: 'string' } },
    }),
    ...(operation.idempotent && {
      'idempotent-replayed': { description: 'true when an earlier request created it.', schema: { type: 'string' } },
    }),
  };
  const stream = events && { 'text/event-stream': { schema: { type: 'string', description: `Events: ${events}.` } } };
  const text = plainText && { 'text/plain': { schema: { type: 'string', description: plainText } } };
  const metrics = openMetrics && {
    'application/openmetrics-text': { schema: { type: 'string', description: openMetrics } },
  };
  const table = csv && { 'text/csv': { schema: { type: 'string', description: csv } } };
  const content = { ...json(success.schema), ...text, ...metrics, ...table, ...stream };
  return {
    [String(success.status)]: {
      description: success.description,
      headers,
      content,
      ...(links && { links: linksTo(links) }),
    },
    ...(method === 'get' && { '304': { description: 'The client has this version.', headers: HEADERS } }),
  };
}

const IDEMPOTENCY_SCHEMA = { minLength: 1, maxLength: LIMITS.idempotencyKey, pattern: IDEMPOTENCY_KEY.source };

function header(name: string, description: string, schema: object = {}) {
  return { name, in: 'header', description, required: false, schema: { type: 'string', ...schema } };
}

function queryParameters(query: z.ZodObject) {
  const { properties = {} } = z.toJSONSchema(query, { io: 'input', target: 'draft-2020-12' });
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = typeof property === 'object' ? property : {};
    return { name, in: 'query', description, required: false, schema };
  });
}

/** The parameters of an operation in its path, its query and its headers, as OpenAPI has them. */
export function parametersOf(operation: Operation) {
  const { path, idempotent, method, events, query } = operation;
  const key = 'A repeated request with the same key and body gets the first answer; with another body it gets 409.';
  return [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string', minLength: 1 },
    })),
    ...(query ? queryParameters(query) : []),
    ...(idempotent ? [header('Idempotency-Key', key, IDEMPOTENCY_SCHEMA)] : []),
    ...(method === 'get' ? [header('If-None-Match', 'ETag of the version that you have.')] : []),
    ...(events && isCompute(operation) ? [header('Last-Event-ID', 'Id of the last event that you got.')] : []),
  ];
}

function operationObject(operation: Operation): Record<string, unknown> {
  const { path, id, tag, summary, description, request, scope, events } = operation;
  const text = events?.includes('resync') && isCompute(operation) ? `${description} ${RESUME}` : description;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [text, `Needs the scope \`${scope}\`.`].filter(Boolean).join('\n\n'),
    parameters: parametersOf(operation),
    ...(takesOtherKeys(path) && { security: [{ key: [] }, { anthropicKey: [] }, { azureKey: [] }] }),
    ...(request && { requestBody: { required: request.required, content: bodyOf(request) } }),
    responses: { ...successOf(operation), ...failures(operation) },
  };
}

/** What the interface is, and what holds for every call. Markdown. */
export const DESCRIPTION = `Rent GPU instances, reach them by SSH, and call the models of the cluster.

Every call needs \`Authorization: Bearer <API key>\`. Create keys on the [API keys page](/dashboard/api-access).
Unknown fields are refused. null equals absent; in PATCH it clears the field. Lists are complete. Under \`/api/v1\`, records and answers
may get more fields; none is renamed or removed.`;

/** The OpenAPI 3.1 document of the interface, from the route table and the schemas that validate. */
export function openApiDocument(): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: operationObject(operation) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Berth',
      version: VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/api/v1' },
      { url: '/api/v1/api/v1', description: 'For clients that append /api/v1 to a base URL that has it.' },
    ],
    security: [{ key: [] }],
    tags: ['Offers', 'Instances', 'Templates', 'SSH keys', 'Registries', 'Limits', 'Usage', 'Models'].map((name) => ({
      name,
    })),
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key.' },
        anthropicKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Api-Key',
          description: "An API key, as Anthropic's clients send it.",
        },
        azureKey: {
          type: 'apiKey',
          in: 'header',
          name: 'Api-Key',
          description: 'An API key, as clients of Azure send it.',
        },
      },
      schemas: componentSchemas(),
    },
  };
}
