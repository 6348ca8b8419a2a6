import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalFailure } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';
import { lastLines, run } from '../lib/shell.ts';

/** Gives Helm folders of its own, so that the user's plugins and repositories change nothing. */
export function helmEnvironment(): NodeJS.ProcessEnv {
  const folder = join(tmpdir(), 'berth-helm');
  return { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
}

/** Arguments that render what only the newest Kubernetes can have. */
export const NEWEST = ['--api-versions', 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy'];

/** The chart's objects as `berth` in `berth-system`, as one YAML stream. Throws LocalFailure with Helm's words. */
export async function renderChart(helm: string, args: readonly string[]): Promise<string> {
  const base = ['template', 'berth', join(ROOT, 'charts/berth'), '--namespace', 'berth-system'];
  const { code, stdout, stderr } = await run(helm, [...base, ...args], { env: helmEnvironment() });
  if (code !== 0)
    throw new LocalFailure('The chart cannot be rendered.', 'Read the lines below.', lastLines(stderr, 10));
  return stdout;
}
