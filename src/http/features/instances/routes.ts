import type { Stores } from '../../../caches/caches.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { ConflictError, isGone } from '../../../kube/errors.ts';
import { silentMs } from '../../../ledger/silence.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
import { GPU_INSTANCES, type GpuInstance, STARTED_BY } from '../../../resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { meterBegan } from '../../../resources/instances/meter.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { ApiError, type FieldError, validationFailed } from '../../interface/errors/api-error.ts';
import { lastEventId, wantsEvents } from '../../interface/events/event-stream.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import type { ListPaces } from '../../interface/list-paces.ts';
import { byAge } from '../../interface/objects.ts';
import { asCreatedBy } from '../../../access/principal.ts';
import { type Call, route, routeWithBody } from '../../interface/route.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import { instanceNotFound, instanceOf, missingSshKeys } from './find.ts';
import type { Followed, InstanceEvents } from './instance-events.ts';
import type { InstancePresenter } from './presenter.ts';
import {
  deletedInstanceSchema,
  instanceListSchema,
  instanceSchema,
  type UpdateInstance,
  updateInstanceSchema,
} from './schema.ts';
import { requireStartBudget, type StartBudgetDeps } from './start-budget.ts';
import { toInstancePatch } from './to-spec.ts';

export interface InstancesContext extends StartBudgetDeps {
  client: KubeClient;
  clock: Clock;
  streams: StreamRegistry;
  instanceEvents: InstanceEvents;
  instances: InstancePresenter;
  stores: Stores<'instances' | 'sshKeys'>;
  listPaces: ListPaces;
  liveLooks: InTurn;
}

function stream(context: InstancesContext, { request, response }: Call, followed: Followed): void {
  const { streams, instanceEvents, listPaces, stores } = context;
  const { namespace } = followed;
  // It closed while the instance was looked up: nothing would give back what it holds.
  if (response.destroyed) return;
  listPaces.require(namespace);
  const opened = streams.open(request, response);
  const unfollow = instanceEvents.follow(followed, lastEventId(request), (event) => {
    const isList = followed.name === undefined && (event.type === 'snapshot' || event.type === 'resync');
    const records = isList ? stores.instances.by('namespace', namespace).length : 1;
    listPaces.count(namespace, records, event.data.length);
    opened.send(event);
    if (event.type === 'deleted' && followed.name !== undefined) opened.end();
  });
  response.once('close', unfollow);
}

export const listInstancesRoute = route({
  method: 'get',
  path: '/instances',
  id: 'listInstances',
  tag: 'Instances',
  scope: 'compute:read',
  compressed: true,
  summary: 'List your instances, oldest first',
  description: 'With Accept: text/event-stream: snapshot (the list), instance (new or changed), deleted.',
  success: { status: 200, schema: instanceListSchema, description: 'All instances of the tenant.' },
  events: 'snapshot, instance, deleted, resync',
  handle(context: InstancesContext, call) {
    const { namespace } = call.caller;
    if (wantsEvents(call.request)) return stream(context, call, { namespace });
    const write = () => {
      const sorted = context.stores.instances.by('namespace', namespace).toSorted(byAge);
      return sorted.map((one) => context.instances.json(one));
    };
    sendList(call.response, context.listPaces.take(namespace, write));
  },
});

export const readInstanceRoute = route({
  method: 'get',
  path: '/instances/{instanceId}',
  id: 'getInstance',
  tag: 'Instances',
  scope: 'compute:read',
  summary: 'Read one instance',
  description: 'With Accept: text/event-stream: snapshot (the instance), instance (changed), deleted (the last event).',
  success: { status: 200, schema: instanceSchema, description: 'The instance.' },
  events: 'snapshot, instance, deleted, resync',
  errors: ['instance_not_found'],
  async handle(context: InstancesContext, call) {
    const instance = await instanceOf(context, call.request);
    const { namespace = '', name } = instance.metadata;
    if (wantsEvents(call.request)) return stream(context, call, { namespace, name });
    const { json, etag } = context.instances.present(instance);
    sendJson(call.response, json, etag);
  },
});

export const deleteInstanceRoute = route({
  method: 'delete',
  path: '/instances/{instanceId}',
  id: 'deleteInstance',
  tag: 'Instances',
  scope: 'compute:write',
  summary: 'Delete an instance and its disk',
  description: 'Answers once the deletion is recorded. Until its GPUs are free the instance stays, as deleting.',
  success: {
    status: 200,
    schema: deletedInstanceSchema,
    description: 'The deletion is recorded, by this request or before.',
  },
  errors: ['instance_not_found'],
  async handle(context: InstancesContext, { request, response }) {
    const { namespace, name, uid } = (await instanceOf(context, request)).metadata;
    await context.client
      .delete(GPU_INSTANCES, { namespace, name }, { ...(uid !== undefined && { uid }) })
      .catch((error: unknown) => {
        if (error instanceof ConflictError) throw instanceNotFound();
        throw error;
      });
    sendJson(response, JSON.stringify({ id: name, object: 'instance', deleted: true }));
  },
});

/** What would end the instance on the spot, which nobody means who sets a longest time. */
function overAlready(
  { status }: GpuInstance,
  { max_duration: text, state }: UpdateInstance,
  now: number,
): FieldError[] {
  const began = (status?.claim && status.ending === undefined ? meterBegan(status) : undefined) ?? NaN;
  const ran = now - began - silentMs(status?.silences, began, now);
  if (!text || state === 'stopped' || Number.isNaN(ran) || parseDuration(text) > ran) return [];
  const minutes = Math.ceil(ran / 60_000);
  const expected = `expected more than ${minutes}m, which this start has run; to end it now, send "state": "stopped"`;
  return [{ path: 'max_duration', expected }];
}

/** Whether a change lets an instance start that waits because it would cost more than was allowed. */
function letsStart(instance: GpuInstance, { max_price_per_hour: price }: UpdateInstance): boolean {
  return typeof price === 'string' && instance.status?.claim === undefined && !isSwitchedOff(instance);
}

function isLonger(before: string | undefined, after: string | null | undefined): boolean {
  if (before === undefined || after === undefined) return false;
  return !after || parseDuration(after) > parseDuration(before);
}

/** Whether a change lets an instance go on for longer, at the cost of the key that created it. */
function lengthens({ spec }: GpuInstance, { max_duration: most, idle_timeout: idle }: UpdateInstance): boolean {
  return isLonger(spec.maxDuration, most) || isLonger(spec.idleTimeout, idle);
}

export const updateInstanceRoute = routeWithBody({
  method: 'patch',
  path: '/instances/{instanceId}',
  id: 'updateInstance',
  tag: 'Instances',
  scope: 'compute:write',
  summary: 'Rename, label, extend, stop or start an instance',
  description:
    'Fields that are left out stay; null clears them, and sets on_expiry to stop and on_gpu_failure to keep. Each field is written by itself: ' +
    'another change at the same time is not lost. Stopping frees the GPUs and keeps a disk that survives a stop; starting again needs a ' +
    'free place, and room in the budgets of the tenant, of the key that asks and of the key that created the instance.' +
    ' max_duration counts from when the container of this start first ran, so a longer one extends.',
  request: {
    schema: updateInstanceSchema,
    required: false,
    examples: {
      rename: { summary: 'New name and label', value: { name: 'training run 8', label: 'vision' } },
      clear: { summary: 'Clear the label', value: { label: null } },
      extend: { summary: 'Run for longer', value: { max_duration: '24h', idle_timeout: null } },
      stop: { summary: 'Stop and keep the disk', value: { state: 'stopped' } },
    },
  },
  success: { status: 200, schema: instanceSchema, description: 'The instance after the change.' },
  errors: ['instance_not_found', 'instance_deleting', 'budget_exceeded', 'tenant_unavailable'],
  async handle(context: InstancesContext, { request, response, body, caller }) {
    const instance = await instanceOf(context, request);
    const { namespace, name, uid, deletionTimestamp } = instance.metadata;
    if (deletionTimestamp !== undefined) {
      throw new ApiError('instance_deleting', 'The instance is being deleted. It cannot be changed any more.');
    }
    const refused = [
      ...overAlready(instance, body, context.clock.now()),
      ...(await missingSshKeys(context, caller.namespace, body.ssh_key_ids ?? [])),
    ];
    if (refused.length > 0) throw validationFailed(refused);
    // Sent even when it changes nothing: the API server answers with the current object, which the cache may lack.
    const isStart = body.state === 'running';
    if (isStart || letsStart(instance, body)) requireStartBudget(context, caller, { instance, what: 'started' });
    else if (lengthens(instance, body)) requireStartBudget(context, caller, { instance, what: 'lengthened' });
    const spec = toInstancePatch(body, context.clock.now());
    const starter = spec.startRequest && {
      annotations: { [STARTED_BY]: `${spec.startRequest} ${asCreatedBy(caller)}` },
    };
    const patch = { metadata: { uid, ...starter }, spec };
    const changed = await context.client
      .patch(GPU_INSTANCES, { namespace, name }, patch, { type: 'merge' })
      .catch((error: unknown) => {
        if (isGone(error)) throw instanceNotFound();
        throw error;
      });
    sendJson(response, context.instances.json(changed));
  },
});
