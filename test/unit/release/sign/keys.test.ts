import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { explainFailure } from '../../../../tools/lib/failure.ts';
import { publicPem, readSigningKey } from '../../../../tools/release/sign/keys.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (path: string) => readSigningKey({ BERTH_SIGNING_KEY: path });

function save(text: string): string {
  const path = join(folder, 'key.pem');
  writeFileSync(path, text);
  return path;
}

const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' });

/** What a person reads when the key is refused. */
async function refusal(path: string): Promise<string> {
  return read(path).then(
    () => 'accepted',
    (error: unknown) => explainFailure(error),
  );
}

describe('readSigningKey', () => {
  it('reads a P-256 key, in either of the two PEM formats', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    for (const type of ['pkcs8', 'sec1'] as const) {
      const found = await read(save(privateKey.export({ type, format: 'pem' })));
      expect(publicPem(found.publicKey)).toBe(publicPem(publicKey));
    }
  });

  it('refuses keys of other kinds', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
    expect(await refusal(save(pemOf(privateKey)))).toContain('no ECDSA P-256 key, but ec secp384r1');
    expect(await refusal(save(pemOf(generateKeyPairSync('ed25519').privateKey)))).toContain('but ed25519');
    expect(await refusal(save(pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)))).toContain('rsa');
  });

  it('never quotes the file, also when it cannot be read', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const pem = pemOf(privateKey);
    const secret = pem.split('\n')[1] ?? '';
    const broken = await refusal(save(pem.replace('BEGIN', 'BEGUN')));
    expect(broken).toContain('holds no private key in PEM');
    expect(broken).not.toContain(secret.slice(0, 12));
    // The key in the variable, in place of its path.
    expect(await refusal(pem)).not.toContain(secret.slice(0, 12));
    expect(await refusal(join(folder, 'missing'))).toContain('cannot be read (ENOENT)');
    expect(await refusal('')).toContain('BERTH_SIGNING_KEY');
  });
});
