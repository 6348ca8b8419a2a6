import { expect, it } from 'vitest';
import { toApiError } from '../../../src/http/interface/errors/from-error.ts';
import { toKubeError } from '../../../src/kube/errors.ts';

const CALL = 'POST /apis/berth.dev/v1alpha1/namespaces/a/gpuinstances';

function answer(status: number, reason: string | undefined, message: string): [code: string, message: string] {
  const error = toApiError(toKubeError(CALL, { status, body: { kind: 'Status', reason, message } }));
  return [error.code, error.message];
}

it.each([
  [403, 'Forbidden', 'gpuinstances.berth.dev "i" is forbidden: exceeded quota: few, requested: 1, limited: 1'],
  [403, 'Forbidden', 'admission webhook "costs.example.com" denied the request: the project has no money'],
  [
    403,
    'Forbidden',
    `gpuinstances.berth.dev "i" is forbidden: ValidatingAdmissionPolicy 'days' with binding 'days' denied request: nobody rents on Sundays`,
  ],
  // The API server's words for a webhook that refuses without a message.
  [400, undefined, 'admission webhook "costs.example.com" denied the request without explanation'],
])('what the cluster refuses by its rules is told in its words: %d %s %s', (status, reason, words) => {
  expect(answer(status, reason, words)).toEqual(['quota_exceeded', `The cluster refuses: ${words}`]);
});

it('a namespace that is no tenant is named, with the command that makes it one', () => {
  const advice =
    'namespace a is no tenant of Berth. An operator of the cluster makes it one: kubectl label namespace a berth.dev/tenant=true';
  const words = `gpuinstances.berth.dev "i" is forbidden: ValidatingAdmissionPolicy 'berth-tenants' with binding 'berth-tenants' denied request: ${advice}`;
  expect(answer(403, 'Forbidden', words)).toEqual(['not_a_tenant', `Nothing was made: ${advice}`]);
});

it.each([
  [403, 'Forbidden', 'gpuinstances.berth.dev is forbidden: User "api" cannot create resource "gpuinstances"'],
  [500, 'InternalError', 'failed calling webhook "costs.example.com": connection refused'],
  [
    422,
    'Invalid',
    `ValidatingAdmissionPolicy 'berth-ceilings' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'berth.dev/v1alpha1, Kind=TenantLimit'`,
  ],
])('what is a fault of the cluster is not: %d %s %s', (status, reason, words) => {
  const [code, message] = answer(status, reason, words);
  expect(code).toBe('cluster_unavailable');
  expect(message).not.toContain(words);
});

const QUOTA = 'sshkeys.berth.dev "k-1" is forbidden: exceeded quota: berth, requested: count/sshkeys.berth.dev=1';
const POLICY = `gpuinstances.berth.dev "i" is forbidden: ValidatingAdmissionPolicy 'mine-berth-ceilings' with binding 'mine-berth-ceilings' denied request: image a is not allowed`;

it.each([
  [
    `${QUOTA}, used: count/sshkeys.berth.dev=1k, limited: count/sshkeys.berth.dev=1k`,
    'Nothing was made. This tenant may have 1000 SSH keys and has 1000. Delete one. The operator can change objects.sshKeys in the TenantPolicy that GET /limits names.',
  ],
  [
    `${QUOTA.replaceAll('sshkeys', 'instancetemplates')}, used: count/instancetemplates.berth.dev=2, limited: count/instancetemplates.berth.dev=2`,
    'Nothing was made. This tenant may have 2 templates and has 2. Delete one. The operator can change objects.templates in the TenantPolicy that GET /limits names.',
  ],
  [POLICY, 'Nothing was made. image a is not allowed'],
])('a ceiling of the tenant has a code of its own: %s', (words, message) => {
  expect(answer(403, 'Forbidden', words)).toEqual(['tenant_limit', message]);
});

it('a quota of another name is none, also when its name begins alike', () => {
  const words = QUOTA.replace('quota: berth,', 'quota: berth-extra,');
  expect(answer(403, 'Forbidden', `${words}, used: a=1, limited: a=1`)[0]).toBe('quota_exceeded');
});

it.each([
  [500, 'InternalError', 'etcdserver: request is too large'],
  [500, 'InternalError', 'rpc error: code = ResourceExhausted desc = trying to send message larger than max (1 vs. 2)'],
  [413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728'],
])('what Kubernetes cannot store is the fault of the body: %d %s', (status, reason, words) => {
  expect(answer(status, reason, words)[0]).toBe('payload_too_large');
});

it('a quota that is not counted yet is an outage, not a refusal', () => {
  const words =
    'sshkeys.berth.dev "k" is forbidden: status unknown for quota: berth, resources: count/sshkeys.berth.dev';
  expect(answer(403, 'Forbidden', words)[0]).toBe('cluster_unavailable');
});
