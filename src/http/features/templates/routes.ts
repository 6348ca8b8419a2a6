import type { Request } from 'express';
import { type TemplateSource, visibleTemplates } from '../../../caches/templates.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { ConflictError, isGone } from '../../../kube/errors.ts';
import {
  INSTANCE_TEMPLATES,
  type InstanceTemplate,
  type InstanceTemplateSpec,
  instanceTemplateSpecSchema,
  MAX_FROZEN_BYTES,
  snapshotOf,
} from '../../../resources/instance-template.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
import { toContent } from '../../../wire/to-content.ts';
import { withoutNulls } from '../../../wire/without-nulls.ts';
import { ApiError, validationFailed } from '../../interface/errors/api-error.ts';
import { type ObjectNames, requestHash } from '../../interface/idempotency.ts';
import { byAge, createOnce, numericIdIn } from '../../interface/objects.ts';
import { route, routeWithBody } from '../../interface/route.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import { findTemplateOf } from '../instances/find-template.ts';
import { checkTemplateText } from '../instances/free-text.ts';
import { templateId, toTemplateListItem, toTemplateRecord } from './record.ts';
import {
  deletedTemplateSchema,
  type TemplateBody,
  templateContentSchema,
  templateListSchema,
  templateSchema,
} from './schema.ts';

export interface TemplatesContext {
  client: KubeClient;
  idempotentName: ObjectNames;
  templates: TemplateSource;
  liveLooks: InTurn;
}

const EXAMPLES = {
  program: {
    summary: 'A model server',
    value: {
      name: 'vLLM',
      image: 'vllm/vllm-openai:v0.9.0',
      args: ['--model', 'Qwen/Qwen3-8B'],
      env: { HF_HOME: '/workspace/hf' },
      ports: [{ container_port: 8000, name: 'http' }],
      disk_gb: 80,
    },
  },
  machine: {
    summary: 'A machine to log in to',
    value: {
      name: 'dev',
      image: 'debian:12',
      runtype: 'ssh',
      on_start: 'apt-get update && apt-get install -y git',
    },
  },
} as const;

function templateNotFound(): ApiError {
  return new ApiError('template_not_found', 'You have no template with this id, and nobody shares one with you.');
}

/**
 * The template that the path names, of the tenant or shared; throws 404. One of the tenant is read live: what one
 * replica has changed, another one must not show as it was.
 */
async function templateOf(context: TemplatesContext, tenant: string, request: Request): Promise<InstanceTemplate> {
  const id = numericIdIn(String(request.params['templateId']));
  const known = id === undefined ? undefined : await findTemplateOf(context, tenant, { templateId: id });
  if (known === undefined) throw templateNotFound();
  if (known.metadata.namespace !== tenant) return known;
  const { name, uid } = known.metadata;
  const live = await findObject(context.client, INSTANCE_TEMPLATES, { namespace: tenant, name });
  if (live === undefined || live.metadata.uid !== uid) throw templateNotFound();
  return live;
}

/** The template that the path names, which must be the tenant's own; throws 404, or 403 for one that is shared. */
async function ownTemplateOf(context: TemplatesContext, tenant: string, request: Request): Promise<InstanceTemplate> {
  const found = await templateOf(context, tenant, request);
  if (found.metadata.namespace === tenant) return found;
  const message =
    'Another tenant shares this template, and only that one can change it. Make a copy with POST /templates.';
  throw new ApiError('template_read_only', message);
}

/** Throws 422 for content that no instance could keep a copy of. */
function toTemplateSpec(payload: TemplateBody): InstanceTemplateSpec {
  const body = withoutNulls(payload);
  const spec = withoutNulls({
    ...toContent(body),
    ...(body.runtype && { runtype: body.runtype }),
    displayName: body.name,
    image: body.image || undefined,
    diskGb: body.disk_gb,
  });
  if (snapshotOf({ metadata: { name: '' }, spec }) !== undefined) return spec;
  const expected = `expected at most ${MAX_FROZEN_BYTES / 1024} KiB of content; let on_start read what is long from elsewhere`;
  throw validationFailed([{ path: '', expected }]);
}

function toJson({ templates }: TemplatesContext, tenant: string, template: InstanceTemplate): string {
  return JSON.stringify(toTemplateRecord(templates, tenant, template));
}

/** A merge patch changes the fields that it has: one that is left out is cleared by null. */
const CLEARED = Object.fromEntries(Object.keys(instanceTemplateSpecSchema.shape).map((field) => [field, null]));

export const templateRoutes = [
  route({
    method: 'get',
    path: '/templates',
    id: 'listTemplates',
    tag: 'Templates',
    scope: 'compute:read',
    summary: 'List your templates and those that others share, oldest first',
    success: { status: 200, schema: templateListSchema, description: 'All templates that the tenant may use.' },
    handle({ templates }: TemplatesContext, { response, caller: { namespace } }) {
      const sorted = [...visibleTemplates(templates, namespace)].toSorted(byAge);
      sendList(
        response,
        sorted.map((template) => JSON.stringify(toTemplateListItem(templates, namespace, template))),
      );
    },
  }),
  routeWithBody({
    method: 'post',
    path: '/templates',
    id: 'createTemplate',
    tag: 'Templates',
    scope: 'compute:write',
    summary: 'Make a template',
    request: {
      schema: templateContentSchema,
      required: true,
      examples: EXAMPLES,
    },
    success: { status: 201, schema: templateSchema, description: 'The new template. Location has its path.' },
    idempotent: true,
    links: { getTemplate: 'templateId', replaceTemplate: 'templateId', deleteTemplate: 'templateId' },
    errors: ['quota_exceeded', 'tenant_limit', 'idempotency_conflict', 'tenant_unavailable'],
    async handle(context: TemplatesContext, { response, caller: { namespace }, body, key }) {
      const spec = toTemplateSpec(body);
      const hash = key === undefined ? undefined : requestHash(body);
      checkTemplateText(context.templates.templates, { namespace, spec, hash });
      const wanted = { type: INSTANCE_TEMPLATES, prefix: 't', namespace, spec, body, key };
      const { object, replayed } = await createOnce(context, wanted);
      if (replayed) response.set('idempotent-replayed', 'true');
      response.status(201).location(`/api/v1/templates/${templateId(object)}`);
      sendJson(response, toJson(context, namespace, object));
    },
  }),
  route({
    method: 'get',
    path: '/templates/{templateId}',
    id: 'getTemplate',
    tag: 'Templates',
    scope: 'compute:read',
    summary: 'Read one template with its content',
    success: { status: 200, schema: templateSchema, description: 'The template.' },
    errors: ['template_not_found'],
    async handle(context: TemplatesContext, { request, response, caller: { namespace } }) {
      sendJson(response, toJson(context, namespace, await templateOf(context, namespace, request)));
    },
  }),
  routeWithBody({
    method: 'put',
    path: '/templates/{templateId}',
    id: 'replaceTemplate',
    tag: 'Templates',
    scope: 'compute:write',
    summary: 'Replace the content of a template',
    description:
      'The id stays; hash_id changes with the content. A field that is left out is cleared. Instances that were ' +
      'rented with it keep what it said then, and show template_changed.',
    request: {
      schema: templateContentSchema,
      required: true,
      examples: EXAMPLES,
    },
    success: { status: 200, schema: templateSchema, description: 'The template after the change.' },
    errors: ['quota_exceeded', 'template_not_found', 'template_read_only', 'tenant_limit', 'tenant_unavailable'],
    async handle(context: TemplatesContext, { request, response, caller: { namespace }, body }) {
      const spec = toTemplateSpec(body);
      const { name, uid } = (await ownTemplateOf(context, namespace, request)).metadata;
      checkTemplateText(context.templates.templates, { namespace, spec, uid });
      const patch = { metadata: { uid }, spec: { ...CLEARED, ...spec } };
      const changed = await context.client
        .patch(INSTANCE_TEMPLATES, { namespace, name }, patch, { type: 'merge' })
        .catch((error: unknown) => {
          if (isGone(error)) throw templateNotFound();
          throw error;
        });
      sendJson(response, toJson(context, namespace, changed));
    },
  }),
  route({
    method: 'delete',
    path: '/templates/{templateId}',
    id: 'deleteTemplate',
    tag: 'Templates',
    scope: 'compute:write',
    summary: 'Delete a template',
    description: 'Instances that were rented with it keep what it said, at every start.',
    success: { status: 200, schema: deletedTemplateSchema, description: 'No instance can be rented with it any more.' },
    errors: ['template_not_found', 'template_read_only'],
    async handle(context: TemplatesContext, { request, response, caller: { namespace } }) {
      const template = await ownTemplateOf(context, namespace, request);
      const { name, uid } = template.metadata;
      await context.client
        .delete(INSTANCE_TEMPLATES, { namespace, name }, { ...(uid !== undefined && { uid }) })
        .catch((error: unknown) => {
          if (error instanceof ConflictError) throw templateNotFound();
          throw error;
        });
      sendJson(response, JSON.stringify({ id: templateId(template), object: 'template', deleted: true }));
    },
  }),
];
