import { CONTAINERD_SOCKET } from '../../lib/images/image.ts';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KWOK_STAGES } from '../../lib/go/programs.ts';
import { cdiFolder, type Layout } from './components.ts';
import { kwokStages } from './kwok-stages.ts';

/** The sandbox image of every pod. It is made here, so that no registry is needed. */
export const PAUSE_IMAGE = 'localhost/berth-pause:1';

/** Writes the configuration files of the components. */
export function writeConfigFiles(layout: Layout, node?: { cgroup: string; cniFolder: string }): void {
  const { config } = layout;
  mkdirSync(config, { recursive: true, mode: 0o700 });
  const write = (name: string, value: unknown) =>
    writeFileSync(join(config, name), JSON.stringify(value, undefined, 2));
  write('scheduler.json', schedulerConfig(layout));
  writeKwokStages(layout);
  if (layout.audit === true) write('audit.json', AUDIT_POLICY);
  if (node === undefined) return;
  write('kubelet.json', kubeletConfig(layout, node.cgroup));
  mkdirSync(join(config, 'cni'), { recursive: true });
  write('cni/10-berth.conflist', cniConfig(layout));
  writeFileSync(join(config, 'containerd.toml'), containerdConfig(layout, node.cniFolder));
  // Pods reach no name server: the cluster has none, and that of the host may answer on its loopback alone.
  writeFileSync(join(config, 'resolv.conf'), 'nameserver 127.0.0.1\n');
}

/** Writes the stages that make simulated nodes and pods move. */
export function writeKwokStages({ programs, config }: Pick<Layout, 'programs' | 'config'>): void {
  writeFileSync(join(config, KWOK_STAGES), kwokStages(readFileSync(join(programs, KWOK_STAGES), 'utf8')));
}

/** Logs every request with its user and answer, without bodies, and a watch when it starts. */
export const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
};

function schedulerConfig({ credentials }: Layout): object {
  return {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    // With the default of 50 requests a second, benchmarks would measure the scheduler's own limit.
    clientConnection: { kubeconfig: join(credentials, 'scheduler.kubeconfig'), qps: 1000, burst: 2000 },
    leaderElection: { leaderElect: false },
    enableProfiling: false,
  };
}

function kubeletConfig({ credentials, config, data }: Layout, cgroup: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: cgroup,
    failCgroupV1: false,
    failSwapOn: false,
    podLogsDir: join(data, 'pod-logs'),
    volumePluginDir: join(data, 'volume-plugins'),
    resolvConf: join(config, 'resolv.conf'),
    tlsCertFile: join(credentials, 'kubelet.crt'),
    tlsPrivateKeyFile: join(credentials, 'kubelet.key'),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(credentials, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    // The kubelet refuses zero, and its defaults evict pods from a disk that is 85 % full.
    evictionHard: {
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'nodefs.inodesFree': '1%',
      'memory.available': '50Mi',
    },
    // Never: the images of the node come from no registry, and it would delete them from a disk that is 85 % full.
    imageGCHighThresholdPercent: 100,
    maxPods: 110,
    serializeImagePulls: false,
    nodeStatusUpdateFrequency: '5s',
    shutdownGracePeriod: '0s',
  };
}

function cniConfig({ data, podCidr }: Layout): object {
  const ipam = {
    type: 'host-local',
    dataDir: join(data, 'addresses'),
    ranges: [[{ subnet: podCidr }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  return {
    cniVersion: '1.0.0',
    name: 'berth',
    plugins: [
      { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: true, ipam },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

function containerdConfig(layout: Layout, cniFolder: string): string {
  const { config, data } = layout;
  return `version = 3
root = ${JSON.stringify(join(data, 'containerd'))}
state = "/run/containerd"
[grpc]
  address = ${JSON.stringify(CONTAINERD_SOCKET)}
[plugins.'io.containerd.internal.v1.opt']
  path = ${JSON.stringify(join(data, 'opt'))}
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = ${JSON.stringify(PAUSE_IMAGE)}
[plugins.'io.containerd.cri.v1.runtime']
  # If CAP_SYS_RESOURCE is missing, runc fails when it must lower a score.
  restrict_oom_score_adj = true
  cdi_spec_dirs = [${JSON.stringify(cdiFolder(layout))}]
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [${JSON.stringify(cniFolder)}]
  conf_dir = ${JSON.stringify(join(config, 'cni'))}
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = false
`;
}
