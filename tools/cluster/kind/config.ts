import { stringify } from 'yaml';
import type { ClusterNetwork } from '../built/network.ts';

/** Where the node sees the folder of its cluster. */
const INSIDE = '/var/lib/berth';

export interface KindConfig extends Pick<ClusterNetwork, 'podCidr' | 'serviceCidr'> {
  /** The folder of this machine that has the patches, and takes the audit log. */
  folder: string;
  audit: boolean;
  /** The image of the node; that of kind's release when left out. */
  image?: string | undefined;
}

/** With the default of 50 requests a second, benchmarks would measure the limits of these two. */
const FAST = { 'kube-api-qps': '1000', 'kube-api-burst': '2000' };

const AUDIT = {
  'audit-policy-file': `${INSIDE}/audit-policy.json`,
  'audit-log-path': `${INSIDE}/audit.log`,
};

/** The cluster file of kind: one node that runs real containers. */
export function kindConfig({ podCidr, serviceCidr, folder, audit, image }: KindConfig): object {
  const initConfiguration = { kind: 'InitConfiguration', patches: { directory: `${INSIDE}/patches` } };
  // kind and the version of Kubernetes choose between these two; the other patch matches nothing.
  const versions = (['v1beta3', 'v1beta4'] as const).map((version) => clusterConfiguration(version, audit));
  return {
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    networking: { podSubnet: podCidr, serviceSubnet: serviceCidr },
    nodes: [
      {
        role: 'control-plane',
        ...(image === undefined ? {} : { image }),
        extraMounts: [{ hostPath: folder, containerPath: INSIDE }],
        kubeadmConfigPatches: [initConfiguration, ...versions].map((patch) => stringify(patch)),
      },
    ],
  };
}

/** v1beta3 has the arguments as an object, v1beta4 as a list. */
function clusterConfiguration(version: 'v1beta3' | 'v1beta4', audit: boolean): object {
  const asWritten = (values: Readonly<Record<string, string>>) =>
    version === 'v1beta3' ? values : Object.entries(values).map(([name, value]) => ({ name, value }));
  const volume = { name: 'berth', hostPath: INSIDE, mountPath: INSIDE };
  return {
    kind: 'ClusterConfiguration',
    apiVersion: `kubeadm.k8s.io/${version}`,
    controllerManager: { extraArgs: asWritten(FAST) },
    scheduler: { extraArgs: asWritten(FAST) },
    ...(audit ? { apiServer: { extraArgs: asWritten(AUDIT), extraVolumes: [volume] } } : {}),
  };
}

const CONTROL_PLANE = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

/**
 * kubeadm's patches by the names of their files. What the control plane asks for is what instances cannot rent: with
 * kubeadm's 650m, a machine of two cores has room for one instance, and the node has two GPUs.
 */
export function kubeadmPatches(): Record<string, string> {
  const patch = (name: string) =>
    stringify({ spec: { containers: [{ name, resources: { requests: { cpu: '10m' } } }] } });
  return Object.fromEntries(CONTROL_PLANE.map((name) => [`${name}+strategic.yaml`, patch(name)]));
}
