import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { baseUrl, checkedKey, readAccess, storeAccess } from '../../../src/cli/settings.ts';

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

  it.each(['', 'ftp://x', 'https://user:pass@x', 'https://x/?a=b', 'http://'])('%j is none', (text) => {
    expect(() => baseUrl(text)).toThrow('is no address of a server');
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
