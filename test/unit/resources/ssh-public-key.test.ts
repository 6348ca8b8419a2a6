import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { parseSshPublicKey, SshPublicKeyError } from '../../../src/resources/ssh-public-key.ts';

// Made with ssh-keygen; bits and fingerprints are what ssh-keygen -lf prints. No private key was kept.
const KEYS = [
  {
    bits: 256,
    fingerprint: 'SHA256:94EN9oZTOnuUOq49AW2qchTHfJD1utJLEf/pxTeS2+M',
    line: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH87DkjAM43pkSF8RdbLnuoFePocHvb+oWRYegK0u4OS me@host two',
  },
  {
    bits: 256,
    fingerprint: 'SHA256:YTwXQBTWeZIlxoRwt3uVJRiwvgVMjzNM/ZYDRUNVPy4',
    line: 'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKsjsMq78eHrQOIEQTMM/AXYx4hE+ErDOMI8nZC7Xd///ZsWpFeAZvb3ce/ylE4kDYZfkXDn8yr4bERHyVfP8h8= me@host two',
  },
  {
    bits: 384,
    fingerprint: 'SHA256:9cRmmuryZJuYUe9qqVRf4Qud87reY3m5gUw7dVPkriU',
    line: 'ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBLTYB3nYWKJRg/euG+6rMPcaKB2l7O8/c8VLdWRNZ7VcTXGcwYuMo8IfC5WNw3FCt3s0vmK6vD+9Nhbndzk7AJn3TrfEMFLX6ePl2tIIK9hxGgSWd6mFCr3h8YsW5x/xSw== me@host two',
  },
  {
    bits: 521,
    fingerprint: 'SHA256:na9+vrfF4Jo7AidYxvQdjNaKun9nTH45pV3u63LEX/o',
    line: 'ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBADvmKmCwWEtwvg/uoWsJBbioeezJMmaj8OPH3tpO5PMHwx2J2miarfO3Rx3DKAdYR4sUk7HeRKsnD8hycbHnXA3/gFq8Nq18q2uLiGYIIOTvnCafOCXAb1gtevtZnHMWxwET+DlGA2dU3VO3CaOR67THvfI9otHzuUesO0qIy8Eb+HPkw== me@host two',
  },
  {
    bits: 2048,
    fingerprint: 'SHA256:BXhQ6VOXHvCAsWqUtjwa8KdXi2ZyvQhVxRPDakZB8W0',
    line: 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC1uxATQWc64WhTaB1l1HWQte042QN47EiByRi7ZTzPlTdX5GdJ0p6GE5id1kc8jTuveRkf20pEEOFTADl+R43x7qs2y1VAN5n+YXeP/lzoalaztLeY1EozAb06IzZKL0NyCr35cG1Kl9EZ/4wy/6PVxjvkvUchXPPMWs773H+r91k2yO7/OW4Up1owZVjm6P7pJ5NbtyMStetmuxLyXc9hdX5VgvjziAKHXRJWoftzCQswfnxqTo7ACx24tEmKBYYkneiV+pHxEDL5BKKxZ0/biW1rSMxsASubcBXeuRMuv3U/1cpz/Ce1MCGKuaNCNZJR3KTvQzR/qUODw8w1eodt me@host two',
  },
];
const ED25519 = KEYS[0]?.line ?? '';
const WEAK_RSA =
  'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDBk5v++Qy1bvO24sU4SIHsUEiO6n8Zubi/R/XOKZqEloVICOSw4TRIzKWcT+ekOpBTOJKRnHw8Bz4K+mzxjYN85LkbJwKPD7g751b7w2p0hzT2NyJ/PVqN6Dpl0nSc/kEUw69a0b6vlpO7V73F0ccWKjTr5IZtb8xkOse0jBLuUw== me@host two';

function blob(...parts: (string | Buffer)[]): string {
  const fields = parts.map((part) => Buffer.from(part as string, 'latin1'));
  const sized = fields.flatMap((field) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(field.length);
    return [length, field];
  });
  return Buffer.concat(sized).toString('base64');
}

const POINT = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 7)]);

describe('public keys', () => {
  test.each(KEYS)('$bits bits as ssh-keygen reads them', ({ line, bits, fingerprint }) => {
    const [type, encoded = ''] = line.split(' ');
    const blob = Buffer.from(encoded, 'base64');
    expect(parseSshPublicKey(line)).toEqual({ type, blob, bits, fingerprint, comment: 'me@host two' });
  });

  test.each([
    ['sk-ssh-ed25519@openssh.com', blob('sk-ssh-ed25519@openssh.com', Buffer.alloc(32, 1), 'ssh:')],
    ['sk-ecdsa-sha2-nistp256@openssh.com', blob('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', POINT, 'ssh:')],
  ])('%s', (type, encoded) => {
    expect(parseSshPublicKey(`${type} ${encoded}`)).toMatchObject({ type, bits: 256, comment: '' });
  });

  test.each([
    ['nothing', '', /not a key type/],
    ['a word', 'hello', /not a key type/],
    ['a type alone', 'ssh-ed25519', /not base64/],
    ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----', /private key/],
    ['two lines', `${ED25519}\n${ED25519}`, /one line/],
    ['options', `no-pty ${ED25519}`, /Options/],
    ['a forced command', `command="/bin/sh" ${ED25519}`, /Options/],
    ['DSA', 'ssh-dss AAAAB3NzaC1kc3M=', /DSA/],
    ['a short RSA key', WEAK_RSA, /2048/],
    ['a certificate', 'ssh-ed25519-cert-v01@openssh.com AAAA', /ertificate/],
    ['another type than the blob holds', ED25519.replace('ssh-ed25519', 'ssh-rsa'), /says ssh-rsa/],
    ['a blob that is cut off', ED25519.slice(0, 60), /cut off/],
    ['bytes after the end', `ssh-ed25519 ${blob('ssh-ed25519', Buffer.alloc(32, 1), 'x')}`, /after its end/],
    ['an ed25519 key that is too short', `ssh-ed25519 ${blob('ssh-ed25519', Buffer.alloc(31))}`, /32 bytes/],
    [
      'a compressed point',
      `ecdsa-sha2-nistp256 ${blob('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(33, 2))}`,
      /point/,
    ],
    ['another curve', `ecdsa-sha2-nistp256 ${blob('ecdsa-sha2-nistp256', 'nistp384', POINT)}`, /nistp384/],
    [
      'a security key without application',
      `sk-ssh-ed25519@openssh.com ${blob('sk-ssh-ed25519@openssh.com', Buffer.alloc(32), '')}`,
      /application/,
    ],
    ['a negative modulus', `ssh-rsa ${blob('ssh-rsa', Buffer.from([1, 0, 1]), Buffer.alloc(256, 0xff))}`, /modulus/],
    ['stray characters in the base64', ED25519.replace('AAAAC3', 'AAA*AC3'), /base64/],
  ])('refuses %s', (_name, line, message) => {
    expect(() => parseSshPublicKey(line)).toThrow(SshPublicKeyError);
    expect(() => parseSshPublicKey(line)).toThrow(message);
  });

  test('fails with its own error on whatever is pasted', () => {
    const types = fc.constantFrom('ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'sk-ssh-ed25519@openssh.com');
    fc.assert(
      fc.property(types, fc.uint8Array({ maxLength: 300 }), (type, bytes) => {
        const head = Buffer.concat([Buffer.from([0, 0, 0, type.length]), Buffer.from(type), Buffer.from(bytes)]);
        try {
          parseSshPublicKey(`${type} ${head.toString('base64')}`);
        } catch (error) {
          expect(error).toBeInstanceOf(SshPublicKeyError);
        }
      }),
    );
  });
});
