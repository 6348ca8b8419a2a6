import { ForbiddenError, NotFoundError } from '../../kube/errors.ts';
import type { Secret } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import {
  credentialIn,
  type EngineCredential,
  type EngineSecrets,
} from '../../resources/model-servers/engine-credential.ts';
import type { ServerSpec } from './types.ts';

export interface CredentialsDeps {
  secrets: EngineSecrets;
  /** Called when a Secret has changed. Must only schedule work. */
  changed: () => void;
  clock: Clock;
}

/** A key that the operator takes away is not used for longer. */
const EVERY_MS = 10_000;
/** It is no fault that a Secret was not read yet. */
const UNREAD = '';

/**
 * Follows the Secrets that Services name as the credentials of their engines. It reads each every 10 s, because the
 * right to watch one by its name would be the right to watch it alone, in a watch of its own. While the API server does
 * not answer, the last one stays valid; a Secret that is gone or forbidden is not used any more.
 */
export class Credentials {
  readonly #deps: CredentialsDeps;
  readonly #stop = new AbortController();
  readonly #wanted = new Set<string>();
  readonly #found = new Map<string, Secret | string>();
  #loop: Promise<void> | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(deps: CredentialsDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Resolves when no Secret is being read any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.resolve();
    await this.#loop;
  }

  /**
   * The credential of a server that names one: undefined for a server that names none, a text when it cannot be used:
   * why, or empty while it is not read yet.
   * Such a server must get no calls, which would go out without the key.
   */
  of(server: ServerSpec): EngineCredential | string | undefined {
    const name = server.credential;
    if (name === undefined) return undefined;
    if (!this.#deps.secrets.names.includes(name))
      return `the operator has not listed the Secret ${name} in models.engineSecrets of the chart`;
    if (!this.#wanted.has(name)) {
      this.#wanted.add(name);
      this.#wake.resolve();
    }
    const found = this.#found.get(name) ?? UNREAD;
    return typeof found === 'string' ? found : credentialIn(found, server);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      for (const name of this.#wanted) await this.#read(name);
      await Promise.race([this.#wake.promise, this.#deps.clock.sleep(EVERY_MS, signal)]);
    }
  }

  async #read(name: string): Promise<void> {
    const { secrets, changed } = this.#deps;
    const before = this.#found.get(name);
    let after: Secret | string;
    try {
      after = await secrets.read(name, this.#stop.signal);
    } catch (error) {
      if (error instanceof NotFoundError) after = `there is no Secret ${name} in Berth's namespace`;
      else if (error instanceof ForbiddenError) after = `Berth may not read the Secret ${name}`;
      else return;
    }
    if (versionOf(before) === versionOf(after)) return;
    this.#found.set(name, after);
    changed();
  }
}

function versionOf(found: Secret | string | undefined): string {
  if (found === undefined || typeof found === 'string') return found ?? '';
  return `${found.metadata.uid}/${found.metadata.resourceVersion}`;
}
