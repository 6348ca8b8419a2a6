import { computed, signal } from '@preact/signals';
import { callDashboard, CallError, forgetToken, hearTokens, messageOf, tokenFor } from './calls/call.ts';
import type { KeyDays } from '../key-life.ts';

interface Session {
  username: string;
  /** Whether the installation has webhooks. */
  webhooks: boolean;
  /** How long new API keys live. */
  key_days: KeyDays;
}

/** Undefined until the server has said whether there is one. */
export const session = signal<Session | null | undefined>(undefined);
/** The namespace that the page shows. */
export const tenant = signal('');
export const suggestions = signal<readonly string[]>([]);
/** Why nothing of the tenant can be shown or changed. */
export const problem = signal('');
/** What the roles of the person let them do in the tenant. */
const scopes = signal<readonly string[]>([]);
/** Whether they may rent, change and delete. */
export const mayWrite = computed(() => scopes.value.includes('compute:write'));
/** Whether they may see all nodes and tenants of the cluster. */
export const maySeeFleet = computed(() => scopes.value.includes('fleet:read'));
/** Grows when something that costs began or ended, as far as the page has seen. */
export const spending = signal(0);
/** Milliseconds. What shows money asks again at most this often while many instances come and go. */
const SPENT_MS = 3000;
let isSpent = false;

/** Tells what shows money that something which costs began or ended. */
export function spent(): void {
  if (isSpent) return;
  isSpent = true;
  setTimeout(() => {
    isSpent = false;
    spending.value += 1;
  }, SPENT_MS);
}

const DAY_MS = 86_400_000;

/** What the last action did, for screen readers and as a short note. */
export const note = signal('');
/** Wall time in ms, once a second: what shows ages and costs reads it. */
export const now = signal(Date.now());
/** The same every ten seconds, for lists: a thousand rows that tick each second are all that the browser does. */
export const roughly = computed(() => Math.floor(now.value / 10_000) * 10_000);
/** When the day began, in UTC. */
export const today = computed(() => Math.floor(now.value / DAY_MS) * DAY_MS);
/** The path below /dashboard. */
export const path = signal(location.pathname);
export const view = computed(() => path.value.replace(/^\/dashboard\/?/, '').split('/'));

const TENANT = 'berth.namespace';

/** Why a sign-in at the identity provider failed. */
const FAILURES: Readonly<Record<string, string>> = {
  expired: 'The sign-in took too long, or began in another browser. Try again.',
  refused: 'The identity provider did not sign you in. Try again, or ask your operator.',
  unavailable: 'The identity provider does not answer. Try again in some seconds.',
  claims:
    'The identity provider says too little about you, or a name that is reserved. Ask your operator: the log of the dashboard has the reason.',
  'too-large':
    'The claims of the identity provider about you are too long for a session. Ask your operator to request fewer claims.',
};

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
addEventListener('popstate', () => {
  path.value = location.pathname;
});
// A link that is opened where the page is open already changes only the fragment.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#code=')) void begin();
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

hearTokens(({ namespace, scopes: found }) => {
  if (namespace === tenant.value) scopes.value = found;
});

async function readScopes(): Promise<void> {
  scopes.value = [];
  await tokenFor(tenant.value);
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
  await choose(remembered ?? data[0] ?? 'default');
  // Another person may have been here before.
  const [first] = data;
  if (scopes.value.length === 0 && first !== undefined && !data.includes(tenant.value)) await choose(first);
}

/** The identity provider that still knows who signed out here; empty for none. */
export const stillSignedInAt = signal('');

/** The name of the identity provider; undefined where there is none. */
export async function providerName(): Promise<string | undefined> {
  const { oidc } = await callDashboard<{ oidc: { name: string } | null }>('GET', '/session/ways');
  return oidc?.name;
}

export async function signIn(token: string): Promise<void> {
  await enter(await callDashboard<Session>('POST', '/session', { token }));
}

export async function signOut(): Promise<void> {
  const { still_signed_in_at: still } = await callDashboard<{ still_signed_in_at: string | null }>(
    'DELETE',
    '/session',
  );
  stillSignedInAt.value = still ?? '';
  forgetToken();
  localStorage.removeItem(TENANT);
  tenant.value = '';
  session.value = null;
}

/** The code of a link that signs in, and takes it out of the address: it stays in no history. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code !== null) history.replaceState(null, '', location.pathname);
  return code;
}

/** Signs in by a link, or finds the session that the browser has. */
export async function begin(): Promise<void> {
  const code = takeCode();
  let refusal: string | undefined;
  if (code !== null) {
    try {
      return await enter(await callDashboard<Session>('POST', '/session/by-code', { code }));
    } catch (error) {
      refusal = messageOf(error);
    }
  }
  try {
    await enter(await callDashboard<Session>('GET', '/session'));
  } catch (error) {
    session.value = null;
    const failed = new URLSearchParams(location.hash.slice(1)).get('sign-in');
    if (!(error instanceof CallError && error.code === 'not_signed_in')) problem.value = messageOf(error);
    else if (!isSecureContext) {
      problem.value = 'Over plain HTTP your browser keeps no session. Open this page by HTTPS, or on localhost.';
    } else if (refusal !== undefined) {
      problem.value = refusal;
    } else if (failed !== null) {
      problem.value = FAILURES[failed] ?? 'You were not signed in. Try again.';
      history.replaceState(null, '', location.pathname);
    }
  }
}
