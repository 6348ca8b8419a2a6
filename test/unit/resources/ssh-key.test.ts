import { expect, it } from 'vitest';
import { publicKeyOf, type SshKey } from '../../../src/resources/ssh-key.ts';
import { SshPublicKeyError } from '../../../src/resources/ssh-public-key.ts';

const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH87DkjAM43pkSF8RdbLnuoFePocHvb+oWRYegK0u4OS me@host two';

function keyOf(publicKey: string): { key: SshKey; reads: () => number } {
  let reads = 0;
  const spec = {
    displayName: '',
    get publicKey() {
      reads += 1;
      return publicKey;
    },
  };
  return { key: { metadata: { name: 'k', namespace: 'a' }, spec }, reads: () => reads };
}

it.each([ED25519, `ssh-ed25519 A${'='.repeat(16_000)}A`])('reads each version of a key once: %#', (text) => {
  const { key, reads } = keyOf(text);
  const first = publicKeyOf(key);
  for (let again = 0; again < 100; again += 1) expect(publicKeyOf(key)).toBe(first);
  expect(reads()).toBe(1);
});

it('says why a text is no key', () => {
  expect(publicKeyOf(keyOf('hello').key)).toBeInstanceOf(SshPublicKeyError);
  expect(publicKeyOf(keyOf(ED25519).key)).toMatchObject({ type: 'ssh-ed25519', bits: 256 });
});
