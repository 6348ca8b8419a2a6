import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { POLICIES } from '../../../src/doctor/checks/admission.ts';
import { apiKeySpecSchema, apiKeyStatusSchema } from '../../../src/resources/api-key.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

test('the policy of the roles compares every field of an API key but the one that revokes it', () => {
  const text = readFileSync(join(ROOT, 'deploy/base/admission.yaml'), 'utf8');
  const compared = [...text.matchAll(/object\.spec\.\?(\w+) == oldObject\.spec\.\?\1/g)].map(([, field = '']) => field);
  const fields = Object.keys(apiKeySpecSchema.shape).filter((field) => field !== 'revoked');
  expect(compared.toSorted()).toEqual(fields.toSorted());
});

test('the policy of statuses compares every field of the status of an API key but the one that the api role writes', () => {
  const text = readFileSync(join(ROOT, 'deploy/base/admission.yaml'), 'utf8');
  const compared = [...text.matchAll(/object\.\?status\.\?(\w+) == oldObject\.\?status\.\?\1/g)];
  const fields = Object.keys(apiKeyStatusSchema.shape).filter((field) => field !== 'lastUsedTime');
  expect(compared.map(([, field = '']) => field).toSorted()).toEqual(fields.toSorted());
});

test('the doctor knows every policy of the chart, and which of them a value leaves out', () => {
  const folder = join(ROOT, 'charts/berth/templates/admission');
  const inChart = readdirSync(folder).flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8');
    const isRequired = /^\{\{- if \.Values\.admissionPolicies\.enabled \}\}$/m.test(text);
    const names = text.matchAll(/^kind: ValidatingAdmissionPolicy\nmetadata:\n {2}name: .*\}\}-(\S+)$/gm);
    return [...names].map(([, name = '']) => [name, isRequired ? 'required' : 'optional'] as const);
  });
  expect(POLICIES).toEqual(Object.fromEntries(inChart));
});
