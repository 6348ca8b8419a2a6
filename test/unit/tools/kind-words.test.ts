import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { leadIn, lookForKubectl } from '../../../tools/cluster/kind/use-kind.ts';

// One look in place of five seconds of them.
vi.mock('../../../tools/lib/wait.ts', () => ({ waitFor: (probe: () => unknown) => probe() }));

const NODE = { engine: 'podman', node: 'berth-1' } as const;
/** Nobody listens at the first address of its Services. */
const NETWORK = { podCidr: '10.253.7.0/24', serviceCidr: '127.0.0.0/24' };
const UNREACHED = 'This machine reaches no pods, so models and monitors in the cluster do not answer: ';

describe.skipIf(process.platform === 'win32')('kind says', () => {
  const { platform } = process;
  let folder = '';
  let lines: string[] = [];
  const progress = { line: (text: string) => void lines.push(text) };
  const asked = (): string => readFileSync(join(folder, 'asked'), 'utf8');

  function program(name: string, script: string): void {
    const path = join(folder, 'bin', name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }

  /** An engine with the node, which changes routes by this script. */
  function engine(change: string): void {
    const inspect = 'echo "kindest/node 10.89.0.2 "';
    program(
      'podman',
      `echo "$@" >> ${join(folder, 'asked')}; case $1 in inspect) ${inspect} ;; run) ${change} ;; esac`,
    );
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-kind-words-'));
    mkdirSync(join(folder, 'bin'));
    lines = [];
    vi.stubEnv('PATH', join(folder, 'bin'));
    Object.defineProperty(process, 'platform', { value: 'linux' });
  });

  afterEach(() => {
    Object.defineProperty(process, 'platform', { value: platform });
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  it('that no route leads in, in the words of an engine that may make none', async () => {
    engine('echo RTNETLINK answers: Operation not permitted >&2; exit 2');
    expect(await leadIn(NODE, NETWORK, progress)).toBeUndefined();
    expect(lines).toEqual([`${UNREACHED}podman run failed. RTNETLINK answers: Operation not permitted`]);
  });

  it('that no route leads in where one was made on another machine, and takes it back', async () => {
    engine('true');
    expect(await leadIn(NODE, NETWORK, progress)).toBeUndefined();
    expect(lines).toEqual([`${UNREACHED}podman runs in a virtual machine or without root.`]);
    expect(asked()).toContain('ip route replace 10.253.7.0/24 via 10.89.0.2');
    expect(asked().trim().split('\n').at(-1)).toMatch(/ip route flush exact 127\.0\.0\.0\/24 via 10\.89\.0\.2$/);
  });

  it('that no route leads in where containers need a virtual machine, and asks for none', async () => {
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    engine('true');
    expect(await leadIn(NODE, NETWORK, progress)).toBeUndefined();
    expect(lines).toEqual([`${UNREACHED}podman runs in a virtual machine.`]);
    expect(asked).toThrow('ENOENT');
  });

  it('that the tour needs kubectl, where it is missing', async () => {
    await lookForKubectl(progress);
    expect(lines).toEqual(['The tour needs kubectl, which is not installed: https://kubernetes.io/docs/tasks/tools']);
    program('kubectl', 'true');
    await lookForKubectl(progress);
    expect(lines).toHaveLength(1);
  });
});
