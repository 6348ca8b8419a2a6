import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyBothWays } from '../support/bulk-copy.ts';
import { describeWith } from '../support/needs.ts';
import { BARE } from '../support/ssh-images.ts';
import { sshWorld, type SshWorld } from '../support/ssh-world.ts';
import { SHARE } from './support/seed.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');
const MIB = 1024 * 1024;
/** Of the file that is copied. */
const SIZE_MIB = 512 * SHARE;
let world: SshWorld;

beforeAll(async () => {
  world = await sshWorld();
  await world.addInstance('bare', { image: BARE });
});
afterAll(() => world?.end());

onNode('a large copy', () => {
  it(
    `of ${SIZE_MIB} MiB both ways arrives to the byte, and the gateway stays small`,
    { timeout: 600_000 },
    async () => {
      const config = world.configOf(world.server, await world.addKey('laptop'));
      let peak = 0;
      const before = process.memoryUsage().rss;
      const look = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 100);
      await copyBothWays({ config, folder: world.folder }, 'bare', SIZE_MIB);
      clearInterval(look);
      // This process creates and sums the file too. A gateway that keeps the copy would grow by the whole file.
      expect(peak - before).toBeLessThan(256 * MIB);
    },
  );
});
