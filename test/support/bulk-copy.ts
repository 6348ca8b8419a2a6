import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { expect } from 'vitest';
import { run } from '../../tools/lib/shell.ts';
import { sshClient } from './ssh-client.ts';

const MIB = 1024 * 1024;

export async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/**
 * Copies a file of so many MiB to the instance and back, by scp and through a pipe; each copy has the file's checksum.
 * `mayBeShort`: the kubelet may lose the end of what comes through a pipe by exec, as with `kubectl exec`; no byte changes.
 */
export async function copyBothWays(
  place: { config: string; folder: string; mayBeShort?: boolean },
  instance: string,
  mib: number,
): Promise<void> {
  const client = sshClient(place.config);
  const big = join(place.folder, 'big');
  const handle = await open(big, 'w');
  const block = randomBytes(MIB);
  for (let written = 0; written < mib; written += 1) {
    block.writeUInt32LE(written);
    await handle.write(block);
  }
  await handle.close();
  const sum = await sha256(big);
  const remote = `${instance}@127.0.0.1`;
  expect(await client.run('scp', ['-q', big, `${remote}:/tmp/big`])).toMatchObject({ code: 0 });
  const there = await client.ssh(instance, 'sha256sum </tmp/big');
  expect(String(there.stdout).slice(0, 64)).toBe(sum);
  expect(await client.run('scp', ['-q', `${remote}:/tmp/big`, `${big}-back`])).toMatchObject({ code: 0 });
  expect(await sha256(`${big}-back`)).toBe(sum);
  const ssh = `ssh -F ${place.config} ${remote}`;
  // The exit status and the words of ssh stand beside the checksum: a connection that broke is not a changed byte.
  const ended = `; echo "ssh ended with $?" >&2`;
  const up = await run('sh', ['-c', `${ssh} 'sha256sum' <${big}${ended}`]);
  expect(up).toMatchObject({ stderr: 'ssh ended with 0\n' });
  expect(up.stdout.slice(0, 64)).toBe(sum);
  const down = await run('sh', ['-c', `{ ${ssh} 'cat /tmp/big'${ended}; } | tee ${big}-down | sha256sum`]);
  expect(down).toMatchObject({ stderr: 'ssh ended with 0\n' });
  const { size } = await stat(`${big}-down`);
  if (place.mayBeShort === true && size < mib * MIB) {
    expect(await run('cmp', ['-n', String(size), big, `${big}-down`])).toMatchObject({ code: 0 });
    return;
  }
  expect(size).toBe(mib * MIB);
  expect(down.stdout.slice(0, 64)).toBe(sum);
}
