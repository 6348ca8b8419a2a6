import { kubernetesVersion, versionFlags } from '../lib/go/programs.ts';
import type { GoProgram } from '../release/go-tools.ts';

/** What a node of kind needs and the built cluster does not have, and kind itself. */
export function kindPrograms(): GoProgram[] {
  return [
    { name: 'kind', module: 'deploy/tools-go/kind', package: 'sigs.k8s.io/kind' },
    {
      name: 'kubeadm',
      module: 'deploy/tools-go/kubeadm',
      package: 'k8s.io/kubernetes/cmd/kubeadm',
      flags: versionFlags(kubernetesVersion()),
    },
    {
      name: 'local-path-provisioner',
      module: 'deploy/tools-go/local-path-provisioner',
      package: 'github.com/rancher/local-path-provisioner',
    },
  ];
}
