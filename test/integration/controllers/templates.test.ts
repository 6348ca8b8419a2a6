import { expect, test } from 'vitest';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import { writeStatus } from '../../../src/controllers/gpu-instance/act/writes.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { ConflictError } from '../../../src/kube/errors.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { INSTANCE_TEMPLATES, type InstanceTemplateSpec } from '../../../src/resources/instance-template.ts';
import { createWorld, type World } from '../../faults/support/world.ts';
import { waitFor } from '../../support/wait-for.ts';

// Whoever else runs controllers in this cluster at the same time holds the lease first.
const LEASE_WAIT_MS = 50_000;

/** Nearly as long as a template may be. */
const LONG = Array.from({ length: 7 }, (_, index) => ({ name: `LONG_${index}`, value: 'x'.repeat(32_768) }));
const GOOD: InstanceTemplateSpec = { displayName: '', image: 'debian:12', onStart: 'echo good', env: LONG };

/** A namespace of another tenant, with a template that it shares. */
async function author({ client, namespace }: World, labels: Record<string, string>) {
  const name = `${namespace}-author`;
  await client.create(NAMESPACES, { metadata: { name, labels } });
  const ref = { namespace: name, name: 't' };
  const made = await client.create(INSTANCE_TEMPLATES, {
    metadata: { ...ref, labels: { 'berth.dev/shared': 'true' } },
    spec: GOOD,
  });
  return {
    templateId: numericId(made.metadata.uid ?? ''),
    edit: (spec: object) => client.patch(INSTANCE_TEMPLATES, ref, { spec }, { type: 'merge' }),
    label: (after: object) => client.patch(NAMESPACES, { name }, { metadata: { labels: after } }, { type: 'merge' }),
    remove: () => client.delete(INSTANCE_TEMPLATES, ref),
    ready: async () => findCondition((await client.get(INSTANCE_TEMPLATES, ref)).status?.conditions, 'Ready'),
    [Symbol.asyncDispose]: () => client.delete(NAMESPACES, { name }),
  };
}

/** onStart of the pod of an instance, and whether it has the rest of the template. */
async function ran(world: World): Promise<unknown> {
  const [pod, ...others] = await world.pods();
  const main = pod?.spec?.containers[0];
  const long = main?.env?.filter(({ name, value }) => name.startsWith('LONG_') && value?.length === 32_768);
  return [others.length, main?.command?.at(-1), long?.length];
}

function current(world: World, reason: string): Promise<unknown> {
  return waitFor(`the template to be ${reason}`, async () => {
    const instance = await world.get('one');
    return findCondition(instance?.status?.conditions, 'TemplateCurrent')?.reason === reason;
  });
}

async function restart(world: World): Promise<void> {
  await world.patch('one', { spec: { powerState: 'Stopped' } });
  await world.reached('one', 'Stopped', LEASE_WAIT_MS);
  await world.patch('one', { spec: { powerState: 'Running' } });
  await world.reached('one', 'Running');
}

test('what an instance runs is kept from the rental on, whatever its author does and whoever leads', async () => {
  await using world = await createWorld();
  await using other = await author(world, { 'berth.dev/shared-templates': 'true' });
  const first = await world.replica();
  await world.create('one', { templateId: other.templateId });
  await world.reached('one', 'Running', LEASE_WAIT_MS);
  await current(world, 'Unchanged');
  await other.edit({ onStart: 'echo evil', env: null });
  await current(world, 'TemplateChanged');
  await restart(world);
  expect(await ran(world)).toEqual([0, 'echo good', LONG.length]);
  await other.remove();
  await current(world, 'TemplateGone');
  await first.stop();
  await world.replica();
  await restart(world);
  expect(await ran(world)).toEqual([0, 'echo good', LONG.length]);
  expect((await world.get('one'))?.status?.template).toMatchObject({ name: 't', spec: { onStart: 'echo good' } });
});

test('an instance without a kept template keeps it when a controller first sees it, and runs on', async () => {
  await using world = await createWorld();
  await using other = await author(world, { 'berth.dev/shared-templates': 'true' });
  const first = await world.replica();
  await world.create('one', { templateId: other.templateId });
  const before = await world.reached('one', 'Running', LEASE_WAIT_MS);
  await first.stop();
  const ref = { namespace: world.namespace, name: 'one' };
  const without = { type: 'merge', subresource: 'status' } as const;
  await world.client.patch(GPU_INSTANCES, ref, { status: { template: null } }, without);
  await world.replica();
  const after = await waitFor(
    'the template to be kept',
    async () => {
      const instance = await world.get('one');
      return instance?.status?.template === undefined ? undefined : instance;
    },
    LEASE_WAIT_MS,
  );
  expect(after.status?.template).toEqual(before.status?.template);
  expect(after.status?.podUid).toBe(before.status?.podUid);
});

test('a leader whose view is from before the copy was written does not replace it', async () => {
  await using world = await createWorld();
  await using other = await author(world, { 'berth.dev/shared-templates': 'true' });
  const first = await world.replica();
  await world.create('one', { templateId: other.templateId });
  await world.reached('one', 'Running', LEASE_WAIT_MS);
  await first.stop();
  const live = await world.get('one');
  const { template, ...before } = live?.status ?? {};
  if (live === undefined || template === undefined) throw new Error('no copy');
  const deps = { client: world.client, fence: { wrote: () => undefined }, stores: {} };
  const run = { deps, key: '', context: {} } as unknown as Run;
  const evil = { ...template, hashId: 'evil', spec: { onStart: 'echo evil' } };
  const write = (seen: GpuInstanceStatus) => writeStatus(run, { ...live, status: seen }, { ...before, template: evil });
  await expect(write(before)).rejects.toThrow(ConflictError);
  await expect(write({ ...before, template: evil, podIP: 'other' })).rejects.toThrow(ConflictError);
  expect((await world.get('one'))?.status?.template).toEqual(template);
});

test('a template is shared only where the operator lets its namespace share, and says so', async () => {
  await using world = await createWorld();
  await using other = await author(world, {});
  await world.replica();
  await world.create('one', { templateId: other.templateId });
  await world.reached('one', 'TemplateNotFound', LEASE_WAIT_MS);
  await waitFor('the template to say so', async () => (await other.ready())?.reason === 'NotShared');
  await other.label({ 'berth.dev/shared-templates': 'true' });
  await world.reached('one', 'Running');
  await waitFor('the template to be shared', async () => (await other.ready())?.reason === 'Valid');
});
