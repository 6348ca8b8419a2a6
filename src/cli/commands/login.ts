import { Api } from '../api/client.ts';
import type { Input } from '../options.ts';
import type { Session } from '../session.ts';
import { type Access, baseUrl, checkedKey, forgetAccess, storeAccess } from '../settings.ts';

/** Whether the text of a request on this address can be read on its way. */
function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** `berth login URL`: reads a key, tries it, and stores both. */
export async function login({ operands }: Input, { env, terminal }: Session): Promise<void> {
  const url = baseUrl(operands[0] ?? '');
  if (isInTheClear(url)) terminal.say(`Warning: ${url} is not encrypted: others on the network can read the key.`);
  const key = checkedKey(await terminal.secret(`API key for ${url} (it is not shown): `));
  const access: Access = { url, key };
  await new Api(access).get('/');
  const path = await storeAccess(env, access);
  terminal.say(`Signed in to ${url}. The key is in ${path}, which only you can read.`);
}

/** `berth logout`: forgets the stored key. */
export async function logout(_input: Input, { env, terminal }: Session): Promise<void> {
  await forgetAccess(env);
  terminal.say('Signed out. The key still works elsewhere: revoke it on the page /dashboard of the server.');
}
