import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { pullPod } from '../../../src/controllers/images/pull-pod.ts';
import { diskGroupOf } from '../../../src/controllers/gpu-instance/decide/pod/disk-group.ts';
import { missingPod, reachingPod, serverPod } from '../../../src/doctor/probe.ts';
import type { Container, Pod } from '../../../src/kube/types.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import {
  type Constraints,
  CONSTRAINTS,
  filled,
  podsIn,
  refusalsOf,
  SCC_ANNOTATIONS,
  SCC_GROUPS,
} from '../../../tools/release/openshift.ts';
import { gpuInstance, gpuPool } from '../../support/inventory-world.ts';
import { podOf } from '../../support/pod-of.ts';

// What OpenShift would admit, by its rules: nobody ran Berth there.

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const page = read('docs/run/install.md').split('### OpenShift')[1]?.split('\n## ')[0] ?? '';

/** Those that the page tells the operator to make for users of images, and for root. */
const OWN: Constraints = { ...CONSTRAINTS.anyuid, seccompProfiles: ['runtime/default'] };

/** The names of what admits a pod. */
function admitting(pod: Pod): string[] {
  const all: [string, Constraints][] = [...Object.entries(CONSTRAINTS), ['the operator', OWN]];
  return all.filter(([, constraints]) => refusalsOf(pod, constraints).length === 0).map(([name]) => name);
}

/** The group of disks in a namespace as OpenShift annotates it. */
const GROUP = diskGroupOf({ metadata: { name: 'team', annotations: SCC_GROUPS } });
const EACH = ['restricted-v2', 'nonroot-v2', 'the operator'];
const asRoot = (spec: object = {}): Pod => podOf(gpuInstance('one', { runAsRoot: true, ...spec }));

describe('pods that the controller and the doctor make', () => {
  const pull = pullPod({
    pool: gpuPool('p', { images: ['a:1'] }),
    name: 'berth-pull-1',
    node: 'n',
    image: 'a:1',
    namespace: 'berth-system',
    toolsImage: 'tools',
    imagePullSecrets: [],
  });
  const image = { image: 'berth' };
  it.each<[string, Pod, readonly string[]]>([
    ['an instance', podOf(gpuInstance('one')), EACH],
    ['an instance of Jupyter', podOf(gpuInstance('one', { runtype: 'jupyter', installMonitoring: true })), EACH],
    ['an instance with the entrypoint of its image', podOf(gpuInstance('one', { runtype: 'args' })), EACH],
    ['an instance under Pod Security restricted', podOf(gpuInstance('one'), { restricted: true }), EACH],
    ['an instance with a disk', podOf(gpuInstance('one'), { diskPersistent: true, diskGroup: GROUP }), EACH],
    [
      'an instance with the disk of another cluster',
      podOf(gpuInstance('one'), { diskPersistent: true }),
      EACH.slice(1),
    ],
    ['an instance as root', asRoot(), EACH.slice(2)],
    ['an instance as root with its entrypoint', asRoot({ runtype: 'args' }), EACH.slice(2)],
    ['a pod that pulls', pull, EACH],
    ['the server of the probe', serverPod('x', image), EACH],
    ['a client of the probe', reachingPod('x', '10.0.0.1', image), EACH],
    ['the other client of the probe', missingPod('x', '10.0.0.1', image), EACH],
  ])('%s', (_what, pod, expected) => {
    expect(admitting(pod)).toEqual(expected);
  });
});

test("the chart's pods need their user left out, as the page has it", () => {
  const pods = ['controller', 'api', 'dashboard', 'ssh'].flatMap((role) => podsIn(read(`deploy/base/${role}.yaml`)));
  expect(pods.map(admitting)).toEqual(pods.map(() => EACH.slice(1)));
  const left = pods.map(({ metadata, spec }) => {
    const { runAsUser: _user, runAsGroup: _group, fsGroup: _fsGroup, ...securityContext } = spec?.securityContext ?? {};
    return { metadata, spec: { containers: [], ...spec, securityContext } };
  });
  expect(left.map(admitting)).toEqual(pods.map(() => EACH));
});

test('the page has the values that the check of the chart renders with, and names what pods need', () => {
  const [, block = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  expect(parse(block)).toEqual(parse(read('charts/berth/ci/openshift-values.yaml')));
  expect(page).toContain('oc get scc anyuid -o json');
  expect(page).toContain('.seccompProfiles = ["runtime/default"]');
  expect(page).toContain('oc adm policy add-scc-to-group berth');
});

test("the chart's policies take what OpenShift writes to pods of the controller", () => {
  const admission = read('deploy/base/admission.yaml');
  const [, list = '[]'] = /variables\.after\.filter\(key, !\(key in (\[[^\]]*\])\)/.exec(admission) ?? [];
  expect(JSON.parse(list)).toEqual(expect.arrayContaining(Object.keys(SCC_ANNOTATIONS)));
});

describe('the model', () => {
  const made = (
    context: object = {},
    { main = {}, spec = {} }: { main?: Partial<Container>; spec?: object } = {},
  ): Pod => ({
    metadata: { name: 'a' },
    spec: { containers: [{ name: 'main', securityContext: context, ...main }], ...spec },
  });
  it.each<[string, Pod, keyof typeof CONSTRAINTS, string[]]>([
    ['nothing', made(), 'restricted-v2', []],
    ['a user', made({ runAsUser: 1000 }), 'restricted-v2', ['main: runAsUser: 1000 is not of the namespace']],
    ['a user of the namespace', made({ runAsUser: 1_000_680_001 }), 'restricted-v2', []],
    ['a user, elsewhere', made({ runAsUser: 1000 }), 'nonroot-v2', []],
    ['root', made({ runAsUser: 0 }), 'nonroot-v2', ['main: runAsUser: must not be root']],
    [
      'root of all',
      made({}, { spec: { securityContext: { runAsUser: 0 } } }),
      'nonroot-v2',
      ['main: runAsUser: must not be root'],
    ],
    ['maybe root', made({ runAsNonRoot: false }), 'nonroot-v2', ['main: runAsUser: must not be root']],
    [
      'a group',
      made({}, { spec: { securityContext: { fsGroup: 5 } } }),
      'restricted-v2',
      ['fsGroup: 5 is not that of the namespace'],
    ],
    ['a capability', made({ capabilities: { add: ['NET_RAW'] } }), 'restricted-v2', ['main: capabilities.add']],
    ['privileges', made({ privileged: true }), 'nonroot-v2', ['main: privileged']],
    ['more privileges', made({ allowPrivilegeEscalation: true }), 'nonroot-v2', ['main: allowPrivilegeEscalation']],
    ['no profile', made({ seccompProfile: { type: 'Unconfined' } }), 'restricted-v2', ['main: seccompProfile']],
    ['the profile', made({ seccompProfile: { type: 'RuntimeDefault' } }), 'anyuid', ['main: seccompProfile']],
    [
      'a port of the node',
      made({}, { main: { ports: [{ containerPort: 1, hostPort: 1 }] } }),
      'restricted-v2',
      ['main: hostPort'],
    ],
    [
      'a folder of the node',
      made({}, { spec: { volumes: [{ name: 'a', hostPath: { path: '/' } }] } }),
      'nonroot-v2',
      ['volumes'],
    ],
    [
      'the network of the node',
      made({}, { spec: { hostNetwork: true } }),
      'restricted-v2',
      ['a namespace of the node'],
    ],
  ])('refuses what OpenShift refuses: %s', (_what, pod, name, expected) => {
    expect(refusalsOf(pod, CONSTRAINTS[name])).toEqual(expected);
  });

  it('fills in what a pod leaves out, and changes nothing that it says', () => {
    const pod = filled(made({ capabilities: { drop: ['MKNOD'] } }), CONSTRAINTS['restricted-v2']);
    expect(pod.spec?.securityContext).toMatchObject({ fsGroup: 1_000_680_000, seLinuxOptions: { level: 's0:c26,c5' } });
    expect(pod.spec?.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      runAsUser: 1_000_680_000,
      runAsNonRoot: true,
      capabilities: { drop: ['MKNOD', 'ALL'] },
    });
  });
});
