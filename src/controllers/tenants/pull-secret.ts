import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { findObject } from '../../kube/client/find-object.ts';
import { KubeError } from '../../kube/errors.ts';
import { SECRETS } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { pullContentFor } from '../../resources/image-credentials.ts';
import { DOCKER_CONFIG, PULL_SECRET } from '../../resources/registry-credential.ts';
import { API_VERSION } from '../../resources/schema.ts';
import { TENANT_LIMITS, type TenantLimit } from '../../resources/tenants/tenant-limit.ts';
import { OWN_LABELS } from './own-labels.ts';

/** How old the operator's Secrets may be when a tenant gets them, milliseconds. */
const READ_MS = 60_000;
/** How often a tenant's copy is looked at, milliseconds: Berth watches no Secret. */
export const LOOK_MS = 600_000;

export interface PullSecretDeps {
  client: Pick<KubeClient, 'get' | 'create' | 'patch'>;
  clock: Pick<Clock, 'monotonic'>;
  log: Logger;
  config: {
    /** Berth's own. */
    namespace: string;
    /** Secrets there; empty: a tenant gets none. */
    imagePullSecrets: readonly string[];
    toolsImage: string;
    defaultImage: string;
  };
}

type Content = NonNullable<ReturnType<typeof pullContentFor>>;

/** Keeps in each tenant's namespace the credentials for Berth's own images, which pods there are made of. */
export class PullSecrets {
  readonly #deps: PullSecretDeps;
  #read: { at: number; content: Content | undefined } | undefined;

  constructor(deps: PullSecretDeps) {
    this.#deps = deps;
  }

  get isNeeded(): boolean {
    return this.#deps.config.imagePullSecrets.length > 0;
  }

  /** What the copies have; undefined when no Secret has credentials for these images. */
  async #wanted(signal: AbortSignal): Promise<Content | undefined> {
    const { client, clock, config, log } = this.#deps;
    const now = clock.monotonic();
    if (this.#read !== undefined && now - this.#read.at < READ_MS) return this.#read.content;
    const { namespace, imagePullSecrets } = config;
    const found = await Promise.all(
      imagePullSecrets.map((name) => findObject(client, SECRETS, { namespace, name }, { signal })),
    );
    const images = [config.toolsImage, config.defaultImage];
    const content = pullContentFor(images, found);
    if (content === undefined)
      log.warn({ secrets: imagePullSecrets, images }, 'no imagePullSecret has credentials for these images');
    this.#read = { at: now, content };
    return content;
  }

  /** Makes the copy of one namespace what it should be. It goes with the tenant's TenantLimit, which owns it. */
  async keep({ metadata: owner }: TenantLimit, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const { namespace = '', name, uid = '' } = owner;
    const content = await this.#wanted(signal);
    if (content === undefined) return;
    const ref = { namespace, name: PULL_SECRET };
    const ownerReferences = [{ apiVersion: API_VERSION, kind: TENANT_LIMITS.kind, name, uid }];
    const held = await findObject(client, SECRETS, ref, { signal });
    if (held === undefined) {
      const metadata = { ...ref, labels: OWN_LABELS, ownerReferences };
      await client.create(SECRETS, { metadata, ...content }, { signal });
      return;
    }
    const { data } = content;
    const isSame =
      held.data?.[DOCKER_CONFIG] === data[DOCKER_CONFIG] && held.metadata.ownerReferences?.[0]?.uid === uid;
    if (isSame) return;
    const body = { metadata: { uid: held.metadata.uid, labels: OWN_LABELS, ownerReferences }, data };
    try {
      await client.patch(SECRETS, ref, body, { type: 'merge', signal });
    } catch (error) {
      // Somebody else's Secret of this name may be of a type that takes no such data. The tenant harms only itself.
      if (!(error instanceof KubeError) || error.status !== 422) throw error;
      log.warn({ namespace, secret: PULL_SECRET }, 'a Secret of this name cannot hold the credentials: delete it');
    }
  }
}
