import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { LocalFailure } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';
import { applyAll, readManifests } from './apply.ts';

const TOKEN_PATH = '/api/v1/namespaces/default/serviceaccounts/berth-administrator/token';
const TOKEN_REQUEST = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec: { audiences: ['berth'], expirationSeconds: 3600 },
};

/** Milliseconds. */
const ANSWER_TIMEOUT = 10_000;

/** Makes the account that may do all in a cluster that was made for this. */
export async function makeAdministrator(client: KubeClient, signal: AbortSignal): Promise<void> {
  await applyAll(client, await readManifests(join(ROOT, 'deploy/local/administrator')), signal);
}

/**
 * A link that signs the administrator in once. Its code is behind the #, so that no request and no log has it.
 * @param url base URL of the HTTP interface
 */
export async function signInLink(client: KubeClient, url: string): Promise<string> {
  const { status } = await client.raw<{ status: { token: string } }>('POST', TOKEN_PATH, TOKEN_REQUEST);
  const answer = await fetch(new URL('/dashboard/api/session/codes', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-berth-dashboard': '1' },
    body: JSON.stringify({ token: status.token }),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT),
  });
  if (answer.status !== 201)
    throw new LocalFailure(
      `The server makes no link that signs in (status ${answer.status}).`,
      'Read .berth/logs/server.log.',
    );
  const { code } = (await answer.json()) as { code: string };
  // Browsers keep the cookie of a session over plain HTTP for localhost.
  return `http://localhost:${new URL(url).port}/dashboard#code=${code}`;
}
