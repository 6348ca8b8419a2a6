import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { baseUrl, checkedKey, readAccess, requireEncrypted, storeAccess } from '../../../src/cli/settings.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-settings-'));
});
afterEach(() => rm(home, { recursive: true }));

describe('the address of a server', () => {
  it.each([
    ['gpu.example.com', 'https://gpu.example.com/api/v1'],
    ['https://gpu.example.com/', 'https://gpu.example.com/api/v1'],
    ['http://127.0.0.1:8080/api/v1', 'http://127.0.0.1:8080/api/v1'],
    ['https://x/berth/api/v1/api/v1/', 'https://x/berth/api/v1'],
  ])('%s is %s', (text, url) => {
    expect(baseUrl(text)).toBe(url);
  });

  it.each([
    '',
    'ftp://x',
    'https://user:pass@x',
    'https://:pass@x',
    'user:pass@x',
    'https://user:pass@x:99999',
    'https://x/?a=pass',
    'https://x/?',
    'https://x/#pass',
    'http://',
  ])('%j is none, and no password of it is repeated', (text) => {
    expect(() => baseUrl(text)).toThrow(/^(?!.*pass\b).*is no address of a server/);
  });
});

describe('access', () => {
  const stored = { url: 'https://one/api/v1', key: 'berth_one' };

  it('is stored for its owner alone, also where the folder is new', async () => {
    const path = await storeAccess({ HOME: home }, stored);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readAccess({ HOME: home })).toEqual(stored);
    expect(await readFile(path, 'utf8')).toContain('berth_one');
  });

  it('of the environment comes first, and a stored key goes to no other server', async () => {
    await storeAccess({ HOME: home }, stored);
    const given = { HOME: home, BERTH_URL: 'http://two:1', BERTH_API_KEY: 'key' };
    expect(await readAccess(given)).toEqual({ url: 'http://two:1/api/v1', key: 'key' });
    await expect(readAccess({ HOME: home, BERTH_URL: 'http://two:1' })).rejects.toThrow(
      'the stored key is for https://one',
    );
    expect(await readAccess({ HOME: home, BERTH_URL: 'https://one' })).toEqual(stored);
    expect(await readAccess({ HOME: home, BERTH_API_KEY: 'key' })).toEqual({ url: stored.url, key: 'key' });
  });

  it('that is broken, open to others or absent says what to do', async () => {
    await expect(readAccess({ HOME: home })).rejects.toThrow('You are not signed in.');
    await expect(readAccess({ HOME: home, BERTH_API_KEY: 'key' })).rejects.toThrow('BERTH_URL is not');
    const path = await storeAccess({ HOME: home }, stored);
    await writeFile(path, '{"url":');
    await expect(readAccess({ HOME: home })).rejects.toMatchObject({ next: 'Run berth login URL.', exitCode: 3 });
  });

  it('takes no key with line breaks, and does not repeat what it refuses', () => {
    expect(checkedKey(' berth_x\n')).toBe('berth_x');
    for (const text of ['berth_secret\r\nHost: x', 'two words', '']) {
      expect(() => checkedKey(text)).toThrow(/no API key/);
      expect(() => checkedKey(text)).not.toThrow(/secret|two words/);
    }
  });
});

describe('a key in the clear', () => {
  it.each([
    'http://gpu.example.com',
    'http://10.0.0.7:8080',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'http://[fd00::1]:8080',
    'http://0.0.0.0:8080',
  ])('does not go to %s', (text) => {
    const url = baseUrl(text);
    expect(() => requireEncrypted({ url })).toThrow(`${url} is not encrypted`);
    expect(() => requireEncrypted({ url, plainHttp: true })).not.toThrow();
  });

  it.each(['gpu.example.com', 'http://localhost:8080', 'http://127.8.0.1', 'http://[::1]:8080'])(
    'goes to %s',
    (text) => {
      expect(() => requireEncrypted({ url: baseUrl(text) })).not.toThrow();
    },
  );

  it('is allowed by the environment, and by what was said at the login', async () => {
    const env = { HOME: home, BERTH_URL: 'http://two:1', BERTH_API_KEY: 'key' };
    expect(() => requireEncrypted({ url: 'http://two:1' })).toThrow('Nothing was sent');
    expect(await readAccess({ ...env, BERTH_PLAIN_HTTP: 'true' })).toMatchObject({ plainHttp: true });
    const stored = { url: 'http://two:1/api/v1', key: 'berth_two', plainHttp: true };
    await storeAccess({ HOME: home }, stored);
    expect(await readAccess({ HOME: home })).toEqual(stored);
  });
});
