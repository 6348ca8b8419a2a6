import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

const text = readFileSync(join(ROOT, 'docs/run/compatibility.md'), 'utf8');

test.each([
  ['Kubernetes', 'deploy/local/kubernetes', 'k8s.io/kubernetes'],
  ['Kubernetes', 'deploy/local/kubernetes', 'go.etcd.io/etcd/server/v3'],
  ['Container runtime', 'deploy/local/containerd', 'github.com/containerd/containerd/v2'],
  ['Network', 'deploy/tools-go/network-policies', 'github.com/cloudnativelabs/kube-router/v2'],
  ['Simulated nodes', 'deploy/local/kubernetes', 'sigs.k8s.io/kwok'],
  ['Helm', 'deploy/tools-go/helm', 'helm.sh/helm/v3'],
])('%s: the version that was run is that of %s, %s', (part, folder, module) => {
  const lock = readFileSync(join(ROOT, folder, 'go.mod'), 'utf8');
  const version = lock
    .split('\n')
    .find((line) => line.trim().startsWith(`${module} v`))
    ?.trim()
    .split(' ')[1];
  const [, run] = new RegExp(`^\\| ${part} \\| ([^|]+) \\|`, 'm').exec(text) ?? [];
  expect(run).toMatch(new RegExp(`\\b${version?.slice(1).replaceAll('.', '\\.')}\\b`));
});
