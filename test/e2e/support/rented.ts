import type { KubeClient } from '../../../src/kube/client/client.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Tenant } from './http.ts';
import { tryRecords } from './records.ts';
import { TENANT } from './release.ts';
import type { SshPlace } from './ssh.ts';
import type { World } from './world.ts';

export async function noInstancesIn(client: KubeClient, namespace: string): Promise<boolean> {
  return (await client.list(GPU_INSTANCES, { namespace })).items.length === 0;
}

/** An instance that a tenant rented over HTTP. */
export class Rented {
  readonly #world: World;
  readonly #user: Tenant;
  readonly id: string;

  constructor(world: World, user: Tenant, id: string) {
    this.#world = world;
    this.#user = user;
    this.id = id;
  }

  async #record(): Promise<Record<string, unknown>> {
    const { status, body } = await this.#user.call('GET', `/api/v1/instances/${this.id}`);
    if (status !== 200) throw new Error(`GET of ${this.id} answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Waits until it runs. Throws when it fails. */
  async running(): Promise<void> {
    await waitFor(
      'the instance runs',
      async () => {
        const { state, message } = await this.#record();
        if (state === 'failed') throw new Error(`the instance failed: ${String(message)}`);
        return state === 'running';
      },
      240_000,
    );
  }

  /** The address for SSH. */
  async place(): Promise<SshPlace> {
    const { known_hosts: hostKey, user } = (await this.#record())['ssh'] as { known_hosts: string; user: string };
    return { ...(await this.#world.service('berth-ssh')), user, hostKey };
  }

  /** What a key alone shows of it. */
  tryRecords(): Promise<void> {
    return tryRecords(this.#world, this.#user, this.id);
  }

  /** What must not change during an upgrade of the release. */
  async identity(): Promise<{ uid: string | undefined; restarts: number | undefined; startedAt: unknown }> {
    const { metadata, status } = await this.#world.pod(TENANT, `berth.dev/instance=${this.id}`);
    const main = status?.containerStatuses?.find(({ name }) => name === 'main');
    return { uid: metadata.uid, restarts: main?.restartCount, startedAt: main?.state?.running?.startedAt };
  }
}
