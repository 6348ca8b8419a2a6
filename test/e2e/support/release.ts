import { parseAllDocuments } from 'yaml';
import { run } from '../../../tools/lib/shell.ts';
import { helmEnvironment } from '../../../tools/release/helm.ts';
import { INSTANCE_IMAGE } from './images.ts';

export const NAMESPACE = 'berth-system';
export const ROLES = ['controller', 'api', 'dashboard', 'ssh'] as const;
/** A tenant with Pod Security baseline, made by the chart. */
export const TENANT = 'alice';
/** Another one. */
export const OTHER = 'bob';

/** Small requests: the node of a test machine has to hold two releases and the instances during an upgrade. */
const SMALL = { requests: { cpu: '5m', memory: '64Mi' }, limits: { memory: '1Gi' } };

/** The values of the test. */
export const VALUES = {
  image: { pullPolicy: 'Never' },
  // The test images come from no registry.
  config: { defaultImage: INSTANCE_IMAGE, imagePullPolicy: 'IfNotPresent', logLevel: 'info' },
  controller: { resources: SMALL },
  api: { resources: SMALL },
  dashboard: { resources: SMALL },
  ssh: { resources: SMALL },
  tenants: { namespaces: [TENANT, OTHER] },
  models: { scaleFromZero: { namespaces: [TENANT] } },
};

/** Values by which the api role finds the dashboard in a cluster that resolves no names. */
export function dashboardAt({ host, port }: { host: string; port: number }): object {
  return { dashboard: { ...VALUES.dashboard, url: `http://${host}:${port}` } };
}

/** Values with an Ingress that leads `localhost` to the release. */
export function ingressOf(host: string): object {
  const { config } = VALUES;
  return { ingress: { enabled: true, hosts: [host] }, config: { ...config, trustProxy: '1' } };
}

/** Values by which records name the address of the ssh Service, which people reach from outside. */
export function sshAt({ host }: { host: string }): object {
  return { ssh: { ...VALUES.ssh, publicHost: host } };
}

export interface ReleaseOptions {
  /** Paths. */
  helm: string;
  kubeconfig: string;
  chart: string;
}

/** Helm with one cluster. A command that fails throws with Helm's output. */
export class Release {
  readonly #helm: string;
  readonly #kubeconfig: string;
  readonly #chart: string;

  /** `chart` is the released one: the packed chart, which names the image by its digest. */
  constructor({ helm, kubeconfig, chart }: ReleaseOptions) {
    this.#helm = helm;
    this.#kubeconfig = kubeconfig;
    this.#chart = chart;
  }

  async helm(args: readonly string[], input?: string): Promise<string> {
    const env = { ...helmEnvironment(), KUBECONFIG: this.#kubeconfig };
    const options = { env, ...(input !== undefined && { input }) };
    const { code, stdout, stderr } = await run(this.#helm, [...args, '--namespace', NAMESPACE], options);
    if (code !== 0) throw new Error(`helm ${args[0] ?? ''}: ${stderr}${stdout.slice(-2000)}`);
    return stdout;
  }

  /** Installs or upgrades to a chart, with these values over those of the test, and waits until all replicas are ready. */
  async upgrade(values: object = {}, chart = this.#chart): Promise<void> {
    const wait = ['--wait', '--timeout', '10m'];
    const args = ['upgrade', 'berth', chart, '--install', '--create-namespace', ...wait, '--values', '-'];
    await this.helm(args, JSON.stringify({ ...VALUES, ...values }));
  }

  /** The objects of a kind in the release. */
  async objects<T>(kind: string): Promise<T[]> {
    const manifest = await this.helm(['get', 'manifest', 'berth']);
    return parseAllDocuments(manifest)
      .map((document) => document.toJS() as (T & { kind: string }) | null)
      .filter((object) => object?.kind === kind) as T[];
  }
}
