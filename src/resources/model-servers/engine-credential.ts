import { inspect } from 'node:util';
import type { Secret } from '../../kube/types.ts';

/** On a Secret of Berth's own namespace: the Services and ModelServers, `namespace/name` separated by commas, that may use it. */
export const CREDENTIAL_FOR = 'berth.dev/model-credential-for';
/** The Secrets with keys of engines, which the operator lists: Berth reads no other. */
export interface EngineSecrets {
  names: readonly string[];
  /** Reads a Secret of Berth's own namespace. */
  read: (name: string, signal: AbortSignal) => Promise<Secret>;
}

/** Anthropic's API answers no call without this header (its documentation, "Versions"): name and value. */
export const ANTHROPIC_VERSION = ['anthropic-version', '2023-06-01'] as const;

const FIELD = 'api-key';
/** What an HTTP header can carry (RFC 9110 section 5.5), without spaces. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;
const SHOWN = '[credential]';

/** The key of an engine. It shows itself to nobody but the engine: not to logs, not to JSON. */
export class EngineCredential {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  /** The value of the header Authorization. */
  get authorization(): string {
    return `Bearer ${this.#token}`;
  }

  /** The header for a server outside, name and value. Anthropic's API has one of its own. */
  headerOutside(isMessages: boolean): [string, string] {
    return isMessages ? ['x-api-key', this.#token] : ['authorization', this.authorization];
  }

  /** Takes the key out of what an engine says in an error. */
  redact(text: string): string {
    return text.replaceAll(this.#token, SHOWN);
  }

  isSame(other: EngineCredential | undefined): boolean {
    return other !== undefined && other.#token === this.#token;
  }

  toJSON(): string {
    return SHOWN;
  }

  [inspect.custom](): string {
    return SHOWN;
  }
}

/**
 * Reads the key for one Service or ModelServer out of a Secret. The Secret itself says whose it is: a tenant writes the annotations of
 * its Services, and must not make Berth send another's key to its own pod. Returns what is wrong, else the credential.
 */
export function credentialIn(
  secret: Secret,
  { namespace, name }: { namespace: string; name: string },
): EngineCredential | string {
  const owners = (secret.metadata.annotations?.[CREDENTIAL_FOR] ?? '').split(',').map((owner) => owner.trim());
  if (!owners.includes(`${namespace}/${name}`))
    return `the Secret ${secret.metadata.name} does not name this server in its annotation ${CREDENTIAL_FOR}`;
  const token = Buffer.from(secret.data?.[FIELD] ?? '', 'base64')
    .toString('utf8')
    .trim();
  if (TOKEN.test(token)) return new EngineCredential(token);
  return `the Secret ${secret.metadata.name} has no key ${FIELD} that a header can carry`;
}
