import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensurePrograms, missingPrograms, programFolder } from '../../../tools/lib/go/build.ts';
import { kubernetesVersion, kwokVersion, lockedVersion, programsFor } from '../../../tools/lib/go/programs.ts';
import { readPins, type Pins } from '../../../tools/lib/go/archives.ts';
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
const lines: string[] = [];
const progress: Progress = {
  step: (step) => void steps.push(step),
  line: (text) => void lines.push(text),
  end: () => undefined,
};

function build(signal = new AbortController().signal, pins: Pins = new Map()): Promise<string> {
  return ensurePrograms({ cache, cluster: 'simulated', tidy: true, progress, signal, pins });
}

function builtPackages(): string[] {
  return readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-build-'));
  cache = join(folder, 'cache');
  steps.length = 0;
  lines.length = 0;
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
    const names = programsFor('simulated').map(({ name }) => name);
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
    const missing = await missingPrograms(cache, 'simulated');
    expect(missing.map(({ name }) => name)).toEqual(['kubectl', 'etcd', 'kwok']);

    writeFileSync(join(folder, 'fail'), 'no such program');
    await build();
    expect(builtPackages().filter((name) => name.endsWith('kube-apiserver'))).toHaveLength(1);
  });

  it('does nothing more after an interruption', async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(build(controller.signal)).rejects.toThrow();
    expect(await missingPrograms(cache, 'simulated')).toHaveLength(6);
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

describe.runIf(process.platform === 'linux')('ensurePrograms from releases', () => {
  const processor = arch() === 'arm64' ? 'arm64' : 'amd64';
  const kubernetes = `dl.k8s.io/release/v${kubernetesVersion()}/bin/linux/${processor}`;
  const kwok = `github.com/kubernetes-sigs/kwok/releases/download/v${kwokVersion()}`;
  const etcd = `v${lockedVersion('kubernetes', 'go.etcd.io/etcd/server/v3')}`;
  const etcdName = `etcd-${etcd}-linux-${processor}`;
  let files: Map<string, Buffer>;
  let server: Server;

  /** The hashes of what the mirror has. */
  function pins(): Pins {
    return new Map(
      [...files].map(([place, content]) => [place, createHash('sha256').update(content).digest('hex')] as const),
    );
  }

  beforeEach(async () => {
    const names = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl', 'kubelet', 'kube-proxy'];
    mkdirSync(join(folder, etcdName));
    writeFileSync(join(folder, etcdName, 'etcd'), 'downloaded etcd');
    files = new Map([
      ...names.map((name) => [`${kubernetes}/${name}`, Buffer.from(`downloaded ${name}`)] as const),
      [`${kwok}/kwok-linux-${processor}`, Buffer.from('downloaded kwok')],
      [`${kwok}/stage-fast.yaml`, Buffer.from('downloaded stages')],
      [
        `github.com/etcd-io/etcd/releases/download/${etcd}/${etcdName}.tar.gz`,
        execFileSync('tar', ['-czf', '-', '-C', folder, etcdName]),
      ],
    ]);
    server = createServer(({ url = '' }, response) => {
      const content = files.get(url.slice('/mirror/'.length));
      response.writeHead(content === undefined ? 403 : 200, { 'content-length': content?.length ?? 0 }).end(content);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    vi.stubEnv('BERTH_MIRROR', `http://127.0.0.1:${(server.address() as AddressInfo).port}/mirror/`);
  });

  afterEach(() => void server.close());

  it('downloads all programs of a control plane, and calls no Go', async () => {
    const programs = await build(undefined, pins());
    for (const { name } of programsFor('simulated')) {
      expect(readFileSync(join(programs, name), 'utf8')).toBe(`downloaded ${name}`);
      expect(statSync(join(programs, name)).mode & 0o111).toBe(0o111);
    }
    expect(readFileSync(join(programs, 'kwok-stages.yaml'), 'utf8')).toBe('downloaded stages');
    expect(readdirSync(programs)).toHaveLength(7);
    expect(existsSync(join(folder, 'calls'))).toBe(false);
    expect(steps.at(0)?.title).toBe('Downloading kube-apiserver');
    expect(steps.at(0)?.detail?.()).toMatch(/^ \(\d+ of \d+ MB\)$/);
    expect(lines).toEqual([]);
  });

  it('builds what no release has, and what its host refuses, and says so in one line', async () => {
    const known = pins();
    files.delete(`${kubernetes}/kubectl`);
    const programs = await build(undefined, known);
    expect(readFileSync(join(programs, 'kube-scheduler'), 'utf8')).toBe('downloaded kube-scheduler');
    expect(readFileSync(join(programs, 'kubectl'), 'utf8')).toBe('program\n');
    expect(lines.filter((line) => line.includes('downloaded'))).toEqual([
      expect.stringMatching(/: kubectl \(127\.0\.0\.1:\d+ answers 403\)\.$/),
    ]);
    expect(builtPackages()).toHaveLength(1);
  });

  it('builds what comes with another hash, says so, and keeps and runs nothing of the file', async () => {
    const known = pins();
    files.set(`${kubernetes}/kube-scheduler`, Buffer.from('another program'));
    const programs = await build(undefined, known);
    expect(readFileSync(join(programs, 'kube-scheduler'), 'utf8')).toBe('program\n');
    expect(lines.filter((line) => line.includes('downloaded'))).toEqual([
      expect.stringMatching(
        /: kube-scheduler \(127\.0\.0\.1:\d+ has another file than its makers published, with the sha256 [0-9a-f]{64}: nothing of it is kept\)\.$/,
      ),
    ]);
    expect(readdirSync(programs).filter((name) => name.includes('download'))).toEqual([]);
    expect(builtPackages()).toHaveLength(1);
  });

  it('builds everything where BERTH_MIRROR is none', async () => {
    vi.stubEnv('BERTH_MIRROR', 'none');
    await build(undefined, pins());
    expect(builtPackages()).toHaveLength(6);
  });

  it('knows the hashes of the locked versions', async () => {
    const known = await readPins();
    expect([...files.keys()].filter((place) => !known.has(place))).toEqual([]);
    expect([...known.values()].every((hash) => /^[0-9a-f]{64}$/.test(hash))).toBe(true);
  });
});
