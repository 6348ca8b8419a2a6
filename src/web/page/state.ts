import { computed, signal } from '@preact/signals';
import { callDashboard, CallError, forgetToken, messageOf, tokenFor } from './calls/call.ts';

interface Session {
  username: string;
}

/** Undefined until the server has said whether there is one. */
export const session = signal<Session | null | undefined>(undefined);
/** The namespace that the page shows. */
export const tenant = signal('');
export const suggestions = signal<readonly string[]>([]);
/** Why nothing of the tenant can be shown or changed. */
export const problem = signal('');
/** Whether the role of the person lets them rent, change and delete. */
export const mayWrite = signal(false);
/** What the last action did, for screen readers and as a short note. */
export const note = signal('');
/** Wall time in ms, once a second: what shows ages and costs reads it. */
export const now = signal(Date.now());
/** The same every ten seconds, for lists: a thousand rows that tick each second are all that the browser does. */
export const roughly = computed(() => Math.floor(now.value / 10_000) * 10_000);
/** The path below /dashboard. */
export const path = signal(location.pathname);
export const view = computed(() => path.value.replace(/^\/dashboard\/?/, '').split('/'));

const TENANT = 'berth.namespace';

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
addEventListener('popstate', () => {
  path.value = location.pathname;
});

/** Goes to another view. Focus goes to its heading, where a reader of the screen begins. */
export function go(to: string): void {
  if (to === location.pathname) return;
  history.pushState(null, '', to);
  path.value = location.pathname;
  problem.value = '';
  note.value = '';
  scrollTo(0, 0);
  document.getElementById('main')?.focus();
}

/** Runs an action of the person and shows its failure. A session that is over leads to the sign-in. */
export async function attempt(action: () => Promise<void>, show?: (text: string) => void): Promise<void> {
  const say = show ?? ((text: string): void => void (problem.value = text));
  say('');
  try {
    await action();
  } catch (error) {
    if (error instanceof CallError && error.code === 'not_signed_in') {
      session.value = null;
      problem.value = error.message;
    } else say(messageOf(error));
  }
}

async function readScopes(): Promise<void> {
  mayWrite.value = false;
  const { scopes } = await tokenFor(tenant.value);
  mayWrite.value = scopes.includes('compute:write');
}

/** Shows another tenant, and remembers its name in this browser. */
export async function choose(namespace: string): Promise<void> {
  forgetToken();
  tenant.value = namespace;
  localStorage.setItem(TENANT, namespace);
  // Where the role gives nothing, the views say so: each knows what it would have shown.
  await attempt(readScopes, () => undefined);
}

async function enter(found: Session): Promise<void> {
  const { data } = await callDashboard<{ data: string[] }>('GET', '/namespaces');
  suggestions.value = data;
  const remembered = localStorage.getItem(TENANT);
  session.value = found;
  const first = remembered !== null && data.includes(remembered) ? remembered : (data[0] ?? remembered ?? 'default');
  await choose(first);
}

export async function signIn(token: string): Promise<void> {
  await enter(await callDashboard<Session>('POST', '/session', { token }));
}

export async function signOut(): Promise<void> {
  await callDashboard('DELETE', '/session');
  forgetToken();
  localStorage.removeItem(TENANT);
  tenant.value = '';
  session.value = null;
}

/** Finds the session that the browser has. */
export async function begin(): Promise<void> {
  try {
    await enter(await callDashboard<Session>('GET', '/session'));
  } catch (error) {
    session.value = null;
    if (!(error instanceof CallError && error.code === 'not_signed_in')) problem.value = messageOf(error);
    else if (!isSecureContext) {
      problem.value = 'Over plain HTTP your browser keeps no session. Open this page by HTTPS, or on localhost.';
    }
  }
}
