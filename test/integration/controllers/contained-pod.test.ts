import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { ensurePriorityClasses } from '../../../src/controllers/priority-classes.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { run } from '../../../tools/lib/shell.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { podOf } from '../../support/pod-of.ts';
import { DEBIAN, importSshImages, TOOLS } from '../../support/ssh-images.ts';
import { waitFor } from '../../support/wait-for.ts';

const { kubeconfig, realNode, initPid, programs } = inject('cluster');
const namespace = `contained-${randomBytes(4).toString('hex')}`;

/** Bits of capability sets in linux/capability.h. */
const CAPABILITIES = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, SETGID: 6, SETUID: 7, SETPCAP: 8, NET_RAW: 13, MKNOD: 27 };

describe.runIf(realNode !== undefined)('an instance of a full distribution', () => {
  let client: KubeClient;
  function inside(script: string): ReturnType<typeof run> {
    const place = ['--kubeconfig', kubeconfig, '-n', namespace, 'one-1', '-c', 'main'];
    const shell = ['sh', '-c', `PATH="$PATH:/usr/sbin:/sbin"; export PATH; ${script}`];
    return run(join(programs ?? '', 'kubectl'), ['exec', ...place, '--', ...shell]);
  }

  beforeAll(async () => {
    if (initPid === undefined || programs === undefined) throw new Error('A real node has both.');
    client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
    await importSshImages({ initPid, programs });
    await ensurePriorityClasses(client, new AbortController().signal);
    await client.create(NAMESPACES, { metadata: { name: namespace } });
    const { spec, metadata } = podOf(gpuInstance('one', { image: DEBIAN }), {
      claim: claimOn(realNode ?? ''),
      toolsImage: TOOLS,
    });
    // Its owner is not there, and the garbage collector would take the pod for an orphan.
    const { ownerReferences: _owners, ...own } = metadata;
    await client.create(PODS, { metadata: { ...own, namespace }, ...(spec && { spec }) });
    await waitFor(
      'the pod is ready',
      async () => {
        const { status } = await client.get(PODS, { namespace, name: 'one-1' });
        return findCondition(status?.conditions, 'Ready')?.status === 'True';
      },
      60_000,
    );
  });

  afterAll(async () => {
    await client.delete(NAMESPACES, { name: namespace });
    await client.close();
  });

  test('has the capabilities that packages, logins and daemons need, and none beyond', async () => {
    const { stdout } = await inside('cat /proc/1/status');
    const effective = BigInt(`0x${/CapEff:\s*(\S+)/.exec(stdout)?.[1] ?? '0'}`);
    const bounding = /CapBnd:\s*(\S+)/.exec(stdout)?.[1];
    const has = Object.entries(CAPABILITIES).map(([name, bit]) => [name, (effective >> BigInt(bit)) % 2n === 1n]);
    expect(Object.fromEntries(has)).toEqual({
      CHOWN: true,
      DAC_OVERRIDE: true,
      FOWNER: true,
      SETGID: true,
      SETUID: true,
      SETPCAP: false,
      NET_RAW: false,
      MKNOD: false,
    });
    expect(BigInt(`0x${bounding ?? '0'}`)).toBe(effective);
    expect(stdout).toMatch(/NoNewPrivs:\s*1/);
    // 2 is a filter, as the runtime's profile is.
    expect(stdout).toMatch(/Seccomp:\s*2/);
  });

  test('makes no device node', async () => {
    const { code, stderr } = await inside('mknod /root/sda b 8 0');
    expect(code).not.toBe(0);
    expect(stderr).toContain('Operation not permitted');
  });

  test.each([
    ['chown', 'touch /tmp/a && chown 1000:1000 /tmp/a && stat -c %u /tmp/a', '1000\n'],
    ['su', 'su nobody -s /bin/sh -c "id -un"', 'nobody\n'],
    ['chroot', 'chroot / /bin/sh -c "echo in"', 'in\n'],
    [
      'dpkg with owners, modes and scripts',
      `mkdir -p /tmp/p/DEBIAN /tmp/p/opt && echo x >/tmp/p/opt/x && chown games:games /tmp/p/opt/x && chmod 2755 /tmp/p/opt/x
       printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: p\\n' >/tmp/p/DEBIAN/control
       printf '#!/bin/sh\\necho configured\\n' >/tmp/p/DEBIAN/postinst && chmod 755 /tmp/p/DEBIAN/postinst
       dpkg-deb -b /tmp/p /tmp/p.deb >/dev/null && dpkg -i /tmp/p.deb | grep configured && stat -c %U:%a /opt/x`,
      'configured\ngames:2755\n',
    ],
  ])('runs %s', async (_what, script, said) => {
    const { stdout, stderr } = await inside(script);
    expect(stdout, stderr).toBe(said);
  });

  // The image of the test says NVIDIA_VISIBLE_DEVICES=all, as NVIDIA's own images do.
  test('has no variable of Berth that opens devices', async () => {
    const { stdout } = await inside('env | grep ^NVIDIA_ | sort');
    expect(stdout.split('\n').filter((line) => line !== '')).toEqual([
      'NVIDIA_GDRCOPY=disabled',
      'NVIDIA_GDS=disabled',
      'NVIDIA_MOFED=disabled',
      'NVIDIA_NVSWITCH=disabled',
      'NVIDIA_VISIBLE_DEVICES=all',
    ]);
  });
});
