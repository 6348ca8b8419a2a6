import { CliFailure, EXIT } from '../failure.ts';
import { plain } from '../text.ts';
import type { Offer } from './records.ts';

/** The server does not answer. */
class Unreachable extends CliFailure {
  override name = 'Unreachable';
}

/** The server refuses; the message is its own. */
export class ApiFailure extends CliFailure {
  override name = 'ApiFailure';
  readonly status: number;
  readonly code: string;
  /** Free offers near to the one that was asked for. */
  readonly alternatives: readonly Offer[];

  constructor(status: number, error: ErrorBody) {
    const code = String(error.code ?? '');
    super(plain(error.message ?? `The server answered with the status ${status}.`), {
      exitCode: exitCodeOf(status, code),
      next: nextStep(code || String(status), error.incident_id),
    });
    this.status = status;
    this.code = code;
    this.alternatives = error.alternatives ?? [];
  }
}

interface ErrorBody {
  message?: string;
  /** A number on the model endpoints. */
  code?: string | number;
  alternatives?: readonly Offer[];
  incident_id?: unknown;
}

function exitCodeOf(status: number, code: string): number {
  if (code === 'offer_unavailable' || code === 'offer_changed') return EXIT.noCapacity;
  if (status === 401 || code === 'insufficient_scope' || code === 'not_a_tenant') return EXIT.access;
  if (status === 404) return EXIT.notFound;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

const NEXT: Readonly<Record<string, string>> = {
  invalid_api_key: 'Make a key on the page /dashboard of the server, then run berth login URL.',
  '401': 'Make a key on the page /dashboard of the server, then run berth login URL.',
  insufficient_scope: 'Make a key with this scope on the page /dashboard of the server, then run berth login URL.',
  instance_not_found: 'berth ls lists your instances.',
  instance_not_running: 'berth start INSTANCE starts it, and berth show INSTANCE says what it does.',
  ssh_key_not_found: 'berth keys lists your SSH keys.',
  template_not_found: 'berth templates lists the templates.',
  registry_not_found: 'berth registries lists the credentials.',
  offer_unavailable: 'Choose another one of berth offers, or wait in line with --queue.',
  offer_changed: 'Choose again from berth offers.',
  tenant_limit: 'berth usage shows the limits.',
  quota_exceeded: 'berth usage shows the limits.',
  cluster_unavailable: 'Run the command again in some seconds.',
  claim_timeout: 'berth ls says whether it was rented.',
};

function nextStep(code: string, incident: unknown): string | undefined {
  if (typeof incident === 'string') return `Quote ${plain(incident)} when you report it.`;
  return NEXT[code];
}

/** The failure of an answer that is no success. */
export function failureOf(url: string, status: number, answer: { location: string | null; text: string }): CliFailure {
  if (status >= 300 && status < 400) {
    const to = plain(answer.location ?? 'another address');
    return new CliFailure(`${url} sends to ${to}. The key is not sent there.`, {
      next: 'If that is the server, run berth login with its address.',
    });
  }
  return new ApiFailure(status, errorOf(answer.text));
}

function errorOf(text: string): ErrorBody {
  try {
    const { error } = JSON.parse(text) as { error?: ErrorBody };
    return error !== null && typeof error === 'object' ? error : {};
  } catch {
    return {};
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is unknown',
  EAI_AGAIN: 'the name cannot be looked up now',
  ECONNRESET: 'the connection broke',
  ETIMEDOUT: 'it takes too long',
  UND_ERR_CONNECT_TIMEOUT: 'it takes too long',
};

/** The failure of a call that got no answer. */
export function unreachable(url: string, error: unknown): CliFailure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const isTls = /CERT|SELF_SIGNED|SSL|TLS|UNABLE_TO/.test(code);
  const why = REASONS[code] ?? (cause instanceof Error ? cause.message : String(cause));
  const next = isTls
    ? 'If the server has a certificate of your organisation, set NODE_EXTRA_CA_CERTS to the file of its authority.'
    : 'Check the address and the network, then run the command again.';
  return new Unreachable(`${url} does not answer: ${plain(why)}.`, { exitCode: EXIT.unavailable, next });
}
