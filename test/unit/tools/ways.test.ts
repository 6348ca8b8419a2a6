import { judgeGo } from '../../../tools/lib/go/find.ts';
import { describe, expect, it } from 'vitest';
import { LocalFailure } from '../../../tools/lib/failure.ts';
import { chooseWay, type HostFacts, requireDra, type Way } from '../../../tools/cluster/ways.ts';

const NOTHING: HostFacts = { given: false, engine: undefined, kind: false, go: judgeGo(undefined), ready: false };

describe('chooseWay', () => {
  it('prefers a given cluster to kind, and kind to a build', () => {
    const go = judgeGo('go version go1.26.8 linux/amd64');
    expect(chooseWay({ given: true, engine: 'docker', kind: true, go, ready: true })).toBe('given');
    expect(chooseWay({ ...NOTHING, engine: 'podman', kind: true, go })).toBe('kind');
    expect(chooseWay({ ...NOTHING, engine: 'docker', kind: false, go })).toBe('built');
  });

  it('needs no Go when the programs are built or can be downloaded', () => {
    expect(chooseWay({ ...NOTHING, ready: true })).toBe('built');
  });

  it('says what each of the three ways lacks', () => {
    const old = judgeGo('go version go1.19.8 linux/amd64');
    const failure = catchFailure(() => chooseWay({ ...NOTHING, engine: 'docker', go: old }));
    expect(failure.details).toEqual([
      expect.stringContaining('none was named'),
      expect.stringContaining('docker answers, but kind is not installed'),
      expect.stringContaining('go1.19 is too old'),
    ]);
    expect(failure.remedy).toMatch(/--kubeconfig.*kind.*Go 1\.21/);
  });
});

describe('requireDra', () => {
  it('lets a driver start on a node of its own', () => {
    expect(() => requireDra('built', '1.36.3')).not.toThrow();
    expect(() => requireDra('built', '1.37.0')).not.toThrow();
  });

  it.each<[Way, string, string, string]>([
    ['given', '1.36.3', '--kubeconfig, --context or KUBECONFIG names a cluster', 'Name none'],
    ['kind', '1.36.3', 'kind makes the node', '--built'],
    ['built', '1.35.9', 'BERTH_KUBERNETES names 1.35.9', 'Unset BERTH_KUBERNETES'],
  ])('refuses it on %s with %s', (way, version, cause, remedy) => {
    const failure = catchFailure(() => requireDra(way, version));
    expect(failure.message).toContain(cause);
    expect(failure.remedy).toContain(remedy);
  });
});

describe('judgeGo', () => {
  it.each([
    ['go version go1.21.0 linux/amd64', true],
    ['go version go1.20.14 darwin/arm64', false],
    ['go version go2.0 linux/amd64', true],
    ['go version devel +abc', false],
    [undefined, false],
  ])('judges %s', (output, usable) => {
    expect(judgeGo(output).usable).toBe(usable);
  });
});

function catchFailure(act: () => unknown): LocalFailure {
  try {
    act();
  } catch (error) {
    if (error instanceof LocalFailure) return error;
  }
  throw new Error('no LocalFailure was thrown');
}
