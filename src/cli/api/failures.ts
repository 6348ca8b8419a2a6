import type { OfferRecord } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import { plain } from '../text.ts';

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
  readonly alternatives: readonly OfferRecord[];
  /** What is not valid, and where in what was sent. */
  readonly fields: readonly { path: string; expected: string }[];

  constructor(url: string, status: number, error: ErrorBody) {
    const code = String(error.code ?? '');
    const said = typeof error.message === 'string' ? error.message : `The server answered with the status ${status}.`;
    super(plain(said), {
      exitCode: exitCodeOf(status, code),
      next: nextStep(url, status, error),
    });
    this.status = status;
    this.code = code;
    this.alternatives = Array.isArray(error.alternatives) ? error.alternatives : [];
    this.fields = Array.isArray(error.fields)
      ? error.fields.map(({ path, expected }) => ({ path: String(path), expected: String(expected) }))
      : [];
  }
}

interface ErrorBody {
  message?: unknown;
  /** A number on the model endpoints. */
  code?: string | number;
  alternatives?: OfferRecord[];
  fields?: ApiFailure['fields'];
  incident_id?: unknown;
}

function exitCodeOf(status: number, code: string): number {
  if (code === 'offer_unavailable' || code === 'offer_changed') return EXIT.noCapacity;
  if (status === 401 || code === 'insufficient_scope' || code === 'not_a_tenant') return EXIT.access;
  if (status === 404) return EXIT.notFound;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

const ANOTHER_KEY = 'Make a key on the page /dashboard of the server, then run berth login URL.';
const RUN_AGAIN = 'Run the command again in some seconds.';
const LIMITS = 'berth usage shows the limits.';

/** The next step by the code of an error. */
const NEXT = new Map<string, string>(
  Object.entries({
    invalid_api_key: ANOTHER_KEY,
    insufficient_scope: 'Make a key with this scope on the page /dashboard of the server, then run berth login URL.',
    tenant_unavailable: ANOTHER_KEY,
    template_read_only:
      'berth templates show ID prints it, and berth templates create --file makes a copy of your own.',
    instance_not_found: 'berth ls lists your instances.',
    instance_not_running:
      'berth show INSTANCE says why, and berth start INSTANCE starts one that is stopped or failed.',
    instance_deleting: 'berth events -f INSTANCE ends when it is gone.',
    instance_simulated: 'berth offers says in its notes which offers are simulated.',
    log_not_found: 'berth logs INSTANCE without --previous and --start prints the last log.',
    ssh_key_not_found: 'berth ssh-keys lists your SSH keys.',
    template_not_found: 'berth templates lists the templates.',
    registry_not_found: 'berth registries lists the credentials.',
    registry_exists: 'berth registries rm NAME deletes those of this name.',
    webhook_not_found: 'berth webhooks lists your webhooks.',
    webhooks_disabled: 'Ask the operator of the server to turn them on.',
    model_not_found: 'berth models lists the models.',
    offer_unavailable: 'Choose another one of berth offers, or wait in line with --queue.',
    offer_changed: 'Choose again from berth offers.',
    tenant_limit: LIMITS,
    budget_exceeded: LIMITS,
    quota_exceeded: LIMITS,
    validation_failed: 'berth COMMAND --help says what each option takes.',
    too_many_streams: 'End a berth logs -f, or another program that follows.',
    claim_timeout: 'berth ls says whether it was rented.',
  }),
);

function nextStep(url: string, status: number, { code, incident_id: incident }: ErrorBody): string {
  if (typeof incident === 'string') return `Quote ${plain(incident)} when you report it.`;
  const known = NEXT.get(String(code));
  if (known !== undefined) return known;
  if (status === 401) return ANOTHER_KEY;
  if (status === 404 || status === 405) {
    const own = url.replace(/\/api\/v1$/, '');
    return `The server may have another version than this program. Install its own: npm install -g ${own}/cli/berth.tgz`;
  }
  if (status === 429) return 'Wait a minute, then run the command again.';
  if (status >= 500 || status === 408) return RUN_AGAIN;
  return 'berth COMMAND --help has the options of a command. If this is no fault of yours, tell the operator of the server.';
}

/** The failure of an answer that is no success. */
export function failureOf(url: string, status: number, answer: { location: string | null; text: string }): CliFailure {
  if (status >= 300 && status < 400) {
    const to = plain(answer.location ?? 'another address');
    return new CliFailure(`${url} sends to ${to}. The key is not sent there.`, {
      next: 'If that is the server, run berth login with its address.',
    });
  }
  return new ApiFailure(url, status, errorOf(answer.text));
}

function errorOf(text: string): ErrorBody {
  try {
    const { error } = JSON.parse(text) as { error?: ErrorBody };
    return error !== null && typeof error === 'object' ? error : {};
  } catch {
    return {};
  }
}

/** The server has said nothing for so long that the connection must be gone. */
export class ConnectionLost extends Error {
  readonly code = 'ETIMEDOUT';
}

const BROKEN = new Set(['ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

/** Whether a stream broke that had begun. */
export function isBroken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && BROKEN.has(String(error.code));
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
  const isProxy = cause instanceof Error && cause.name === 'ProxyRefusal';
  const why = REASONS[code] ?? (cause instanceof Error ? cause.message : String(cause));
  const next = isTls
    ? 'If the server has a certificate of your organisation, set NODE_EXTRA_CA_CERTS to the file of its authority.'
    : isProxy
      ? 'HTTPS_PROXY names the proxy, with its login: http://USER:PASSWORD@HOST:PORT. NO_PROXY lists hosts that need none.'
      : 'Check the address and the network, then run the command again.';
  return new Unreachable(`${url} does not answer: ${plain(why)}.`, { exitCode: EXIT.unavailable, next });
}
