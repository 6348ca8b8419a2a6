import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { imagesIn, listedImages, placesOf } from '../../../tools/release/chart-images.ts';
import { listedByDigest } from '../../../tools/release/sign/packed-chart.ts';

const CHART = readFileSync(join(ROOT, 'charts/berth/Chart.yaml'), 'utf8');

test('finds the images of containers, of all kinds, and those of variables', () => {
  const stream = `---
kind: Deployment
spec:
  template:
    spec:
      initContainers: [{ image: "a.io/init:1" }]
      containers:
        - image: main
          env: [{ name: BERTH_DEFAULT_IMAGE, value: "debian:12" }, { name: BERTH_IMAGE_PULL_POLICY, value: Always }]
---
kind: CronJob
spec: { jobTemplate: { spec: { template: { spec: { containers: [{ image: "a.io/job:1" }, { image: main }] } } } } }
---
kind: CustomResourceDefinition
spec: { properties: { image: { type: string } } }
`;
  expect(imagesIn(stream)).toEqual(['a.io/init:1', 'a.io/job:1', 'debian:12', 'main']);
});

test('names images wholly, in their own registry and below another one', () => {
  const images = ['debian:12', 'docker.io/library/debian:12', 'valkey/valkey:8', 'ghcr.io/a/b:1', 'corp:5000/d'];
  const whole = ['corp:5000/d', 'docker.io/library/debian:12', 'docker.io/valkey/valkey:8', 'ghcr.io/a/b:1'];
  expect(placesOf(images)).toEqual(whole);
  expect(placesOf([...images, 'localhost/c:1'], 'mirror:5000/x')).toEqual([
    'mirror:5000/x/a/b:1',
    'mirror:5000/x/c:1',
    'mirror:5000/x/d',
    'mirror:5000/x/library/debian:12',
    'mirror:5000/x/valkey/valkey:8',
  ]);
});

test('lists whole names, since tools that copy images know no default, and what a default installation runs', () => {
  const listed = listedImages(CHART);
  expect(placesOf(listed)).toEqual(listed);
  const manifests = ['controller', 'api', 'dashboard', 'ssh'].map((role) => `deploy/base/${role}.yaml`);
  const run = placesOf(manifests.flatMap((path) => imagesIn(readFileSync(join(ROOT, path), 'utf8'))));
  expect(run).toEqual(listed.filter((image) => !image.includes('valkey')));
});

test('a release lists its own image by the digest that its values have', () => {
  const listed = listedImages(listedByDigest(CHART, 'sha256:ab'));
  expect(listed).toContain('ghcr.io/berth-dev/berth@sha256:ab');
  expect(listed).toHaveLength(listedImages(CHART).length);
  expect(() => listedByDigest('name: berth\n', 'sha256:ab')).toThrow('Chart.yaml');
});
