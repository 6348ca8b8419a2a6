import { expect, test } from 'vitest';
import { conditionsOf } from '../../../src/controllers/gpu-instance/decide/status/conditions.ts';
import { templateHash } from '../../../src/resources/instance-template.ts';
import { startHash } from '../../../src/resources/instances/instance-state.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { EARLIER, observed, READY, readyNode, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

/** What tools read that wait for an object: the conditions among these that are true. */
function trueOf(seen: ReturnType<typeof observed>): string[] {
  const conditions = conditionsOf(seen, undefined);
  expect(conditions[0]?.type).toBe('Ready');
  const read = conditions.filter(({ type }) => ['Ready', 'Stalled', 'Suspended', 'Reconciling'].includes(type));
  return read.filter(({ status }) => status === 'True').map(({ type }) => type);
}

function ended(reason: string, spec: object = {}): GpuInstance {
  const ending = { reason, message: '', at: EARLIER, generation: 1, startHash: startHash(gpuInstance('one').spec) };
  const instance = gpuInstance('one', spec, { incarnation: 1, ending });
  return { ...instance, metadata: { ...instance.metadata, generation: 1 } };
}

test.each([
  ['is stopped on purpose', ended('Stopped', { powerState: 'Stopped' }), ['Suspended']],
  ['ran for its time', ended('Expired'), ['Suspended']],
  ['has done its work', ended('Completed'), ['Suspended']],
  ['failed', ended('ContainerFailed'), ['Stalled']],
  ['may not be root', ended('ForbiddenRoot'), ['Stalled']],
  ['was interrupted', ended('Preempted'), []],
  ['is new', gpuInstance('one'), []],
])('an instance that %s says so to kstatus, Flux and Argo CD', (_how, instance, expected) => {
  expect(trueOf(observed({ instance }))).toEqual(expected);
});

test('an instance that runs is ready, and says neither any more', () => {
  const pod = startedPod({ conditions: [SCHEDULED, READY] });
  const { instance, ...seen } = observed({ pod, node: readyNode() });
  const since = { status: 'True', reason: 'Stopped', message: '', lastTransitionTime: EARLIER } as const;
  const conditions = [
    { type: 'Ready', ...since, status: 'False' as const },
    { type: 'Suspended', ...since },
    { type: 'Stalled', ...since },
  ];
  const before = { ...instance, status: { ...instance.status, conditions } };
  expect(trueOf({ ...seen, instance: before })).toEqual(['Ready']);
});

test('what an item of a list leaves out changes neither a start nor a template', () => {
  const bare = { env: [{ name: 'A' }], ports: [{ containerPort: 80 }] };
  const full = { env: [{ name: 'A', value: '' }], ports: [{ containerPort: 80, protocol: 'TCP' as const }] };
  expect(startHash(gpuInstance('one', bare).spec)).toBe(startHash(gpuInstance('one', full).spec));
  expect(templateHash({ displayName: '', ...bare })).toBe(templateHash({ displayName: 'x', ...full }));
  const udp = { ...full, ports: [{ containerPort: 80, protocol: 'UDP' as const }] };
  expect(startHash(gpuInstance('one', udp).spec)).not.toBe(startHash(gpuInstance('one', full).spec));
});
