import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiKeySpecSchema } from '../../../src/resources/api-key.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

test('the policy of the roles compares every field of an API key but the one that revokes it', () => {
  const text = readFileSync(join(ROOT, 'deploy/base/admission.yaml'), 'utf8');
  const compared = [...text.matchAll(/object\.spec\.\?(\w+) == oldObject\.spec\.\?\1/g)].map(([, field = '']) => field);
  const fields = Object.keys(apiKeySpecSchema.shape).filter((field) => field !== 'revoked');
  expect(compared.toSorted()).toEqual(fields.toSorted());
});
