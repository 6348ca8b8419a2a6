import { ConflictError, NotFoundError } from '../../../kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { ApiError, type FieldError, validationFailed } from '../../interface/errors/api-error.ts';
import { toInstancePatch } from './to-spec.ts';
import { type UpdateInstance, instanceSchema, updateInstanceSchema } from './schema.ts';
import { sendJson } from '../../interface/send.ts';
import { instanceNotFound, instanceOf, missingSshKeys } from './find.ts';
import { routeWithBody } from '../../interface/route.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { InstancePresenter } from './presenter.ts';
import type { Stores } from '../../../caches/caches.ts';

export interface UpdateContext {
  client: KubeClient;
  clock: Clock;
  instances: InstancePresenter;
  stores: Stores<'instances' | 'sshKeys'>;
}

/** What would end the instance on the spot, which nobody means who sets a longest time. */
function overAlready(
  { status }: GpuInstance,
  { max_duration: text, state }: UpdateInstance,
  now: number,
): FieldError[] {
  const ready = Date.parse((status?.claim && status.ending === undefined && status.stages?.ready) || '');
  const ran = now - ready;
  if (!text || state === 'stopped' || Number.isNaN(ran) || parseDuration(text) > ran) return [];
  const minutes = Math.ceil(ran / 60_000);
  const expected = `expected more than ${minutes}m, which this start has run; to end it now, send "state": "stopped"`;
  return [{ path: 'max_duration', expected }];
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
    'another change at the same time is not lost. Stopping frees the GPUs and keeps the disk; starting again needs a ' +
    'free place. max_duration counts from when the login of this start worked, so a longer one extends.',
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
  errors: ['instance_not_found', 'instance_deleting', 'tenant_unavailable'],
  async handle(context: UpdateContext, { request, response, body, caller }) {
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
    const patch = { metadata: { uid }, spec: toInstancePatch(body, context.clock.now()) };
    const changed = await context.client
      .patch(GPU_INSTANCES, { namespace, name }, patch, { type: 'merge' })
      .catch((error: unknown) => {
        // It is gone, or another instance has its name.
        if (error instanceof NotFoundError || error instanceof ConflictError) throw instanceNotFound();
        throw error;
      });
    sendJson(response, context.instances.json(changed));
  },
});
