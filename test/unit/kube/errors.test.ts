import { expect, test } from 'vitest';
import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  GoneError,
  hasCause,
  InvalidError,
  KubeError,
  NotFoundError,
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

test('causes are found by reason', () => {
  const details = { causes: [{ reason: 'NamespaceTerminating', message: '', field: '' }] };
  const error = toKubeError(CALL, { status: 403, body: status(403, 'Forbidden', '', details) });
  expect(hasCause(error, 'NamespaceTerminating')).toBe(true);
  expect(hasCause(error, 'Other')).toBe(false);
  expect(hasCause(new Error('other'), 'NamespaceTerminating')).toBe(false);
});
