import { expect, test } from 'vitest';
import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  GoneError,
  InvalidError,
  isNamespaceTerminating,
  isPolicyRefusal,
  isQuotaExceeded,
  KubeError,
  NotFoundError,
  PatchTestFailedError,
  PolicyNotReadyError,
  QuotaContendedError,
  QuotaUncountedError,
  TimeoutError,
  toKubeError,
  TooManyRequestsError,
  UnauthorizedError,
  watchEventError,
} from '../../../src/kube/errors.ts';
import { status } from '../../support/local-server.ts';

const CALL = 'GET /api/v1/pods';

test.each([
  [401, 'Unauthorized', UnauthorizedError],
  [403, 'Forbidden', ForbiddenError],
  [404, 'NotFound', NotFoundError],
  [409, 'AlreadyExists', AlreadyExistsError],
  [409, 'Conflict', ConflictError],
  [410, 'Expired', GoneError],
  [410, 'Gone', GoneError],
  [422, 'Invalid', InvalidError],
  [429, 'TooManyRequests', TooManyRequestsError],
  [504, 'Timeout', TimeoutError],
  [500, 'ServerTimeout', TimeoutError],
  [500, 'InternalError', KubeError],
])('a Status %i %s becomes its own class', (code, reason, type) => {
  const error = toKubeError(CALL, { status: code, body: status(code, reason, 'the words of the server') });
  expect(error.constructor).toBe(type);
  expect(error.name).toBe(type.name);
  expect(error).toMatchObject({ status: code, reason });
  expect(error.message).toBe(`${CALL}: ${code} ${reason}: the words of the server`);
});

test.each([
  [404, NotFoundError],
  [409, ConflictError],
  [429, TooManyRequestsError],
  [502, KubeError],
])('an answer %i without a Status body, as of a proxy, is told by its code', (code, type) => {
  const error = toKubeError(CALL, { status: code, body: '<html>from a proxy</html>' });
  expect(error.constructor).toBe(type);
  expect(error.message).toContain('from a proxy');
});

test('the wait asked for comes from the header, else from the Status', () => {
  const body = status(429, 'TooManyRequests', 'slow down', { retryAfterSeconds: 7 });
  expect(toKubeError(CALL, { status: 429, body }).retryAfterMs).toBe(7000);
  expect(toKubeError(CALL, { status: 429, body, retryAfterMs: 2000 }).retryAfterMs).toBe(2000);
});

test('a long message is cut', () => {
  expect(toKubeError(CALL, { status: 500, body: 'x'.repeat(100_000) }).message.length).toBeLessThan(1200);
});

test('an ERROR event carries its code in the Status', () => {
  expect(watchEventError('watch', status(410, 'Expired'))).toBeInstanceOf(GoneError);
  expect(watchEventError('watch', { kind: 'Pod' }).status).toBe(500);
});

test('the words of the server stand apart from the call', () => {
  const body = status(403, 'Forbidden', 'Forbidden: reasons: two of them');
  expect(toKubeError(CALL, { status: 403, body }).statusMessage).toBe('Forbidden: reasons: two of them');
  expect(toKubeError(CALL, { status: 502, body: ' a proxy ' }).statusMessage).toBe('a proxy');
});

test('a namespace that is being deleted is found by its cause', () => {
  const details = { causes: [{ reason: 'NamespaceTerminating', message: '', field: '' }] };
  const error = toKubeError(CALL, { status: 403, body: status(403, 'Forbidden', '', details) });
  const other = { causes: [{ reason: 'Other', message: '', field: '' }] };
  expect(isNamespaceTerminating(error)).toBe(true);
  expect(isNamespaceTerminating(toKubeError(CALL, { status: 403, body: status(403, 'Forbidden', '', other) }))).toBe(
    false,
  );
  expect(isNamespaceTerminating(new Error('other'))).toBe(false);
});

const PREDICATES = {
  namespaceTerminating: isNamespaceTerminating,
  quotaExceeded: isQuotaExceeded,
  policyRefusal: isPolicyRefusal,
  patchTestFailed: (error: KubeError) => error instanceof PatchTestFailedError && error instanceof ConflictError,
  invalid: (error: KubeError) => error instanceof InvalidError,
  policyNotReady: (error: KubeError) => error instanceof PolicyNotReadyError,
  quotaUncounted: (error: KubeError) => error instanceof QuotaUncountedError && error instanceof ForbiddenError,
  quotaContended: (error: KubeError) => error instanceof QuotaContendedError && error instanceof ConflictError,
};

// Messages as Kubernetes writes them; src/kube/errors.ts names the files.
test.each<[code: number, reason: string | undefined, message: string, is: (keyof typeof PREDICATES)[]]>([
  [
    403,
    'Forbidden',
    'pods "i-1" is forbidden: unable to create new content in namespace a because it is being terminated',
    ['namespaceTerminating'],
  ],
  [
    403,
    'Forbidden',
    'pods "i-1" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3',
    ['quotaExceeded', 'policyRefusal'],
  ],
  [
    403,
    'Forbidden',
    'apikeys.berth.dev "k" is forbidden: status unknown for quota: berth, resources: count/apikeys.berth.dev',
    ['quotaUncounted'],
  ],
  [403, 'Forbidden', 'pods "i-1" is forbidden: failed quota: few: must specify limits.cpu', ['policyRefusal']],
  [403, 'Forbidden', 'admission webhook "costs.example.com" denied the request: no money', ['policyRefusal']],
  [400, undefined, 'admission webhook "costs.example.com" denied the request without explanation', ['policyRefusal']],
  [
    403,
    'Forbidden',
    `pods "i-1" is forbidden: ValidatingAdmissionPolicy 'tenants' with binding 'tenants' denied request: no tenant`,
    ['policyRefusal'],
  ],
  [403, 'Forbidden', 'pods is forbidden: User "api" cannot create resource "pods" in API group ""', []],
  [500, 'InternalError', 'failed calling webhook "costs.example.com": connection refused', []],
  [
    409,
    'Conflict',
    'Operation cannot be fulfilled on sshkeys.berth.dev "guid": uid mismatch: the provided object specified uid 1, and no existing object was found',
    [],
  ],
  [
    409,
    'Conflict',
    'Operation cannot be fulfilled on pods "i-1": Precondition failed: UID in precondition: 1, UID in object meta: 2',
    [],
  ],
  [
    409,
    'Conflict',
    'Operation cannot be fulfilled on sshkeys.berth.dev "guid": the object has been modified; please apply your changes to the latest version and try again',
    [],
  ],
  [
    409,
    'Conflict',
    'Operation cannot be fulfilled on resourcequotas "berth": the object has been modified; please apply your changes to the latest version and try again',
    ['quotaContended'],
  ],
  [422, 'Invalid', 'the server rejected our request due to an error in our request', ['patchTestFailed']],
  [
    422,
    'Invalid',
    `ValidatingAdmissionPolicy 'berth-ceilings' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'berth.dev/v1alpha1, Kind=TenantLimit'`,
    ['policyNotReady'],
  ],
  [
    422,
    'Invalid',
    `ValidatingAdmissionPolicy 'berth-ceilings' with binding 'berth-ceilings' denied request: failed to configure binding: paramKind kind \`berth.dev/v1alpha1, Kind=TenantLimit\` not yet synced to use for admission`,
    ['policyNotReady'],
  ],
  [422, 'Invalid', 'GPUInstance.berth.dev "i-1" is invalid: spec.type: Unsupported value: "Spot"', ['invalid']],
])('a refusal %i %s "%s" is %j', (code, reason, message, is) => {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    details: {},
    code,
  };
  const error = toKubeError(CALL, { status: code, body });
  const held = Object.entries(PREDICATES).filter(([, predicate]) => predicate(error));
  expect(held.map(([name]) => name)).toEqual(is);
});
