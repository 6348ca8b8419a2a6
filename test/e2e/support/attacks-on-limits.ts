import { account, type Attack, CREATE, custom, LENIENT, MANAGER, type Targets } from './attack.ts';
import { NAMESPACE, TENANT } from './release.ts';

/** Tries to be without ceilings, and to use the controller's right to write them. */
export function onCeilings({ admin }: Targets): Attack[] {
  const lifted = JSON.stringify({ spec: { objects: { instances: 100_000 } } });
  const liftIt = { command: ['patch', 'tenantlimit', 'berth', '-n', TENANT, '--type=merge', '-p', lifted] };
  const unspent = JSON.stringify({ status: { budget: null } });
  const spendAgain = {
    command: ['patch', 'tenantlimit', 'berth', '-n', TENANT, '--subresource=status', '--type=merge', '-p', unspent],
  };
  const unlimited = JSON.stringify({ spec: { hard: { 'count/gpuinstances.berth.dev': null } } });
  const writes = "only Berth's controller writes";
  const quota = (namespace: string, name: string, hard: object): object => ({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { namespace, name },
    spec: { hard },
  });
  const ownQuota = "Berth's controller writes the ResourceQuota berth of tenants";
  const counted = { 'count/sshkeys.berth.dev': '1' };
  const byController: [string, object][] = [
    ['stops the pods of a tenant with a quota', quota(LENIENT, 'berth', { pods: '0' })],
    ['makes a quota of another name', quota(LENIENT, 'other', counted)],
    ['makes a quota for the cluster itself', quota('kube-system', 'berth', counted)],
    ['makes a quota for Berth', quota(NAMESPACE, 'berth', counted)],
  ];
  return [
    { title: 'an administrator lifts the ceilings of a tenant by hand', ...liftIt, refusal: `${writes} tenantlimits` },
    { title: 'a tenant lifts its ceilings', as: admin, ...liftIt, refusal: 'cannot patch resource "tenantlimits"' },
    {
      title: 'an administrator writes that a tenant has spent nothing',
      ...spendAgain,
      refusal: `${writes} tenantlimits/status`,
    },
    {
      title: 'a tenant writes that it has spent nothing',
      as: admin,
      ...spendAgain,
      refusal: 'resource "tenantlimits/status"',
    },
    {
      title: 'a tenant makes a policy for itself',
      as: admin,
      command: CREATE,
      input: { apiVersion: 'berth.dev/v1alpha1', kind: 'TenantPolicy', metadata: { name: 'attack' }, spec: {} },
      refusal: 'cannot create resource "tenantpolicies"',
    },
    {
      title: 'an administrator lifts the quota of a tenant by hand',
      command: ['patch', 'resourcequota', 'berth', '-n', TENANT, '--type=merge', '-p', unlimited],
      refusal: `${writes} resourcequotas`,
    },
    {
      title: 'an administrator deletes the quota of a tenant',
      command: ['delete', 'resourcequota', 'berth', '-n', TENANT],
      refusal: `${writes} resourcequotas`,
    },
    {
      title: 'a tenant deletes its quota',
      as: admin,
      command: ['delete', 'resourcequota', 'berth', '-n', TENANT],
      refusal: 'cannot delete resource "resourcequotas"',
    },
    {
      title: 'a tenant names a RuntimeClass that it may not use',
      as: admin,
      command: CREATE,
      input: custom('GPUInstance', TENANT, { runtimeClassName: 'runc' }),
      refusal: 'the ceiling runtimeClassNames does not allow this tenant RuntimeClass runc',
    },
    ...byController.map(([what, input]) => ({
      title: `the controller ${what}`,
      as: account('controller'),
      command: [...CREATE, '--dry-run=server'],
      input,
      refusal: ownQuota,
    })),
  ];
}

/** Tries to get an API key of any tenant with the account that serves calls. */
export function forKeys(): Attack[] {
  const as = account('api');
  const session = 'berth-dashboard-session';
  const own = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { namespace: NAMESPACE, name: session } };
  const key = custom('APIKey', TENANT, { hash: 'a'.repeat(64) });
  return [
    {
      title: 'the api role makes an API key',
      as,
      command: CREATE,
      input: key,
      refusal: 'cannot create resource "apikeys"',
    },
    {
      title: "the dashboard makes an API key in Berth's own namespace",
      as: account('dashboard'),
      command: CREATE,
      input: custom('APIKey', NAMESPACE, { hash: 'a'.repeat(64) }),
      refusal: "this namespace is Berth's own and no tenant",
    },
    {
      title: "an administrator rents in Berth's own namespace",
      command: CREATE,
      input: custom('GPUInstance', NAMESPACE, {}),
      refusal: "this namespace is Berth's own and no tenant",
    },
    {
      title: 'the api role gives an API key all scopes',
      as,
      // Unlike `kubectl patch`, this reads nothing first.
      command: ['apply', '--server-side', `--field-manager=${MANAGER}`, '-f', '-'],
      input: key,
      refusal: 'cannot patch resource "apikeys"',
    },
    {
      title: 'the api role reads the key with which it could sign in to the dashboard as anybody',
      as,
      command: ['get', 'secret', session, '-n', NAMESPACE],
      refusal: 'cannot get resource "secrets"',
    },
    {
      title: 'the api role makes that key before the dashboard does',
      as,
      command: CREATE,
      input: own,
      refusal: 'this role of Berth makes the Secret berth-port-session in its own namespace',
    },
    {
      title: 'the api role asks the cluster whose token it has',
      as,
      command: ['create', '--raw', '/apis/authentication.k8s.io/v1/tokenreviews', '-f', '-'],
      input: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'any' } },
      refusal: 'cannot create resource "tokenreviews"',
    },
    {
      title: 'the controller role makes a pool that takes nodes of another',
      as: account('controller'),
      command: ['create', '--raw', '/apis/berth.dev/v1alpha1/gpupools', '-f', '-'],
      input: { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUPool', metadata: { name: 'mine' }, spec: {} },
      refusal: "Berth's controller makes no GPUPool but default",
    },
    {
      title: 'the dashboard role chooses the runtime of what tenants rent',
      as: account('dashboard'),
      // Unlike `kubectl patch`, this reads nothing first.
      command: ['apply', '--server-side', '--force-conflicts', `--field-manager=${MANAGER}`, '-f', '-'],
      input: {
        apiVersion: 'berth.dev/v1alpha1',
        kind: 'GPUPool',
        metadata: { name: 'default' },
        spec: { runtimeClassName: 'runc' },
      },
      refusal: "Berth's dashboard changes the prices, the currency and the sizes of pools",
    },
    {
      title: 'the dashboard role reads what a tenant rents',
      as: account('dashboard'),
      command: ['get', 'gpuinstances', '-n', TENANT],
      refusal: 'cannot list resource "gpuinstances"',
    },
  ];
}
