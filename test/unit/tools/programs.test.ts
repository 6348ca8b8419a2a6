import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { diagnoseBuild } from '../../../tools/lib/go/diagnose.ts';
import {
  buildArguments,
  ownProgram,
  kubernetesVersion,
  programsFor,
  versionHash,
} from '../../../tools/lib/go/programs.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

afterEach(() => void vi.unstubAllEnvs());

describe('the build plan', () => {
  it('leaves out what only a real node needs', () => {
    const simulated = programsFor('simulated').map(({ name }) => name);
    expect(simulated).toContain('kube-apiserver');
    expect(simulated).not.toContain('kubelet');
    expect(programsFor('real node').map(({ name }) => name)).toEqual(
      expect.arrayContaining([...simulated, 'kubelet', 'kube-proxy', 'containerd', 'containerd-shim-runc-v2', 'ctr']),
    );
    expect(programsFor('real node').at(-1)?.name).toBe(ownProgram('device-plugin'));
  });

  it('builds the DRA driver only for a node that has it, of the modules that Kubernetes locks', () => {
    const [plain, dra] = [programsFor('real node'), programsFor('real node with DRA')];
    const driver = ownProgram('dra-driver');
    expect(plain.map(({ name }) => name)).not.toContain(driver);
    expect(dra.map(({ name }) => name)).toEqual([...plain.slice(0, -1).map(({ name }) => name), driver]);
    const locked = (module: string) =>
      readFileSync(join(ROOT, 'deploy/local', module, 'go.mod'), 'utf8').match(/^\t\S+ v\S+/gm) ?? [];
    expect(locked('dra-driver').length).toBeGreaterThan(20);
    // Other versions would be built anew.
    expect(locked('kubernetes')).toEqual(expect.arrayContaining(locked('dra-driver')));
  });

  it('names its folder by version and platform', () => {
    expect(versionHash('linux/x64')).toMatch(new RegExp(`^${kubernetesVersion()}-[0-9a-f]{12}$`));
    expect(versionHash('linux/x64')).toBe(versionHash('linux/x64'));
    expect(versionHash('linux/arm64')).not.toBe(versionHash('linux/x64'));
  });

  it('builds another version of Kubernetes where BERTH_KUBERNETES names one, and says which there are', () => {
    const usual = [kubernetesVersion(), versionHash('linux/x64')];
    const others = readdirSync(join(ROOT, 'deploy/local')).flatMap((name) => /^kubernetes-(.+)$/.exec(name)?.[1] ?? []);
    expect(others.length).toBeGreaterThanOrEqual(2);
    for (const minor of others) {
      vi.stubEnv('BERTH_KUBERNETES', minor);
      expect(kubernetesVersion()).toMatch(new RegExp(`^${minor.replace('.', '\\.')}\\.\\d+$`));
      expect(versionHash('linux/x64')).toMatch(new RegExp(`^${kubernetesVersion()}-`));
      const modules = programsFor('real node').map(({ name, module }) => [name, module]);
      expect(modules).toContainEqual(['kubelet', `kubernetes-${minor}`]);
      expect(modules).toContainEqual(['etcd', 'kubernetes']);
    }
    vi.stubEnv('BERTH_KUBERNETES', '1.20');
    expect(() => kubernetesVersion()).toThrow('1.20');
    vi.stubEnv('BERTH_KUBERNETES', usual[0]?.split('.').slice(0, 2).join('.'));
    expect([kubernetesVersion(), versionHash('linux/x64')]).toEqual(usual);
  });

  it('stamps the version into the programs of Kubernetes alone', () => {
    const stamp = `gitVersion=v${kubernetesVersion()}`;
    for (const program of programsFor('real node')) {
      const ours = program.package.startsWith('k8s.io/');
      expect(buildArguments(program, 'out').join(' ').includes(stamp), program.name).toBe(ours);
    }
  });
});

describe('diagnoseBuild', () => {
  it.each([
    ['write /tmp/x: no space left on device', 'the disk is full', /BERTH_CACHE/],
    ['go: go.mod requires go >= 1.26.0 (running go 1.21.1; GOTOOLCHAIN=local)', 'too old', /GOTOOLCHAIN/],
    [
      'Get "https://proxy.example/x": dial tcp: lookup proxy.example: no such host',
      'proxy cannot be reached',
      /GOPROXY/,
    ],
    ['verifying k8s.io/api@v0.36.3: checksum mismatch', 'not the one that go.sum locks', /GOPROXY/],
    ['k8s.io/kubernetes: compile: signal: killed', 'killed', /4 GB/],
    ['x.go:1:2: undefined: y', 'reported an error', /run the command again/],
  ])('explains %s', (output, cause, remedy) => {
    const failure = diagnoseBuild('kubelet', `# some package\n${output}\n`);
    expect(failure.message).toContain('kubelet');
    expect(failure.message).toContain(cause);
    expect(failure.remedy).toMatch(remedy);
    expect(failure.details.at(-1)).toBe(output);
  });
});
