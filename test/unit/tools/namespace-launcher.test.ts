import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NamespaceLauncher } from '../../../tools/cluster/built/namespace-launcher.ts';
import { networkOf } from '../../../tools/cluster/built/network.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-launcher-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Launches where `ip` refuses with these words. */
function launchWhereIpSays(words: string) {
  writeFileSync(join(folder, 'ip'), `#!/bin/sh\necho 'RTNETLINK answers: ${words}' >&2\nexit 2\n`, { mode: 0o755 });
  const network = networkOf(7);
  return NamespaceLauncher.open({ network, cgroup: '/none', programs: folder, data: folder, logs: folder });
}

describe.runIf(process.platform === 'linux')('a link that cannot be made', () => {
  it('is one that another cluster took when it exists', async () => {
    await expect(launchWhereIpSays('File exists')).rejects.toMatchObject({ name: 'AddressesTaken' });
  });

  it('is otherwise a failure with the words of ip', async () => {
    await expect(launchWhereIpSays('Operation not permitted')).rejects.toMatchObject({
      name: 'LocalFailure',
      details: ['The link berth7 cannot be made: RTNETLINK answers: Operation not permitted'],
    });
  });
});
