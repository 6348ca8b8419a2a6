import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { createWorld, type World } from '../../faults/support/world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { run } from '../../../tools/lib/shell.ts';

function kubectl({ kubeconfig, namespace }: World, args: readonly string[], input = ''): ReturnType<typeof run> {
  const { programs } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  return run(program, ['--kubeconfig', kubeconfig, '-n', namespace, ...args], { input });
}

function apply(world: World, text: string): ReturnType<typeof run> {
  return kubectl(world, ['apply', '-f', '-'], text);
}

function manifest({ fleet }: World, spec: string): string {
  const head = `apiVersion: berth.dev/v1alpha1\nkind: GPUInstance\nmetadata:\n  name: one\nspec:\n`;
  return `${head}  gpu: {product: ${fleet.product}}\n${spec}`;
}

test('an instance is made, waited for, read, switched off and on, and deleted with kubectl alone', async () => {
  await using world = await createWorld();
  await world.replica();
  expect((await apply(world, manifest(world, '  displayName: mine\n'))).stdout).toContain('created');
  const ready = await kubectl(world, ['wait', 'gpui/one', '--for=condition=Ready', '--timeout=60s']);
  expect(ready.stdout).toContain('condition met');
  const listed = await kubectl(world, ['get', 'berth', '-o', 'wide']);
  expect(listed.stdout).toMatch(/STATE\s+GPU\s+COUNT\s+NODE\s+TYPE\s+PRICE\s+IMAGE\s+POD\s+MESSAGE\s+AGE/);
  expect(listed.stdout).toContain('Running');
  const described = await kubectl(world, ['describe', 'gpui', 'one']);
  for (const words of ['Granted', world.fleet.nodes[0] ?? '', 'per hour', 'Price Per Hour']) {
    expect(described.stdout).toContain(words);
  }
  const { node = '' } = (await world.get('one'))?.status?.claim ?? {};
  for (const [selector, found] of [
    [`status.claim.node=${node},spec.powerState=Running`, 'gpuinstance.berth.dev/one\n'],
    ['status.claim.node=elsewhere', ''],
  ] as const) {
    expect((await kubectl(world, ['get', 'gpui', '--field-selector', selector, '-o', 'name'])).stdout).toBe(found);
  }
  const power = (state: string) =>
    kubectl(world, ['patch', 'gpui/one', '--type=merge', '-p', JSON.stringify({ spec: { powerState: state } })]);
  await power('Stopped');
  const stopped = await kubectl(world, ['wait', 'gpui/one', `--for=jsonpath=${REASON}=Stopped`, '--timeout=60s']);
  expect(stopped.stdout).toContain('condition met');
  await power('Running');
  expect((await kubectl(world, ['wait', 'gpui/one', '--for=condition=Ready', '--timeout=60s'])).code).toBe(0);
  const deleted = await kubectl(world, ['delete', 'gpui', 'one', '--timeout=60s']);
  expect(deleted.stdout).toContain('deleted');
});

test('the pools say what they rent out, for how much, and how much of it is free', async () => {
  await using world = await createWorld();
  await world.replica();
  await waitFor('the classes', async () => {
    const { stdout } = await kubectl(world, ['get', 'gpupools']);
    const [head = '', ...rows] = stdout.split('\n');
    return head.includes('CLASSES') && rows.some((row) => row.includes(`1 x ${world.fleet.product} at 3600.00: `));
  });
});

const REASON = '{.status.conditions[?(@.type=="Ready")].reason}';

test.each([
  ['  maxDuration: a while\n', 'write a duration such as 90m, 12h or 1h30m'],
  ['  image: "No Image"\n', 'write an image such as ubuntu:24.04'],
  ['  runtype: ssh\n  args: [x]\n', 'with ssh and jupyter write onStart instead'],
  ['  env: [{name: 1A}]\n', 'write letters, digits, - _ and . only'],
  [
    '  env: [{name: A}, {name: NVIDIA_VISIBLE_DEVICES, value: all}]\n',
    'NVIDIA_VISIBLE_DEVICES: the container runtime of the node reads it',
  ],
])('a refusal of %j says what to write', async (spec, words) => {
  await using world = await createWorld();
  const { code, stderr } = await apply(world, manifest(world, spec));
  expect(code).not.toBe(0);
  expect(stderr).toContain(words);
});

test('kubectl explain has words for what a user wonders about', async () => {
  await using world = await createWorld();
  for (const [field, words] of [
    ['spec', 'The desired state'],
    ['spec.maxDuration', 'Longest time'],
    ['spec.onNoCapacity', 'wait in line'],
    ['status.claim', 'The place that the controller granted'],
  ]) {
    const { stdout } = await kubectl(world, ['explain', `gpuinstances.${field}`]);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(words);
  }
});
