import type { Finding } from '../../kube/conditions.ts';
import { ForbiddenError, NotFoundError } from '../../kube/errors.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { outsideAgent } from '../../lib/outside-http.ts';
import {
  ANTHROPIC_VERSION,
  credentialIn,
  type EngineCredential,
  type EngineSecrets,
} from '../../resources/model-servers/engine-credential.ts';
import {
  MODEL_SERVERS,
  type ModelServer,
  type Outside,
  outsideOf,
} from '../../resources/model-servers/model-server.ts';
import { type LookedAtKind, readyStatus } from './status-controller.ts';

export interface OutsideServers {
  /** Of Berth's own namespace. */
  store: ReadStore<ModelServer>;
  secrets: EngineSecrets;
}

type Found = Omit<Finding, 'type'>;

/** How often a server is looked at, and its Secret read. */
const EVERY_MS = 60_000;
const ANSWER_MS = 10_000;
const CONNECT_MS = 5000;
const CERTIFICATE = /^(?:ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)_)/;

/** Shows whether servers outside answer. Calls do not rely on it: the gateway finds out by them. */
export function modelServerStatus({ store, secrets }: OutsideServers, clock: Clock): LookedAtKind<ModelServer> {
  return {
    name: 'outside-server',
    type: MODEL_SERVERS,
    store,
    statusOf: async (server, now, signal) => readyStatus(server, await look(server, secrets, signal), now),
    changesAt: () => clock.now() + EVERY_MS,
  };
}

async function look(server: ModelServer, secrets: EngineSecrets, signal: AbortSignal): Promise<Found> {
  const where = outsideOf(server.spec);
  if (typeof where === 'string') return notReady('InvalidURL', `${where}. Change it.`);
  const credential = await readCredential(server, secrets, signal);
  if (credential !== undefined && 'reason' in credential) return credential;
  return ask(server, { where, credential }, signal);
}

function notReady(reason: string, message: string): Found {
  return { status: 'False', reason, message };
}

async function readCredential(
  { metadata, spec }: ModelServer,
  secrets: EngineSecrets,
  signal: AbortSignal,
): Promise<EngineCredential | Found | undefined> {
  const name = spec.credentialSecret;
  if (name === undefined) return undefined;
  if (!secrets.names.includes(name))
    return notReady('SecretNotListed', `Berth reads no Secret ${name}. List it in models.engineSecrets of the chart.`);
  try {
    const found = credentialIn(await secrets.read(name, signal), {
      namespace: metadata.namespace ?? '',
      name: metadata.name,
    });
    return typeof found === 'string' ? notReady('SecretInvalid', `${found}. Change the Secret.`) : found;
  } catch (error) {
    if (error instanceof NotFoundError) return notReady('SecretNotFound', `There is no Secret ${name}. Create it.`);
    if (error instanceof ForbiddenError)
      return notReady('SecretForbidden', `Berth may not read the Secret ${name}. Install the roles of the chart.`);
    throw error;
  }
}

/** Asks for the list of models, which costs nothing. Whoever answers it in any way is there. */
async function ask(
  { spec }: ModelServer,
  { where, credential }: { where: Outside; credential: EngineCredential | undefined },
  signal: AbortSignal,
): Promise<Found> {
  let agent;
  try {
    agent = outsideAgent({ ca: spec.caBundle, keepAliveMs: 1, connectMs: CONNECT_MS });
  } catch {
    return notReady('InvalidCABundle', 'spec.caBundle does not begin with a certificate in PEM. Change it.');
  }
  try {
    const response = await agent.request({
      origin: where.origin,
      path: `${where.path}/models`,
      method: 'GET',
      headers: { accept: 'application/json', ...headersOf(spec, credential) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    await response.body.dump({ limit: 65_536 });
    return judge(response.statusCode);
  } catch (error) {
    signal.throwIfAborted();
    return unreachable(error);
  } finally {
    await agent.destroy();
  }
}

function headersOf(
  { dialects }: ModelServer['spec'],
  credential: EngineCredential | undefined,
): Record<string, string> {
  const isMessages = dialects.every((dialect) => dialect === 'messages') && dialects.length > 0;
  return Object.fromEntries([
    ...(isMessages ? [ANTHROPIC_VERSION] : []),
    ...(credential === undefined ? [] : [credential.headerOutside(isMessages)]),
  ]);
}

function judge(status: number): Found {
  if (status === 401 || status === 403)
    return notReady('CredentialRefused', `The server answered with ${status}. Write another key into the Secret.`);
  if (status === 402) return notReady('Unpaid', 'The server wants its account to be paid.');
  if (status >= 300 && status < 400)
    return notReady(
      'Redirects',
      'The server answers with a redirect, which Berth does not follow. Write where it leads into spec.baseURL.',
    );
  if (status >= 500) return notReady('Failing', `The server answered with ${status}.`);
  return { status: 'True', reason: 'Answering', message: 'The server answers.' };
}

function unreachable(error: unknown): Found {
  const { code = '', name } = error as NodeJS.ErrnoException;
  if (CERTIFICATE.test(code))
    return notReady(
      'CertificateRefused',
      `The certificate of the server is not believed (${code}). Write its authority into spec.caBundle.`,
    );
  if (code === 'ERR_INNER_ADDRESS')
    return notReady(
      'AddressRefused',
      'The name leads to this machine, its link or a metadata service. Change spec.baseURL.',
    );
  if (name === 'TimeoutError') return notReady('NoAnswer', `The server did not answer in ${ANSWER_MS / 1000} s.`);
  return notReady(
    'Unreachable',
    `The server cannot be reached${code === '' ? '' : ` (${code})`}. Look at its name, and whether networkPolicy of the chart lets Berth out to it (models.outside).`,
  );
}
