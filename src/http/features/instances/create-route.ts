import type { Response } from 'express';
import { asCreatedBy } from '../../../access/principal.ts';
import type { Stores } from '../../../caches/caches.ts';
import type { TemplateSource } from '../../../caches/templates.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
import { namesTemplate } from '../../../resources/instance-template.ts';
import type { GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { requestSpan } from '../../../runtime/tracing/request-span.ts';
import { traceparentOf } from '../../../runtime/tracing/trace-context.ts';
import { validationFailed } from '../../interface/errors/api-error.ts';
import { requestHash } from '../../interface/idempotency.ts';
import type { CallLimits } from '../../interface/request-limit.ts';
import { routeWithBody } from '../../interface/route.ts';
import { sendJson } from '../../interface/send.ts';
import { type CreateDeps, createInstance, type CreateRequest, findAnswered } from './create.ts';
import { findTemplateOf } from './find-template.ts';
import { missingSshKeys } from './find.ts';
import { takeFreeText } from './free-text.ts';
import type { InstancePresenter } from './presenter.ts';
import { budgetExceeded, offerUnavailable, refusal, templateNotFound, tenantLimit } from './refusal.ts';
import { createInstanceSchema, instanceSchema } from './schema.ts';
import { toInstanceSpec } from './to-spec.ts';

export interface CreateContext extends CreateDeps {
  templates: TemplateSource;
  instances: InstancePresenter;
  calls: CallLimits;
  offers: Inventory;
  defaultImage: string;
  stores: Stores<'instances' | 'sshKeys'>;
  liveLooks: InTurn;
}

/** Throws 422 for SSH keys, and 404 for a template, that the tenant does not have. */
async function checkReferences(context: CreateContext, namespace: string, spec: GpuInstanceSpec): Promise<void> {
  const errors = await missingSshKeys(context, namespace, spec.sshKeyIds ?? []);
  if (errors.length > 0) throw validationFailed(errors);
  if (namesTemplate(spec) && !(await findTemplateOf(context, namespace, spec))) throw templateNotFound(spec);
}

/** A retry is answered also when its SSH keys, its template or its share of free text are gone since. */
async function admitted(context: CreateContext, request: CreateRequest): ReturnType<typeof createInstance> {
  const { namespace, spec, idempotency } = request;
  try {
    await checkReferences(context, namespace, spec);
    await takeFreeText(context, { namespace, spec, hash: idempotency?.hash });
  } catch (error) {
    const answered = await findAnswered(context, request);
    if (answered === undefined) throw error;
    return answered;
  }
  return createInstance(context, request);
}

/** Aborts when the client closes the connection, at once when it already has. */
function disconnectOf(response: Response): AbortSignal {
  if (response.destroyed) return AbortSignal.abort();
  const left = new AbortController();
  response.once('close', () => left.abort());
  return left.signal;
}

export const createInstanceRoute = routeWithBody({
  method: 'post',
  path: '/instances',
  id: 'createInstance',
  tag: 'Instances',
  scope: 'compute:write',
  summary: 'Rent an instance',
  description:
    'Answers 201 when the controller has granted a place, or 409 with alternatives when nothing was rented. An ask_id ' +
    'that no offer has is 409 offer_unavailable too: offers come and go. When there is no body, it rents the cheapest free offer. ' +
    'With on_no_capacity queue an instance that no place is free for is 201 too: it waits, as pending, with its ' +
    'place_in_line.',
  request: {
    schema: createInstanceSchema,
    required: false,
    examples: {
      cheapest: { summary: 'The cheapest free offer with the default image', value: {} },
      full: {
        summary: 'Interruptible, with image, disk and name',
        value: {
          type: 1,
          name: 'training run 7',
          template_image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime',
          runtype: 'ssh',
          disk_gb: 40,
          install_monitoring: false,
          stats: '{"team":"vision"}',
        },
      },
      everything: {
        summary: 'A program with its environment and port, that ends by itself',
        value: {
          gpu: { count: 1, memory_mb: 1024 },
          template_image: 'vllm/vllm-openai:v0.9.0',
          args: ['--model', 'Qwen/Qwen3-8B'],
          env: { HF_HOME: '/workspace/hf' },
          ports: [{ container_port: 8000, name: 'http' }],
          registry: 'my-registry',
          max_duration: '12h',
          on_expiry: 'delete',
          on_no_capacity: 'queue',
        },
      },
      vast: {
        summary: 'As Vast.ai clients send it',
        value: {
          runtype: 'jupyter_direc ssh_direc ssh_proxy',
          disk_gb: 16,
          template_hash_id: null,
          template_image: '',
        },
      },
    },
  },
  success: { status: 201, schema: instanceSchema, description: 'The new instance. Location has its path.' },
  idempotent: true,
  links: {
    getInstance: 'instanceId',
    updateInstance: 'instanceId',
    createLink: 'instanceId',
    deleteInstance: 'instanceId',
  },
  errors: [
    'quota_exceeded',
    'tenant_limit',
    'budget_exceeded',
    'template_not_found',
    'offer_unavailable',
    'offer_changed',
    'idempotency_conflict',
    'instance_deleting',
    'tenant_unavailable',
    'claim_timeout',
  ],
  async handle(context: CreateContext, { request, response, caller, body, key }) {
    const { namespace } = caller;
    const signal = disconnectOf(response);
    const span = requestSpan(request);
    const { spec, offerPossible } = toInstanceSpec(body);
    if (!offerPossible) {
      const asked = { offerId: body.ask_id ?? undefined, diskGb: spec.diskGb };
      throw offerUnavailable(context.offers.offers(), asked, context.defaultImage);
    }
    const idempotency = key === undefined ? undefined : { key, hash: requestHash(body) };
    const created = await admitted(context, {
      namespace,
      spec,
      createdBy: asCreatedBy(caller),
      traceparent: span && traceparentOf(span.context),
      idempotency,
      signal,
    });
    if (created.outcome === 'foreseen') {
      const { refusal: foreseen } = created;
      if (foreseen.reason === 'TenantLimit') throw tenantLimit(foreseen.message);
      if (foreseen.reason === 'BudgetExceeded') throw budgetExceeded(foreseen.message);
      throw offerUnavailable(context.offers.offers(), spec, context.defaultImage);
    }
    const { instance, outcome, replayed } = created;
    span?.set({ 'berth.instance': instance.metadata.name ?? '' });
    if (outcome === 'refused') throw refusal(instance, context.offers.offers(), context.defaultImage);
    if (replayed) response.set('idempotent-replayed', 'true');
    response.status(201).location(`/api/v1/instances/${instance.metadata.name}`);
    sendJson(response, context.instances.json(instance));
  },
});
