import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalFailure } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';
import { lastLines, run } from '../lib/shell.ts';

/** Helm with folders of its own: neither plugins nor repositories of whoever runs it change the outcome. */
export function helmEnvironment(): NodeJS.ProcessEnv {
  const folder = join(tmpdir(), 'berth-helm');
  return { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
}

/** For a cluster that has what only the newest Kubernetes has. */
export const NEWEST = ['--api-versions', 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy'];

/** The chart's objects as `berth` in `berth-system`, as one YAML stream. Throws LocalFailure with Helm's words. */
export async function renderChart(helm: string, args: readonly string[]): Promise<string> {
  const base = ['template', 'berth', join(ROOT, 'charts/berth'), '--namespace', 'berth-system'];
  const { code, stdout, stderr } = await run(helm, [...base, ...args], { env: helmEnvironment() });
  if (code !== 0)
    throw new LocalFailure('The chart cannot be rendered.', 'Read the lines below.', lastLines(stderr, 10));
  return stdout;
}
