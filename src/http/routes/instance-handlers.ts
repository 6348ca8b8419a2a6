import type { Request, RequestHandler, Response } from 'express';
import { ConflictError, NotFoundError } from '../../kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../resources/gpu-instance.ts';
import { getPrincipal } from '../../access/principal.ts';
import type { ApiContext } from '../context.ts';
import { ApiError } from '../errors/api-error.ts';
import { lastEventId } from '../events/event-stream.ts';
import type { Scope } from '../events/instance-events.ts';
import { wantsEvents } from '../events/stream-registry.ts';
import { parseBody } from '../middleware/validate.ts';
import { type UpdateInstance, updateInstanceSchema } from '../schemas/instance.ts';
import { sendJson, sendList } from '../send.ts';
import { byAge, findInstance } from '../tenant.ts';

function notFound(): ApiError {
  return new ApiError('instance_not_found', 'No instance has this id.');
}

async function instanceOf(context: ApiContext, request: Request): Promise<GpuInstance> {
  const { namespace } = getPrincipal(request);
  const instance = await findInstance(context, namespace, String(request.params['instanceId']));
  if (instance === undefined) throw notFound();
  return instance;
}

function stream({ streams, instanceEvents }: ApiContext, request: Request, response: Response, scope: Scope): void {
  const opened = streams.open(request, response);
  const unfollow = instanceEvents.follow(scope, lastEventId(request), (event) => {
    opened.send(event);
    if (event.type === 'deleted' && scope.name !== undefined) opened.end();
  });
  response.once('close', unfollow);
}

/** GET /instances, at once or as an event stream. */
export function listInstances(context: ApiContext): RequestHandler {
  const { stores, instances } = context;
  return (request, response) => {
    const { namespace } = getPrincipal(request);
    if (wantsEvents(request)) return stream(context, request, response, { namespace });
    sendList(
      response,
      stores.instances
        .by('namespace', namespace)
        .toSorted(byAge)
        .map((one) => instances.json(one)),
    );
  };
}

/** GET /instances/{instanceId}, at once or as an event stream that ends with the instance. */
export function readInstance(context: ApiContext): RequestHandler {
  return async (request, response) => {
    const instance = await instanceOf(context, request);
    const { namespace = '', name } = instance.metadata;
    if (wantsEvents(request)) return stream(context, request, response, { namespace, name });
    const { json, etag } = context.instances.present(instance);
    sendJson(response, json, etag);
  };
}

/** Only what the client sent: a field left out stays, label and name are cleared by null. */
function toPatch(body: UpdateInstance): Record<string, unknown> {
  return {
    ...(body.label !== undefined && { label: body.label }),
    ...(body.name !== undefined && { displayName: body.name }),
    ...(body.state && { powerState: body.state === 'stopped' ? 'Stopped' : 'Running' }),
  };
}

/** PATCH /instances/{instanceId}. */
export function updateInstance(context: ApiContext): RequestHandler {
  return async (request, response) => {
    const body = parseBody(updateInstanceSchema, request.body);
    const instance = await instanceOf(context, request);
    const { namespace, name, uid, deletionTimestamp } = instance.metadata;
    if (deletionTimestamp !== undefined) {
      throw new ApiError('instance_deleting', 'The instance is being deleted and cannot be changed any more.');
    }
    // A patch that changes nothing writes nothing, and still answers with what the last one wrote: caches may lag.
    const patch = { metadata: { uid }, spec: toPatch(body) };
    const changed = await context.client
      .patch(GPU_INSTANCES, { namespace, name }, patch, { type: 'merge' })
      .catch((error: unknown) => {
        // Gone, or replaced by another of the same name.
        if (error instanceof NotFoundError || error instanceof ConflictError) throw notFound();
        throw error;
      });
    sendJson(response, context.instances.json(changed));
  };
}

/** DELETE /instances/{instanceId}: done when the deletion is recorded, also when it was before. */
export function deleteInstance(context: ApiContext): RequestHandler {
  return async (request, response) => {
    const { namespace, name, uid } = (await instanceOf(context, request)).metadata;
    await context.client
      .delete(GPU_INSTANCES, { namespace, name }, { ...(uid !== undefined && { uid }) })
      .catch((error: unknown) => {
        if (error instanceof ConflictError) throw notFound();
        throw error;
      });
    sendJson(response, JSON.stringify({ id: name, object: 'instance', deleted: true }));
  };
}
