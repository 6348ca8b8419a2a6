import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditRecord } from '../../../src/ssh/audit.ts';
import { type AuthorizedKey, matchKey, parseAuthorizedKey } from '../../../src/ssh/login/authorized-key.ts';
import { readCertificate } from '../../../src/ssh/login/certificate.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { describeWith } from '../../support/needs.ts';
import { softwareKey } from '../../support/security-key.ts';
import { type ClientResult, finished, sshClient } from '../../support/ssh-client.ts';
import { loneGateway } from '../../support/ssh-gateway.ts';

const TYPES = [
  ['ed25519', []],
  ['ecdsa', ['-b', '256']],
  ['ecdsa', ['-b', '384']],
  ['ecdsa', ['-b', '521']],
  ['rsa', ['-b', '2048']],
] as const;
const STOPPED = 'berth: instance i-one is stopped';
const FLAGS = [
  ['StrictHostKeyChecking', 'no'],
  ['UserKnownHostsFile', '/dev/null'],
  ['IdentitiesOnly', 'yes'],
  ['LogLevel', 'INFO'],
].flatMap(([name, value]) => ['-o', `${name}=${value}`]);

let folder: string;
let server: SshServer | undefined;
let keys: AuthorizedKey[] = [];
let audit: AuditRecord[] = [];

function keygen(...args: readonly string[]): void {
  execFileSync('ssh-keygen', ['-q', ...args]);
}

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8').trim();
}

/** A key pair in the folder. Two of one name are one. */
function pair(name: string, type = 'ed25519', size: readonly string[] = []): string {
  const path = join(folder, name);
  rmSync(path, { force: true });
  keygen('-t', type, ...size, '-N', '', '-f', path);
  return path;
}

/** A certificate for `user`, by `authority`, which ssh finds beside the key. */
function certify(authority: string, user: string, ...flags: readonly string[]): void {
  keygen('-s', join(folder, authority), '-I', 'alice@team', '-z', '7', ...flags, `${join(folder, user)}.pub`);
}

function trust(...lines: readonly string[]): void {
  keys = lines.map((line, at) => parseAuthorizedKey(line, `team/k${at}`, at + 1)).filter((key) => key !== undefined);
  expect(keys).toHaveLength(lines.length);
}

function keysWith(wanted: string): AuthorizedKey[] {
  return keys.filter(({ fingerprint }) => fingerprint === wanted);
}

function login(user: string, ...flags: readonly string[]): Promise<ClientResult> {
  const port = ['-p', String(server?.address.port), '-i', join(folder, user)];
  return finished(sshClient('/dev/null').start('i-one', 'true', [...FLAGS, ...port, ...flags]));
}

const withOpenSsh = describeWith('ssh');

withOpenSsh('certificates of users', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-certificates-'));
    const view = { namespace: 'team', name: 'i-one', uid: 'u', target: undefined, condition: 'stopped' };
    const started = await loneGateway({
      directory: {
        find: ({ instance }) => (instance === 'i-one' ? view : undefined),
        tenantKeys: (_instance, fingerprint) => keysWith(fingerprint),
        opens: () => true,
        closed: () => undefined,
        onChange: () => () => true,
      },
      audit: (record) => audit.push(record),
    });
    ({ server } = started);
    pair('authority');
    pair('user');
  });
  afterAll(async () => {
    await server?.close(0);
    rmSync(folder, { recursive: true });
  });

  it.each(TYPES)('of type %s %j log in, and the audit names them', async (type, size) => {
    pair('typed', type, size);
    certify('authority', 'typed', '-n', 'somebody,i-one.team');
    trust(`cert-authority ${read('authority.pub')}`);
    audit = [];
    expect((await login('typed')).stderr).toContain(STOPPED);
    expect(audit.find(({ event }) => event === 'login')).toMatchObject({
      login: { certificate: 'alice@team (serial 7)', fingerprint: keys[0]?.fingerprint },
    });
  });

  it.each(TYPES)('hold by authorities of type %s %j', async (type, size) => {
    pair('signer', type, size);
    certify('signer', 'user', '-n', 'i-one');
    trust(`cert-authority ${read('signer.pub')}`);
    expect((await login('user')).stderr).toContain(STOPPED);
  });

  it.each(['ed25519', 'ecdsa'] as const)('of security keys of type %s hold by the touch of the key', (kind) => {
    const key = softwareKey(kind);
    writeFileSync(join(folder, 'security.pub'), `${key.line}\n`);
    certify('authority', 'security', '-n', 'i-one');
    trust(`cert-authority ${read('authority.pub')}`);
    const blob = Buffer.from(read('security-cert.pub').split(' ')[1] ?? '', 'base64');
    const found = matchKey(keysWith, blob);
    const data = Buffer.from('what the client signs');
    expect(found?.verify(data, key.sign(data), undefined)).toBe(true);
    expect(found?.verify(data, key.sign(data, { touched: false }), undefined)).toBe(false);
    expect(found?.verify(data, softwareKey(kind).sign(data), undefined)).toBe(false);
  });

  it('are for the principals of the authority, where it has some', async () => {
    certify('authority', 'user', '-n', 'alice');
    trust(`cert-authority,principals="bob, alice" ${read('authority.pub')}`);
    expect((await login('user')).stderr).toContain(STOPPED);
    certify('authority', 'user', '-n', 'i-one');
    expect((await login('user')).stderr).toContain('is for i-one, and this login needs one for bob or alice.');
  });

  it.each([
    ['not valid since 20', ['-n', 'i-one', '-V', '-2h:-1h']],
    ['not valid before 20', ['-n', 'i-one', '-V', '+1h:+2h']],
    ['for bob, and this login needs one for i-one or i-one.team', ['-n', 'bob']],
    ['for nobody, and this login', []],
    ['restricted by force-command, which', ['-n', 'i-one', '-O', 'force-command=/bin/true']],
    ['not for clients at ', ['-n', 'i-one', '-O', 'source-address=10.0.0.0/8,192.168.1.1']],
  ])('that are %s log nobody in, and the owner is told', async (words, flags) => {
    certify('authority', 'user', ...flags);
    trust(`cert-authority ${read('authority.pub')}`);
    const { stderr } = await login('user');
    expect(stderr).toContain(`berth: the certificate "alice@team" is ${words}`);
    expect(stderr).toContain('Permission denied (publickey)');
  });

  it('are taken from the addresses that they are for', async () => {
    certify('authority', 'user', '-n', 'i-one', '-O', 'source-address=10.0.0.0/8,127.0.0.0/8,::1');
    trust(`cert-authority ${read('authority.pub')}`);
    expect((await login('user')).stderr).toContain(STOPPED);
  });

  it('permit terminals and forwards one by one', async () => {
    certify('authority', 'user', '-n', 'i-one', '-O', 'clear');
    trust(`cert-authority ${read('authority.pub')}`);
    expect((await login('user', '-tt')).stderr).toContain('PTY allocation request failed');
    const forward = await login('user', '-W', '127.0.0.1:22');
    expect(forward.stderr).toContain('berth: the certificate does not permit forwards.');
  });

  it('are refused in silence: of a host, by a stranger, and for another key', async () => {
    const silent = async (): Promise<void> => {
      const { stderr } = await login('user');
      expect(stderr).toContain('Permission denied (publickey)');
      expect(stderr).not.toContain('berth:');
    };
    trust(`cert-authority ${read('authority.pub')}`);
    pair('stranger');
    certify('stranger', 'user', '-n', 'i-one');
    await silent();
    pair('other');
    certify('authority', 'other', '-n', 'i-one');
    cpSync(join(folder, 'other-cert.pub'), join(folder, 'user-cert.pub'));
    await silent();
    rmSync(join(folder, 'user-cert.pub'));
    await silent();
    // OpenSSH's client does not offer a certificate of a host.
    certify('authority', 'user', '-h', '-n', 'i-one');
    const blob = Buffer.from(read('user-cert.pub').split(' ')[1] ?? '', 'base64');
    expect(readCertificate(blob)?.isOfUser).toBe(false);
  });

  it('do not make the authority a key, nor a key an authority', async () => {
    trust(`cert-authority ${read('authority.pub')}`);
    rmSync(join(folder, 'authority-cert.pub'), { force: true });
    expect((await login('authority')).stderr).not.toContain(STOPPED);
    trust(read('authority.pub'));
    certify('authority', 'user', '-n', 'i-one');
    expect((await login('user')).stderr).not.toContain(STOPPED);
    expect((await login('authority')).stderr).toContain(STOPPED);
  });

  it('hold with no byte changed, cut off or added', () => {
    certify('authority', 'user', '-n', 'i-one', '-O', 'source-address=10.0.0.0/8');
    trust(`cert-authority ${read('authority.pub')}`);
    const blob = Buffer.from(read('user-cert.pub').split(' ')[1] ?? '', 'base64');
    expect(matchKey(keysWith, blob)).toBeDefined();
    for (let at = 0; at < blob.length; at += 1) {
      const changed = Buffer.from(blob);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(matchKey(keysWith, changed)).toBeUndefined();
      expect(matchKey(keysWith, blob.subarray(0, at))).toBeUndefined();
    }
    expect(matchKey(keysWith, Buffer.concat([blob, Buffer.of(0)]))).toBeUndefined();
  });
});
