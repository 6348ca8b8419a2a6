import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { goEnvironment } from '../lib/go/build.ts';
import { diagnoseBuild } from '../lib/go/diagnose.ts';
import { requireGo } from '../lib/go/find.ts';
import { kubernetesVersion } from '../lib/go/programs.ts';
import { ROOT } from '../lib/paths.ts';
import type { Progress } from '../lib/progress.ts';
import { isExecutable, run } from '../lib/shell.ts';

/** A program of a locked Go module in this checkout. */
export interface GoProgram {
  name: string;
  /** Folder of the go.mod, from the root of the checkout. */
  module: string;
  package: string;
  flags?: string;
}

const HELM = 'helm.sh/helm/v3';
/** Flags that tell Helm the version of Kubernetes. Without them it assumes 1.20 and refuses charts that need a newer one. */
function helmFlags(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  const capabilities = `-X ${HELM}/pkg/chartutil.k8sVersionMajor=${major} -X ${HELM}/pkg/chartutil.k8sVersionMinor=${minor}`;
  return `${capabilities} -X ${HELM}/pkg/lint/rules.k8sVersionMajor=${major} -X ${HELM}/pkg/lint/rules.k8sVersionMinor=${minor}`;
}

/** The programs that check and install the chart. */
export function chartTools(): GoProgram[] {
  const module = 'deploy/tools-go/helm';
  const flags = helmFlags(kubernetesVersion());
  return [
    { name: 'helm', module, package: `${HELM}/cmd/helm`, flags },
    { name: 'helm-unittest', module, package: 'github.com/helm-unittest/helm-unittest/cmd/helm-unittest', flags },
    { name: 'kubeconform', module, package: 'github.com/yannh/kubeconform/cmd/kubeconform' },
    { name: 'kube-score', module: 'deploy/tools-go/kube-score', package: 'github.com/zegl/kube-score/cmd/kube-score' },
  ];
}

/** The program that enforces network policies on the node of the end-to-end test. */
export const NETWORK_POLICIES: GoProgram = {
  name: 'network-policies',
  module: 'deploy/tools-go/network-policies',
  package: '.',
};

/** etcd's own tools, which save and restore snapshots. */
export const ETCD_TOOLS: readonly GoProgram[] = ['etcdctl', 'etcdutl'].map((name) => ({
  name,
  module: 'deploy/tools-go/etcd',
  package: `go.etcd.io/etcd/${name}/v3`,
}));

/** The program that verifies signatures in the end-to-end test, with cosign's code. */
export const VERIFY_SIGNATURES: GoProgram = {
  name: 'verify-signatures',
  module: 'deploy/tools-go/cosign',
  package: '.',
};

/** The program that reads Terraform configuration, with HashiCorp's code for its language. */
export const TERRAFORM_MANIFESTS: GoProgram = {
  name: 'terraform-manifests',
  module: 'deploy/tools-go/terraform',
  package: '.',
};

/** The collector that traces are sent to in a test, of OpenTelemetry's own code. */
export const COLLECTOR: GoProgram = {
  name: 'collector',
  module: 'deploy/tools-go/collector',
  package: '.',
};

export interface GoToolOptions {
  cache: string;
  /** First part of the folder's name in the cache. */
  label: string;
  programs: readonly GoProgram[];
  /** Names of the programs that are needed now; all of them when left out. */
  needed?: readonly string[];
  progress: Progress;
  signal: AbortSignal;
}

/** The folder of these programs. It changes with every locked module, so checkouts of different age can share a cache. */
function folderOf({ cache, label, programs }: GoToolOptions): string {
  const hash = createHash('sha256').update(`${platform()}/${arch()}`).update(JSON.stringify(programs));
  for (const module of new Set(programs.map((program) => program.module))) {
    const files = readdirSync(join(ROOT, module)).filter((name) => /\.(go|mod|sum)$/.test(name));
    for (const file of files.toSorted()) hash.update(readFileSync(join(ROOT, module, file)));
  }
  return join(cache, 'bin', `${label}-${hash.digest('hex').slice(0, 12)}`);
}

/** Builds the programs that are missing, statically, and returns their folder. Throws LocalFailure. */
export async function ensureGoTools(options: GoToolOptions): Promise<string> {
  const { cache, programs, needed, progress, signal } = options;
  const folder = folderOf(options);
  const missing: GoProgram[] = [];
  for (const program of programs.filter(({ name }) => needed?.includes(name) ?? true)) {
    if (!(await isExecutable(join(folder, program.name)))) missing.push(program);
  }
  if (missing.length === 0) return folder;
  const go = await requireGo();
  mkdirSync(folder, { recursive: true });
  for (const [index, { name, module, package: path, flags = '' }] of missing.entries()) {
    progress.step({
      title: `Building ${name}`,
      index: index + 1,
      total: missing.length,
      next: missing[index + 1]?.name,
    });
    const partial = join(folder, `.${name}.${process.pid}.partial`);
    const ldflags = `-s -w -buildid= ${flags}`.trim();
    const args = ['build', '-buildvcs=false', '-trimpath', '-ldflags', ldflags, '-o', partial, path];
    const { code, stdout, stderr } = await run(go, args, {
      cwd: join(ROOT, module),
      env: goEnvironment(cache),
      signal,
    });
    signal.throwIfAborted();
    if (code !== 0) throw diagnoseBuild(name, stdout + stderr);
    renameSync(partial, join(folder, name));
  }
  progress.end();
  return folder;
}
