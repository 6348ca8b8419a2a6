import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { type Pod, PODS, SERVICES } from '../../../src/kube/types.ts';
import { type Outcome, run } from '../../../tools/lib/shell.ts';
import { NAMESPACE, Release, type ReleaseOptions } from './release.ts';

export interface WorldOptions extends ReleaseOptions {
  /** Path of the program. */
  kubectl: string;
}

/** The cluster with the release in it, and clients for both. */
export class World {
  readonly client: KubeClient;
  readonly release: Release;
  readonly #options: WorldOptions;

  private constructor(client: KubeClient, options: WorldOptions) {
    this.client = client;
    this.release = new Release(options);
    this.#options = options;
  }

  static async open(options: WorldOptions): Promise<World> {
    const connection = await loadKubeConfig({ kubeconfig: options.kubeconfig });
    return new World(createKubeClient(connection, { clock: systemClock() }), options);
  }

  /** The cluster address of one of the release's Services. */
  async service(name: string): Promise<{ host: string; port: number }> {
    const { spec } = await this.client.get(SERVICES, { namespace: NAMESPACE, name });
    return { host: spec?.clusterIP ?? '', port: spec?.ports?.[0]?.port ?? 0 };
  }

  async pods(namespace: string, labelSelector: string): Promise<Pod[]> {
    return (await this.client.list(PODS, { namespace, labelSelector })).items;
  }

  /** The first pod with the label. Throws when there is none. */
  async pod(namespace: string, labelSelector: string): Promise<Pod> {
    const [pod] = await this.pods(namespace, labelSelector);
    if (pod === undefined) throw new Error(`${namespace} has no pod with ${labelSelector}`);
    return pod;
  }

  kubectl(args: readonly string[], input?: string): Promise<Outcome> {
    const { kubectl, kubeconfig } = this.#options;
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    return run(kubectl, args, { env, ...(input !== undefined && { input }) });
  }
}
