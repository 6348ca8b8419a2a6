import { ConflictError } from '../../../kube/errors.ts';
import { GPU_INSTANCES } from '../../../resources/instances/gpu-instance.ts';
import { lastEventId, wantsEvents } from '../../interface/events/event-stream.ts';
import type { Followed, InstanceEvents } from './instance-events.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import { instanceNotFound, instanceOf } from './find.ts';
import { type Call, route } from '../../interface/route.ts';
import { deletedInstanceSchema, instanceListSchema, instanceSchema } from './schema.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import type { InstancePresenter } from './presenter.ts';
import type { Stores } from '../../../caches/caches.ts';
import { byAge } from '../../interface/objects.ts';

export interface InstancesContext {
  client: KubeClient;
  streams: StreamRegistry;
  instanceEvents: InstanceEvents;
  instances: InstancePresenter;
  stores: Stores<'instances' | 'sshKeys'>;
}

function stream({ streams, instanceEvents }: InstancesContext, { request, response }: Call, followed: Followed): void {
  // It closed while the instance was looked up: nothing would give back what it holds.
  if (response.destroyed) return;
  const opened = streams.open(request, response);
  const unfollow = instanceEvents.follow(followed, lastEventId(request), (event) => {
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
    const sorted = context.stores.instances.by('namespace', namespace).toSorted(byAge);
    sendList(
      call.response,
      sorted.map((one) => context.instances.json(one)),
    );
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
