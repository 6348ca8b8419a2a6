import { expect, test } from 'vitest';
import type { Deployment } from '../../../src/kube/installation-types.ts';
import type { KubeObject, Lease } from '../../../src/kube/types.ts';
import { expectOnly, findingsOf, objects, type Planted } from '../../support/sound-installation.ts';

/** The sound installation as it is with webhooks.enabled, and then changed. */
function withWebhooks(change: (notifier: Deployment, lease: Lease) => [Deployment?, Lease?]): Planted {
  return objects((sound) => {
    const deployments = sound.deployments as Deployment[];
    const ssh = deployments.find(({ metadata }) => metadata.name === 'berth-ssh');
    const [controller] = sound.leases as Lease[];
    if (ssh === undefined || controller === undefined) throw new Error('There is no role to copy.');
    const labels = { ...ssh.metadata.labels, 'app.kubernetes.io/component': 'notifier' };
    const notifier = { ...ssh, metadata: { ...ssh.metadata, name: 'berth-notifier', labels } };
    const lease = { ...controller, metadata: { ...controller.metadata, name: 'berth-notifier' } };
    const [role, leader] = change(notifier, lease);
    const served = deployments.map((one) => (one.metadata.name === 'berth-api' ? servingWebhooks(one) : one));
    return {
      deployments: [...served, ...(role ? [role] : [])] as KubeObject[],
      notifierLeases: leader ? [leader] : [],
    };
  });
}

function servingWebhooks(api: Deployment): Deployment {
  const copy = structuredClone(api);
  copy.spec?.template.spec?.containers[0]?.env?.push({ name: 'BERTH_WEBHOOKS', value: 'true' });
  return copy;
}

const silent = { holderIdentity: 'x', leaseDurationSeconds: 8, renewTime: '2026-11-23T11:00:00.000000Z' };

test('where webhooks are on, a notifier that is ready and leads is no fault', () => {
  expect(findingsOf(withWebhooks((notifier, lease) => [notifier, lease]))).toEqual([]);
});

test.each<[fault: string, found: string, planted: Planted]>([
  ['no notifier', 'roles RoleMissing error', withWebhooks((_, lease) => [undefined, lease])],
  [
    'a notifier that is not ready',
    'roles RoleNotReady error',
    withWebhooks((notifier, lease) => [{ ...notifier, status: {} }, lease]),
  ],
  [
    'a notifier at zero',
    'roles RoleSwitchedOff error',
    withWebhooks((notifier, lease) => [
      { ...notifier, spec: { ...notifier.spec, replicas: 0 } as Deployment['spec'], status: {} },
      lease,
    ]),
  ],
  ['a notifier that does not lead', 'roles NoLeader error', withWebhooks((notifier) => [notifier, undefined])],
  [
    'a notifier that is silent',
    'roles LeaderSilent error',
    withWebhooks((notifier, lease) => [notifier, { ...lease, spec: silent }]),
  ],
  [
    'a policy of the notifier that refuses nothing',
    'admission PolicyNotBound error',
    objects(({ policies }) => ({ policies: [...policies, { metadata: { name: 'berth-notifier' } }] })),
  ],
])('%s is found, and nothing else: %s', (_fault, expected, planted) => expectOnly(planted, expected));
