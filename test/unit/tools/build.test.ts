import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensurePrograms, missingPrograms, programFolder } from '../../../tools/lib/go/build.ts';
import { programsFor } from '../../../tools/lib/go/programs.ts';
import type { Progress, Step } from '../../../tools/lib/progress.ts';

/** Stands in for Go: writes down its calls, makes the output file, and fails at the program named in `fail`. */
const FAKE_GO = `#!/bin/sh
for last; do :; done
case "$1" in
  version) echo "go version go1.25.0 linux/amd64" ;;
  list) echo "$FAKE/kwok" ;;
  build)
    echo "$last" >> "$FAKE/calls"
    case "$last" in *"$(cat "$FAKE/fail")") echo "compile: signal: killed" >&2; exit 1 ;; esac
    while [ "$1" != -o ]; do shift; done
    echo program > "$2"; chmod +x "$2" ;;
esac
`;

let folder = '';
let cache = '';
const steps: Step[] = [];
const progress: Progress = { step: (step) => void steps.push(step), line: () => undefined, end: () => undefined };

function build(signal = new AbortController().signal): Promise<string> {
  return ensurePrograms({ cache, realNode: false, tidy: true, progress, signal });
}

function builtPackages(): string[] {
  return readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-build-'));
  cache = join(folder, 'cache');
  steps.length = 0;
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin', 'go'), FAKE_GO);
  chmodSync(join(folder, 'bin', 'go'), 0o755);
  for (const stage of ['node/fast', 'node/heartbeat-with-lease', 'pod/fast']) {
    mkdirSync(join(folder, 'kwok/kustomize/stage', stage), { recursive: true });
    writeFileSync(join(folder, 'kwok/kustomize/stage', stage, 'stage.yaml'), `name: ${stage}`);
    writeFileSync(join(folder, 'kwok/kustomize/stage', stage, 'kustomization.yaml'), 'not a stage');
  }
  writeFileSync(join(folder, 'fail'), 'no such program');
  vi.stubEnv('FAKE', folder);
  vi.stubEnv('PATH', `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

describe('ensurePrograms', () => {
  it('builds every program once, with a numbered step each, and nothing the second time', async () => {
    const programs = await build();
    const names = programsFor({ realNode: false }).map(({ name }) => name);
    expect(readdirSync(programs).toSorted()).toEqual([...names, 'kwok-stages.yaml'].toSorted());
    expect(steps.map(({ index, total }) => `${index}/${total}`)).toEqual(['1/6', '2/6', '3/6', '4/6', '5/6', '6/6']);
    expect(steps[0]?.next).toBe(names[1]);
    await build();
    expect(builtPackages()).toHaveLength(names.length);
  });

  it('joins the stages of kwok, and removes what only the build needed', async () => {
    const programs = await build();
    const stages = readFileSync(join(programs, 'kwok-stages.yaml'), 'utf8');
    expect(stages.split('\n---\n')).toHaveLength(3);
    expect(stages).not.toContain('not a stage');
    expect(readdirSync(cache)).toEqual(['bin']);
  });

  it("keeps a Go folder that was there before, because it may be someone's", async () => {
    mkdirSync(join(cache, 'go/mod'), { recursive: true });
    await build();
    expect(readdirSync(join(cache, 'go'))).toEqual(['mod']);
  });

  it('explains a killed compiler, leaves nothing half-built, and goes on from there', async () => {
    writeFileSync(join(folder, 'fail'), 'kubectl');
    await expect(build()).rejects.toMatchObject({
      name: 'LocalFailure',
      message: expect.stringContaining('kubectl') as string,
      details: ['compile: signal: killed'],
    });
    expect(readdirSync(programFolder(cache)).filter((name) => name.includes('partial'))).toEqual([]);
    const missing = await missingPrograms(cache, false);
    expect(missing.map(({ name }) => name)).toEqual(['kubectl', 'etcd', 'kwok']);

    writeFileSync(join(folder, 'fail'), 'no such program');
    await build();
    expect(builtPackages().filter((name) => name.endsWith('kube-apiserver'))).toHaveLength(1);
  });

  it('does nothing more after an interruption', async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(build(controller.signal)).rejects.toThrow();
    expect(await missingPrograms(cache, false)).toHaveLength(6);
  });

  it('says so when the cache cannot be written', async () => {
    writeFileSync(cache, 'a file');
    await expect(build()).rejects.toMatchObject({
      name: 'LocalFailure',
      message: expect.stringContaining('cannot be written') as string,
      remedy: expect.stringContaining('BERTH_CACHE') as string,
    });
  });
});
