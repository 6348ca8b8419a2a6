import { expect, it } from 'vitest';
import { toLimitsRecord } from '../../../src/http/records/limits-record.ts';
import { limitsSchema } from '../../../src/http/schemas/limits.ts';
import { ceilingsSchema } from '../../../src/resources/tenants/ceilings.ts';

const NOTHING = { instances: 0, sshKeys: 0, templates: 0, apiKeys: 0, registries: 0, gpus: [] };

it('shows each ceiling over GPUs with what its places hold', () => {
  const ceilings = ceilingsSchema.parse({
    gpus: [{ max: 8 }, { pool: 'a', max: 4 }, { product: 'H100', max: 3 }],
    models: { tokensPerMinute: 9 },
    userNamespaces: 'Required',
  });
  const gpus = [
    { pool: 'a', product: 'H100', gpus: 1 },
    { pool: 'b', product: 'H100', gpus: 2 },
    { pool: 'b', product: 'L40S', gpus: 4 },
  ];
  const record = toLimitsRecord(ceilings, ['gold'], { ...NOTHING, instances: 3, gpus });
  expect(limitsSchema.parse(record)).toEqual(record);
  expect(record).toMatchObject({
    policies: ['gold'],
    instances: { used: 3, limit: 1000 },
    gpus_used: 7,
    gpus: [
      { pool: null, gpu_name: null, used: 7, limit: 8 },
      { pool: 'a', gpu_name: null, used: 1, limit: 4 },
      { pool: null, gpu_name: 'H100', used: 3, limit: 3 },
    ],
    user_namespaces: 'required',
    model_calls_per_minute: null,
    model_tokens_per_minute: 9,
  });
});
