import { expect, it } from 'vitest';
import { whoCanChange, whoCanChangeKey } from '../../../src/resources/tenants/who-can-change.ts';

it.each([
  [['gold'], 'TenantPolicy gold'],
  [['gold', 'all'], 'TenantPolicy gold and TenantPolicy all'],
  [[], 'a TenantPolicy'],
  [undefined, 'the TenantPolicy that GET /limits names'],
])('names the policies %j, or where they stand', (policies, where) => {
  expect(whoCanChange('gpus', policies)).toBe(`The operator can change gpus in ${where}.`);
});

it('names the key of a limit', () => {
  expect(whoCanChangeKey('tokensPerMinute', 'ci')).toBe(
    'An administrator of the tenant can change limits.tokensPerMinute in APIKey ci.',
  );
});
