import { expect, test } from 'vitest';
import { diskGroupOf } from '../../../src/controllers/gpu-instance/decide/pod/disk-group.ts';
import type { PodInput } from '../../../src/controllers/gpu-instance/decide/pod/desired-pod.ts';
import { settingsOf } from '../../../src/controllers/gpu-instance/decide/settings.ts';
import { hasMonitor } from '../../../src/resources/pod/monitor.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { podOf } from '../../support/pod-of.ts';

const GIB = 2 ** 30;
const GROUPS = 'openshift.io/sa.scc.supplemental-groups';
const USERS = 'openshift.io/sa.scc.uid-range';

/** On a node whose machine has something to give. */
function madePod(over: Partial<PodInput> = {}) {
  return podOf(gpuInstance('one'), {
    requests: { pods: 1, cpu: 6000, memory: 48 * GIB, 'nvidia.com/gpu': 1 },
    memoryLimit: 64 * GIB,
    scratchLimit: 100 * GIB,
    diskPersistent: true,
    imagePullPolicy: 'Always',
    ...over,
  });
}

test("credentials for Berth's images come after those of the tenant", () => {
  const instance = gpuInstance('one', { imagePullSecrets: [{ name: 'team' }] });
  expect(podOf(instance, { hasPullSecret: true }).spec?.imagePullSecrets).toEqual([
    { name: 'team' },
    { name: 'berth.image-pull' },
  ]);
  expect(podOf(gpuInstance('one')).spec).not.toHaveProperty('imagePullSecrets');
});

// The 64 MiB of a runtime break PyTorch's DataLoader and NCCL.
test('shared memory is half of the memory', () => {
  const { volumes, containers } = madePod().spec ?? {};
  expect(volumes).toContainEqual({ name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: String(32 * GIB) } });
  expect(containers?.[0]?.volumeMounts).toContainEqual({ name: 'shm', mountPath: '/dev/shm' });
  expect(madePod({ memoryLimit: 0 }).spec?.volumes).toContainEqual({ name: 'shm', emptyDir: { medium: 'Memory' } });
});

test('on a PersistentVolumeClaim users other than root can write, and a folder of the node needs nothing for it', () => {
  expect(madePod().spec?.securityContext).toMatchObject({ fsGroup: 1000, fsGroupChangePolicy: 'OnRootMismatch' });
  expect(madePod({ diskPersistent: false }).spec?.securityContext?.fsGroup).toBeUndefined();
});

test.each<[string, Record<string, string> | undefined, number]>([
  ['nobody annotates', undefined, 1000],
  ['OpenShift annotates', { [GROUPS]: '1000680000/10000', [USERS]: '1000690000/10000' }, 1_000_680_000],
  ['an older OpenShift annotates', { [USERS]: '1000690000/10000' }, 1_000_690_000],
  ['has two ranges', { [GROUPS]: '1000680000-1000689999,5-9' }, 1_000_680_000],
  ['would give the group of root', { [GROUPS]: '0/10' }, 1000],
  ['has more than a group can be', { [GROUPS]: '4294967296/10' }, 1000],
  ['has no range', { [GROUPS]: 'x' }, 1000],
])('the group of the disks of a namespace that %s', (_name, annotations, group) => {
  expect(diskGroupOf({ metadata: { name: 'team', ...(annotations && { annotations }) } })).toBe(group);
});

test('beside a PersistentVolumeClaim a container writes no more to the node than its share, and requests nothing', () => {
  const resources = madePod().spec?.containers[0]?.resources;
  expect(resources?.limits).toMatchObject({ 'ephemeral-storage': String(100 * GIB), memory: String(64 * GIB) });
  expect(resources?.requests).toMatchObject({ 'ephemeral-storage': '0', memory: String(48 * GIB) });
  const unknown = madePod({ scratchLimit: 0 }).spec?.containers[0]?.resources;
  expect(unknown?.limits?.['ephemeral-storage']).toBeUndefined();
  expect(unknown?.requests?.['ephemeral-storage']).toBeUndefined();
});

test('a disk on the node is the limit of everything that is written there', () => {
  const requests = { pods: 1, 'nvidia.com/gpu': 1, 'ephemeral-storage': 10 * GIB };
  const resources = madePod({ diskPersistent: false, requests }).spec?.containers[0]?.resources;
  expect(resources?.limits).toMatchObject({ 'ephemeral-storage': String(10 * GIB) });
  expect(resources?.requests).toMatchObject({ 'ephemeral-storage': String(10 * GIB) });
});

test('the exporter is part of a pod that asked for it, unless the entrypoint is the one of the image', () => {
  const monitored = (runtype: 'ssh' | 'jupyter' | 'args', installMonitoring = true) => {
    const instance = gpuInstance('one', { installMonitoring, runtype });
    const pod = madePod({ instance, settings: settingsOf(instance.spec, undefined, 'debian:12') });
    const starts = JSON.stringify(pod.spec?.containers[0]?.command ?? []).includes('/monitor serve 44189 /workspace');
    return [starts, hasMonitor(pod)];
  };
  expect(monitored('ssh')).toEqual([true, true]);
  expect(monitored('jupyter')).toEqual([true, true]);
  expect(monitored('args')).toEqual([false, false]);
  expect(monitored('ssh', false)).toEqual([false, false]);
});
