import { Api } from '../api/client.ts';
import { openUrl } from '../browser.ts';
import type { Input } from '../options.ts';
import type { LimitsRecord } from '../../wire/records.ts';
import { printJson, type Session } from '../session.ts';
import { pairs } from '../text.ts';
import {
  type Access,
  allowedBy,
  baseUrl,
  checkedKey,
  dashboardOf,
  forgetAccess,
  profileOf,
  requireEncrypted,
  storeAccess,
} from '../settings.ts';

/** `berth login URL`: reads a key, tries it, and stores both. */
export async function login(input: Input, { env, terminal }: Session): Promise<void> {
  const url = baseUrl(input.operands[0] ?? '');
  const allowed = input.flag('plain-http') ? { plainHttp: true } : allowedBy(env);
  requireEncrypted({ url, ...allowed });
  if (input.flag('web')) await openKeyPage(url, terminal);
  const key = checkedKey(await terminal.secret(`API key for ${url} (it is not shown): `));
  const access: Access = { url, key, ...allowed };
  await new Api(access, env).get('/');
  const path = await storeAccess(env, access);
  terminal.say(`Signed in to ${url}. The key is in ${path}, which only you can read.`);
}

/** Opens the page on which people sign in, at the provider of the server where it has one, and make keys. */
async function openKeyPage(url: string, terminal: Session['terminal']): Promise<void> {
  const page = dashboardOf(url, '/api-access');
  const isOpened = terminal.interactive && (await openUrl(page));
  terminal.say(`${isOpened ? 'Opened' : 'Open'} ${page}. Sign in there, make an API key, and paste it here.`);
}

/** `berth whoami`: the server, the tenant and the key of the next commands. */
export async function whoami(input: Input, session: Session): Promise<void> {
  const { terminal, env } = session;
  const api = await session.api();
  const { namespace, caller } = await api.get<LimitsRecord>('/limits');
  const [server, profile] = [dashboardOf(api.url).replace(/\/dashboard$/, ''), await profileOf(env)];
  const isOfEnvironment = Boolean(env['BERTH_API_KEY']);
  if (input.flag('json'))
    return printJson(session, { server, profile: isOfEnvironment ? null : profile, namespace, caller });
  await terminal.out(
    pairs(
      [
        ['server', server],
        ['login', isOfEnvironment ? 'BERTH_API_KEY' : `profile ${profile}`],
        ['project', namespace],
        ['key', caller.name === null ? caller.id : `${caller.name} (${caller.id})`],
        ['scopes', caller.scopes.join(', ')],
      ],
      terminal.columns.out,
    ),
  );
}

/** `berth logout`: forgets the stored key. */
export async function logout(_input: Input, { env, terminal }: Session): Promise<void> {
  await forgetAccess(env);
  terminal.say('Signed out. The key still works elsewhere: revoke it on the page /dashboard of the server.');
}
