import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
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
 * `held`: the program that writes the file to the pipe ends when all of it was read. By exec the kubelet may lose the end of
 * what a program wrote that has ended, as with `kubectl exec`.
 */
export async function copyBothWays(
  { config, folder, held = false }: { config: string; folder: string; held?: boolean },
  instance: string,
  mib: number,
): Promise<void> {
  const client = sshClient(config);
  const big = join(folder, 'big');
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
  const ssh = `ssh -F ${config} ${remote}`;
  const up = await run('sh', ['-c', `${ssh} 'sha256sum' <${big}`]);
  expect(up).toMatchObject({ code: 0, stderr: '' });
  expect(up.stdout.slice(0, 64)).toBe(sum);
  const child = client.start(instance, held ? 'cat /tmp/big && cat >/dev/null' : 'cat /tmp/big');
  if (!held) child.stdin.end();
  const hash = createHash('sha256');
  let bytes = 0;
  child.stdout.on('data', (part: Buffer) => {
    hash.update(part);
    bytes += part.length;
    if (bytes >= mib * MIB) child.stdin.end();
  });
  child.stderr.resume();
  const [code] = await once(child, 'close');
  // The exit status stands beside the checksum: a connection that broke is not a changed byte.
  expect([code, bytes, hash.digest('hex')]).toEqual([0, mib * MIB, sum]);
}
