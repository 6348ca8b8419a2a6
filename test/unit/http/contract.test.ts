import { describe, expect, it } from 'vitest';
import { ContractError, createContract } from '../../support/http/contract.ts';

// The integration tests compare every answer with the OpenAPI document: this shows that the comparison can fail.

const conforms = createContract();
const type = 'application/json; charset=utf-8';
const KEY = {
  id: 1,
  object: 'ssh_key',
  name: 'laptop',
  public_key: 'ssh-ed25519 AAAA',
  fingerprint: 'SHA256:x',
  type: 'ssh-ed25519',
  created_at: '2026-01-01T00:00:00Z',
};
const ERROR = { error: { message: 'No.', code: 'not_found' } };

function check(call: string, status: number, body: unknown, as: string | null = type): void {
  const [method = '', path = ''] = call.split(' ');
  conforms(method, path, { status, type: as, text: body === undefined ? '' : JSON.stringify(body) });
}

describe('the comparison with the OpenAPI document', () => {
  it.each([
    ['GET /ssh-keys', 200, { object: 'list', data: [KEY] }],
    ['POST /ssh-keys', 201, KEY],
    ['GET /offers', 304, undefined],
    ['GET /instances/i-1', 404, { error: { message: 'No.', code: 'instance_not_found' } }],
    ['GET /nothing', 404, ERROR],
    ['POST /messages', 418, { type: 'error', error: { type: 'api_error', message: 'No.' } }],
  ])('takes %s: %d', (call, status, body) => {
    expect(() => check(call, status, body)).not.toThrow();
  });

  it.each([
    ['a status that is not documented', 'POST /ssh-keys', 202, KEY],
    ['a field that is not documented', 'POST /ssh-keys', 201, { ...KEY, secret: 1 }],
    ['one deep inside', 'GET /ssh-keys', 200, { object: 'list', data: [{ ...KEY, secret: 1 }] }],
    ['a field that is missing', 'POST /ssh-keys', 201, { ...KEY, name: undefined }],
    ['a value of another type', 'POST /ssh-keys', 201, { ...KEY, id: '1' }],
    ['a code that is not documented', 'GET /instances/i-1', 404, { error: { message: 'No.', code: 'oops' } }],
    ['an error in the shape of another API', 'GET /models', 429, { error: 'slow down' }],
    ['a success where nothing is', 'GET /nothing', 200, {}],
    ['an error of an unknown path without a shape', 'GET /nothing', 404, { oops: true }],
    ['a body where none is documented', 'GET /offers', 304, {}],
    ['no body where one is documented', 'GET /offers', 200, undefined],
  ])('refuses %s', (_what, call, status, body) => {
    expect(() => check(call, status, body)).toThrow(ContractError);
  });

  it('refuses a type that is not documented', () => {
    expect(() => check('POST /ssh-keys', 201, KEY, 'text/html')).toThrow(ContractError);
  });
});
