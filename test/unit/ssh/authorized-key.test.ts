import { describe, expect, it } from 'vitest';
import { matchKey, parseAuthorizedKey } from '../../../src/ssh/login/authorized-key.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

function pair(type: 'ed25519' | 'rsa', bits = 2048): { public: string; private: string } {
  return type === 'rsa' ? ssh2.utils.generateKeyPairSync('rsa', { bits }) : newEd25519Key('');
}

function blobOf(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64');
}

function sign(privateKey: string, data: Buffer): Buffer {
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error) throw parsed;
  return parsed.sign(data);
}

describe('parseAuthorizedKey', () => {
  it('computes the fingerprint that ssh-keygen shows', () => {
    const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github';
    expect(parseAuthorizedKey(line, 'a/k', 1)?.fingerprint).toBe('SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU');
  });

  it.each(['', 'garbage', 'ssh-ed25519 AAAA', 'ssh-dss AAAAB3NzaC1kc3M='])('takes no %j', (line) => {
    expect(parseAuthorizedKey(line, 'a/k', 1)).toBeUndefined();
  });

  it('takes no private key and no short RSA key', () => {
    expect(parseAuthorizedKey(pair('ed25519').private, 'a/k', 1)).toBeUndefined();
    expect(parseAuthorizedKey(pair('rsa', 1024).public, 'a/k', 1)).toBeUndefined();
    expect(parseAuthorizedKey(pair('rsa').public, 'a/k', 1)).toBeDefined();
  });
});

describe('verify', () => {
  it('accepts the signature of its own private key alone', () => {
    const [mine, other] = [pair('ed25519'), pair('ed25519')];
    const key = parseAuthorizedKey(mine.public, 'a/k', 1);
    const data = Buffer.from('session');
    expect(key?.verify(data, sign(mine.private, data), undefined)).toBe(true);
    expect(key?.verify(data, sign(other.private, data), undefined)).toBe(false);
    expect(key?.verify(data, Buffer.from('junk'), undefined)).toBe(false);
  });

  it('refuses RSA with SHA-1', () => {
    const mine = pair('rsa');
    const parsed = ssh2.utils.parseKey(mine.private);
    if (parsed instanceof Error) throw parsed;
    const data = Buffer.from('session');
    const key = parseAuthorizedKey(mine.public, 'a/k', 1);
    expect(key?.verify(data, parsed.sign(data, 'sha512'), 'sha512')).toBe(true);
    expect(key?.verify(data, parsed.sign(data, 'sha1'), undefined)).toBe(false);
  });
});

describe('matchKey', () => {
  it('finds the key that was offered and no other', () => {
    const lines = [pair('ed25519').public, pair('ed25519').public];
    const keys = lines.flatMap((line, index) => parseAuthorizedKey(line, `a/${index}`, index) ?? []);
    const keysWith = (wanted: string) => keys.filter(({ fingerprint }) => fingerprint === wanted);
    expect(matchKey(keysWith, blobOf(lines[1] ?? ''))?.resource).toBe('a/1');
    expect(matchKey(keysWith, blobOf(pair('ed25519').public))).toBeUndefined();
    expect(matchKey(keysWith, Buffer.alloc(0))).toBeUndefined();
  });
});
