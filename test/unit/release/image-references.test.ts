import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../../tools/lib/paths.ts';

/** Images that are named by a tag alone, and why. */
const BY_TAG: Readonly<Record<string, string>> = {
  'debian:12': 'runs what tenants start, who get the mends of Debian as they come; the operator may set a digest',
  'docker.io/library/debian:12': 'the same image in the description of a field',
  'ghcr.io/berth-dev/berth:0.1.0': 'cannot name its own digest; the release puts it into the packed chart',
  'ghcr.io/berth-dev/charts/berth:0.1.0': 'is where the release is published, after which it has a digest',
  'localhost/berth-busybox:1': 'made on this machine, on no registry',
  'localhost/berth-pause:1': 'made on this machine, on no registry',
  'localhost/berth-tools:1': 'made on this machine, on no registry',
  'localhost/helper:1': 'made into the node image of kind, on no registry',
  'localhost/local-path-provisioner:1': 'made into the node image of kind, on no registry',
  'localhost/network-policies:1': 'made into the node image of kind, on no registry',
  'nvidia/cuda:12.4.1-devel-ubuntu22.04': 'a choice in the form, in which the tenant chooses',
  'pytorch/pytorch:latest': 'example of a request, in which the tenant chooses',
  'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime': 'example of a request, in which the tenant chooses',
  'registry.example/team/app:1.2': 'example in the words of an error',
  'ubuntu:24.04': 'example in the words of an error',
  'vllm/vllm-openai:v0.27.1': 'a choice in the form, in which the tenant chooses',
  'vllm/vllm-openai:v0.9.0': 'example of a request, in which the tenant chooses',
};

/** The definitions name no image, and the bundle of the page and the site have minified code. The chart's templates are in deploy/base with their values. */
const NOT_SEARCHED =
  /^(test|crds|src\/web\/public\/built|src\/http\/server\/site|charts\/berth\/(tests|ci|templates))\/|^deploy\/base\/crds\.yaml$|\.(png|svg|mod|sum)$/;

const WITH_PATH = /(?<![\w./@:-])[a-z0-9.-]+(?:\/[a-z0-9._-]+)+:\w[\w.-]*(?:@sha256:[\da-f]{64})?/g;
const SHORT = /(?<![\w./@:$-])[a-z][a-z0-9-]*:\d[\w.-]*(?:@sha256:[\da-f]{64})?/g;

/** The images that a line names. A short name is taken for one where the line speaks of images. */
function namesIn(line: string): string[] {
  const base = /^FROM (?:--\S+ )?(\S+)/.exec(line)?.[1];
  const short = /image/i.test(line) ? (line.match(SHORT) ?? []) : [];
  const names = [...(base === undefined ? [] : [base]), ...(line.match(WITH_PATH) ?? []), ...short];
  return names.map((name) => name.replace(/\.$/, ''));
}

function filesUnder(folder: string): string[] {
  const found = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  const paths = found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
  return paths.filter((path) => !NOT_SEARCHED.test(path));
}

const isPinned = (name: string): boolean => /@sha256:[\da-f]{64}$/.test(name);

const FOLDERS = ['charts', 'deploy', 'docs', 'src', 'tools'];
const searched = [...FOLDERS.flatMap(filesUnder), 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const names = searched.flatMap((path) =>
  readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .flatMap(namesIn)
    .map((name) => ({ path, name })),
);

test('finds the ways in which files name images', () => {
  expect(namesIn('FROM --platform=x node:26 AS build')).toEqual(['node:26']);
  expect(namesIn('FROM gcr.io/a/b')).toEqual(['gcr.io/a/b']);
  expect(namesIn('          image: "vllm/vllm-openai:latest"')).toEqual(['vllm/vllm-openai:latest']);
  expect(namesIn("const BUSYBOX_IMAGE = 'localhost/berth-busybox:1';")).toEqual(['localhost/berth-busybox:1']);
  expect(namesIn('| `BERTH_DEFAULT_IMAGE` | `debian:12` |')).toEqual(['debian:12']);
  expect(namesIn('an image at https://example.com:8080/x or 127.0.0.1:80')).toEqual([]);
});

test('every image that is pulled is named by its digest', () => {
  const byTag = names.filter(({ name }) => !isPinned(name));
  expect(byTag.filter(({ name }) => !(name in BY_TAG))).toEqual([]);
  // An exception that is not needed any more is one too many.
  expect(Object.keys(BY_TAG).filter((name) => byTag.every((one) => one.name !== name))).toEqual([]);
  const pinned = names.filter(({ name }) => isPinned(name)).map(({ path }) => path);
  expect(pinned).toEqual(expect.arrayContaining(['deploy/Dockerfile', 'docs/use/models.md']));
});

test('every image of the chart has a digest, or the place where the release puts it', () => {
  const values = parse(readFileSync(join(ROOT, 'charts/berth/values.yaml'), 'utf8')) as object;
  const images: Record<string, unknown>[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('repository' in value) images.push(value);
    for (const child of Object.values(value)) walk(child);
  };
  walk(values);
  expect(images.map(({ repository }) => repository)).toEqual(['ghcr.io/berth-dev/berth', 'valkey/valkey']);
  for (const { repository, digest } of images) {
    expect(digest === '' || isPinned(`${String(repository)}@${String(digest)}`), String(repository)).toBe(true);
  }
});
