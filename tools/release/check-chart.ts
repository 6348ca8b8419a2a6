import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { LocalFailure, runMain } from '../lib/failure.ts';
import { cacheFolder, ROOT } from '../lib/paths.ts';
import { terminalProgress } from '../lib/progress.ts';
import { lastLines, run } from '../lib/shell.ts';
import { imagesIn, listedImages, placesOf } from './chart-images.ts';
import { chartTools, ensureGoTools } from './go-tools.ts';
import { helmEnvironment, NEWEST, renderChart } from './helm.ts';
import { isKept, keepChart } from './kept-charts.ts';
import { checkManifests, writeManifests } from './manifests.ts';
import { readOpenApi } from './open-api.ts';
import { CONSTRAINTS, podsIn, refusalsOf } from './openshift.ts';
import { builtInSchemas, customSchemas } from './schemas.ts';

const MANIFESTS = 'Run `npm run manifests` and commit the result.';
const CHART = join(ROOT, 'charts/berth');

/** Kinds of other projects, whose schemas are not kept here. */
const FOREIGN_KINDS = 'Kustomization,ServiceMonitor,PrometheusRule,HTTPRoute,TCPRoute';

/**
 * What kube-score asks for and the chart does not do. A CPU limit throttles the event loop long before the node is short
 * of CPU. The pods write to ephemeral storage only logs, which the kubelet rotates. The tag of the image is immutable. The
 * pods spread by topologySpreadConstraints. The test pod lives for seconds. The policy of a tenant selects pods that the
 * chart does not make.
 */
const IGNORED_SCORES = [
  'container-ephemeral-storage-request-and-limit',
  'container-image-pull-policy',
  'deployment-has-host-podantiaffinity',
  'pod-networkpolicy',
  'networkpolicy-targets-pod',
];

interface Check {
  title: string;
  command: string;
  args: string[];
  input?: string;
}

/** Values that switch every option on, so that every template is checked. */
function allOptions(): string {
  return join(CHART, 'ci/all-values.yaml');
}

async function writeSchemas(folder: string, cache: string): Promise<void> {
  const files = builtInSchemas(await readOpenApi(cache));
  for (const name of readdirSync(join(ROOT, 'crds'))) {
    const custom = customSchemas(parse(readFileSync(join(ROOT, 'crds', name), 'utf8')));
    for (const [file, schema] of custom) files.set(file, schema);
  }
  mkdirSync(folder, { recursive: true });
  for (const [file, schema] of files) writeFileSync(join(folder, file), JSON.stringify(schema));
}

async function checks(tools: string, folder: string): Promise<Check[]> {
  const helm = join(tools, 'helm');
  const defaults = await renderChart(helm, []);
  const everything = await renderChart(helm, [...NEWEST, '--values', allOptions()]);
  const schemas = ['-schema-location', `${folder}/{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json`];
  const conform = ['-strict', '-summary', '-skip', FOREIGN_KINDS, ...schemas];
  const samples = ['samples', 'tenant'].map((name) => join(ROOT, 'deploy', name));
  const score = ['score', '--output-format', 'ci', '--ignore-container-cpu-limit'];
  const ignored = IGNORED_SCORES.flatMap((name) => ['--ignore-test', name]);
  return [
    { title: 'helm lint', command: helm, args: ['lint', '--strict', CHART] },
    { title: 'helm lint, every option', command: helm, args: ['lint', '--strict', CHART, '--values', allOptions()] },
    { title: 'helm-unittest', command: join(tools, 'helm-unittest'), args: ['--strict', CHART] },
    { title: 'kubeconform', command: join(tools, 'kubeconform'), args: [...conform, '-'], input: everything },
    { title: 'kubeconform, samples', command: join(tools, 'kubeconform'), args: [...conform, ...samples] },
    { title: 'kube-score', command: join(tools, 'kube-score'), args: [...score, ...ignored, '-'], input: defaults },
  ];
}

/** Throws LocalFailure where the list for tools that mirror images is not that of the images of every option. */
async function checkImages(helm: string): Promise<void> {
  const listed = listedImages(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  for (const registry of [undefined, 'registry.example.com/all']) {
    const args = ['--values', allOptions(), '--set', `global.imageRegistry=${registry ?? ''}`];
    const run = imagesIn(await renderChart(helm, [...NEWEST, ...args]));
    if (isDeepStrictEqual(placesOf(listed, registry), registry === undefined ? placesOf(run) : run)) continue;
    const lines = [`listed: ${listed.join(' ')}`, `run:    ${run.join(' ')}`];
    throw new LocalFailure(
      'artifacthub.io/images of Chart.yaml is not what the chart runs.',
      'Make them equal.',
      lines,
    );
  }
}

/** Throws LocalFailure where `restricted-v2` of OpenShift refuses a pod of the chart, with every option and its values. */
async function checkOpenShift(helm: string): Promise<void> {
  const values = ['--values', allOptions(), '--values', join(CHART, 'ci/openshift-values.yaml')];
  const lines = podsIn(await renderChart(helm, [...NEWEST, ...values])).flatMap((pod) =>
    refusalsOf(pod, CONSTRAINTS['restricted-v2']).map((text) => `${pod.metadata.name}: ${text}`),
  );
  if (lines.length > 0)
    throw new LocalFailure('OpenShift refuses pods of the chart.', 'Ask for less in their templates.', lines);
}

async function main(): Promise<void> {
  const cache = cacheFolder(process.env);
  const progress = terminalProgress();
  const { signal } = new AbortController();
  const tools = await ensureGoTools({ cache, label: 'chart', programs: chartTools(), progress, signal });
  const helm = join(tools, 'helm');
  if (process.argv.includes('--write')) {
    await writeManifests(helm);
    await run(join(tools, 'helm-unittest'), ['--update-snapshot', CHART]);
    await keepChart(helm);
    return;
  }
  await checkImages(helm);
  console.log('images: ok');
  await checkOpenShift(helm);
  console.log('OpenShift: ok');
  const folder = mkdtempSync(join(tmpdir(), 'berth-schemas-'));
  try {
    await writeSchemas(folder, cache);
    for (const { title, command, args, input } of await checks(tools, folder)) {
      const { code, stdout, stderr } = await run(command, args, { env: helmEnvironment(), ...(input && { input }) });
      if (code !== 0) {
        const lines = lastLines(stdout + stderr, 60).filter((line) => !/^\[(OK|SKIPPED)\]/.test(line));
        throw new LocalFailure(`${title} reports problems.`, 'Read the lines below.', lines);
      }
      console.log(`${title}: ok`);
    }
    const stale = await checkManifests(helm);
    if (stale.length > 0) throw new LocalFailure('deploy/ differs from the chart.', MANIFESTS, stale);
    console.log('deploy/: ok');
    if (!(await isKept(helm))) throw new LocalFailure('The package for upgrade tests is not of this chart.', MANIFESTS);
    console.log('package for upgrade tests: ok');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await runMain(main);
