import { join } from 'node:path';
import { DRIVER_VERSION, type Gpu, gpuDevices } from '../fleet/labels.ts';
import { KWOK_STAGES, kubernetesVersion, ownProgram } from '../../lib/go/programs.ts';

/** One long-running program of a cluster. */
export interface Component {
  name: string;
  command: string;
  args: string[];
}

/** The folders and addresses in the command lines. */
export interface Layout {
  programs: string;
  credentials: string;
  config: string;
  data: string;
  etcdPort: number;
  etcdPeerPort: number;
  apiPort: number;
  bindAddress: string;
  /** The address that the `kubernetes` Service leads to; undefined where no pod can reach one. */
  advertiseAddress?: string | undefined;
  serviceCidr: string;
  podCidr: string;
  simulatedCidr: string;
  /** Whether the API server writes an audit log, for tests that compare granted rights with used ones. */
  audit?: boolean | undefined;
  /** Whether a DRA driver gives the GPUs of the real node. Then operators can taint devices with a DeviceTaintRule. */
  dra?: boolean | undefined;
}

/** The gate without which Kubernetes 1.36 reads no DeviceTaintRule. Newer versions read them by default. */
const TAINT_RULES = { 'feature-gates': 'DRADeviceTaintRules=true' };

function needsTaintRules({ dra }: Pick<Layout, 'dra'>): boolean {
  return dra === true && kubernetesVersion().startsWith('1.36.');
}

/** The path of the audit log, which has one JSON object per line. */
export function auditLog({ data }: Pick<Layout, 'data'>): string {
  return join(data, 'audit.log');
}

function flags(values: Record<string, string | number | boolean>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

export function etcd({ programs, credentials, data, etcdPort, etcdPeerPort }: Layout): Component {
  const client = `https://127.0.0.1:${etcdPort}`;
  const peer = `https://127.0.0.1:${etcdPeerPort}`;
  const certificate = join(credentials, 'etcd.crt');
  const key = join(credentials, 'etcd.key');
  const authority = join(credentials, 'ca.crt');
  const args = flags({
    'data-dir': join(data, 'etcd'),
    // The data ends with the cluster, so etcd need not wait for the disk.
    'unsafe-no-fsync': true,
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `default=${peer}`,
    'cert-file': certificate,
    'key-file': key,
    'trusted-ca-file': authority,
    'client-cert-auth': true,
    'peer-cert-file': certificate,
    'peer-key-file': key,
    'peer-trusted-ca-file': authority,
    'peer-client-cert-auth': true,
    'log-level': 'warn',
  });
  return { name: 'etcd', command: join(programs, 'etcd'), args };
}

export function apiServer(layout: Layout): Component {
  const { programs, credentials, config, etcdPort, apiPort, advertiseAddress, data, audit } = layout;
  const file = (name: string) => join(credentials, name);
  const args = flags({
    'etcd-servers': `https://127.0.0.1:${etcdPort}`,
    'etcd-cafile': file('ca.crt'),
    'etcd-certfile': file('etcd.crt'),
    'etcd-keyfile': file('etcd.key'),
    'bind-address': layout.bindAddress,
    'secure-port': apiPort,
    'cert-dir': join(data, 'apiserver'),
    'tls-cert-file': file('apiserver.crt'),
    'tls-private-key-file': file('apiserver.key'),
    'client-ca-file': file('ca.crt'),
    'token-auth-file': file('tokens.csv'),
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'kubelet-client-certificate': file('apiserver-kubelet.crt'),
    'kubelet-client-key': file('apiserver-kubelet.key'),
    'kubelet-certificate-authority': file('ca.crt'),
    'kubelet-preferred-address-types': 'InternalIP',
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-account-key-file': file('service-accounts.pub'),
    'service-account-signing-key-file': file('service-accounts.key'),
    'service-cluster-ip-range': layout.serviceCidr,
    'allow-privileged': true,
    profiling: false,
    // A loopback address is no valid endpoint, and without a real node no pod needs one.
    ...(advertiseAddress === undefined
      ? { 'endpoint-reconciler-type': 'none' }
      : { 'advertise-address': advertiseAddress }),
    ...(needsTaintRules(layout) ? { ...TAINT_RULES, 'runtime-config': 'resource.k8s.io/v1beta2=true' } : {}),
    ...(audit === true ? { 'audit-policy-file': join(config, 'audit.json'), 'audit-log-path': auditLog(layout) } : {}),
  });
  return { name: 'kube-apiserver', command: join(programs, 'kube-apiserver'), args };
}

export function controllerManager({ programs, credentials, data, dra }: Layout): Component {
  const args = flags({
    kubeconfig: join(credentials, 'controller-manager.kubeconfig'),
    'service-account-private-key-file': join(credentials, 'service-accounts.key'),
    'root-ca-file': join(credentials, 'ca.crt'),
    'cert-dir': join(data, 'controller-manager'),
    'leader-elect': false,
    'secure-port': 0,
    'enable-hostpath-provisioner': true,
    'kube-api-qps': 1000,
    'kube-api-burst': 2000,
    profiling: false,
    ...(needsTaintRules({ dra }) ? TAINT_RULES : {}),
  });
  return { name: 'kube-controller-manager', command: join(programs, 'kube-controller-manager'), args };
}

export function scheduler({ programs, config, dra }: Layout): Component {
  const gates = needsTaintRules({ dra }) ? TAINT_RULES : {};
  const args = flags({ config: join(config, 'scheduler.json'), 'secure-port': 0, ...gates });
  return { name: 'kube-scheduler', command: join(programs, 'kube-scheduler'), args };
}

export function kwok(layout: Pick<Layout, 'programs' | 'credentials' | 'config' | 'simulatedCidr'>): Component {
  const { programs, credentials, config, simulatedCidr } = layout;
  const args = flags({
    kubeconfig: join(credentials, 'kwok.kubeconfig'),
    config: join(config, KWOK_STAGES),
    'manage-all-nodes': false,
    'manage-nodes-with-annotation-selector': 'kwok.x-k8s.io/node=fake',
    'node-lease-duration-seconds': 40,
    cidr: simulatedCidr,
    'server-address': '127.0.0.1:0',
  });
  return { name: 'kwok', command: join(programs, 'kwok'), args };
}

export function containerd({ programs, config }: Layout): Component {
  return { name: 'containerd', command: join(programs, 'containerd'), args: ['-c', join(config, 'containerd.toml')] };
}

export function kubelet({ programs, credentials, config, advertiseAddress = '' }: Layout): Component {
  const args = flags({
    config: join(config, 'kubelet.json'),
    kubeconfig: join(credentials, 'kubelet.kubeconfig'),
    'hostname-override': 'real-0',
    'node-ip': advertiseAddress,
  });
  return { name: 'kubelet', command: join(programs, 'kubelet'), args };
}

/** The file with the UUIDs of the real node's GPUs that are sick, one in each line. What gives the GPUs reads it. */
export function sickGpus({ data }: Pick<Layout, 'data'>): string {
  return join(data, 'sick-gpus');
}

/** The folder where containerd looks for the CDI files of the DRA driver. */
export function cdiFolder({ data }: Pick<Layout, 'data'>): string {
  return join(data, 'cdi');
}

/** What gives the GPUs of the real node to its kubelet: a DRA driver, or a device plugin. */
export function gpuGiver(layout: Layout, gpu: Gpu): Component {
  return layout.dra === true ? draDriver(layout, gpu) : gpuPlugin(layout, gpu);
}

/** The DRA driver of the real node, with its whole GPUs. */
function draDriver(layout: Layout, gpu: Gpu): Component {
  const { 'nvidia.com/gpu': uuids = [] } = gpuDevices(gpu);
  const args = flags({
    kubeconfig: join(layout.credentials, 'kubelet.kubeconfig'),
    node: 'real-0',
    cdi: cdiFolder(layout),
    sick: sickGpus(layout),
    product: gpu.product.replaceAll('-', ' '),
    memory: `${gpu.memory}Mi`,
    version: DRIVER_VERSION,
  });
  return { name: 'dra-driver', command: join(layout.programs, ownProgram('dra-driver')), args: [...args, ...uuids] };
}

/** The device plugin of the real node, with its GPUs. */
export function gpuPlugin(layout: Layout, gpu: Gpu): Component {
  const devices = Object.entries(gpuDevices(gpu)).map(([resource, ids]) => `${resource}=${ids.join(',')}`);
  return {
    name: 'device-plugin',
    command: join(layout.programs, ownProgram('device-plugin')),
    args: ['-sick', sickGpus(layout), ...devices],
  };
}

export function kubeProxy({ programs, credentials, podCidr }: Layout): Component {
  const args = flags({
    kubeconfig: join(credentials, 'kube-proxy.kubeconfig'),
    'hostname-override': 'real-0',
    'proxy-mode': 'iptables',
    'cluster-cidr': podCidr,
    // These sysctls belong to the host's network namespace in most containers.
    'conntrack-max-per-core': 0,
    'conntrack-tcp-timeout-established': '0s',
    'conntrack-tcp-timeout-close-wait': '0s',
  });
  return { name: 'kube-proxy', command: join(programs, 'kube-proxy'), args };
}

/** kube-router's controller of network policies, whose path is `command`. */
export function networkPolicies({ credentials, serviceCidr }: Layout, command: string): Component {
  const args = flags({
    kubeconfig: join(credentials, 'admin.kubeconfig'),
    'hostname-override': 'real-0',
    'service-cluster-ip-range': serviceCidr,
    'metrics-port': 0,
  });
  return { name: 'network-policies', command, args };
}
