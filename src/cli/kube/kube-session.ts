import { Api } from '../api/client.ts';
import { isBroken } from '../api/failures.ts';
import { createSession, type Session } from '../session.ts';
import { type Access, allowedBy, type Environment, requireEncrypted } from '../settings.ts';
import type { Terminal } from '../terminal.ts';
import { findRoute } from './find-url.ts';
import { Kubectl } from './kubectl.ts';
import { makeShortKey } from './short-key.ts';

/** Milliseconds until the replicas have seen a new key. */
const KNOWN_WITHIN_MS = 10_000;

/** Options of kubectl itself, before the command. */
const GLOBAL = new Set(['-n', '--namespace', '--context', '--kubeconfig']);

/** The options for kubectl, and the words of the command. */
export function splitGlobal(words: readonly string[]): { flags: string[]; words: readonly string[] } {
  const flags: string[] = [];
  let at = 0;
  for (; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (GLOBAL.has(word)) flags.push(word, words[(at += 1)] ?? '');
    else if (GLOBAL.has(word.split('=', 1)[0] ?? '')) flags.push(word);
    else break;
  }
  return { flags, words: words.slice(at) };
}

/** A session with the rights of a kubeconfig. `close` takes its key and its forward away again. */
export interface KubeSession {
  session: Session;
  close: () => Promise<void>;
}

export function createKubeSession(env: Environment, terminal: Terminal, flags: readonly string[]): KubeSession {
  const kubectl = new Kubectl(flags);
  const closing: (() => Promise<void>)[] = [];
  const session: Session = createSession(env, terminal, async () => {
    const route = await findRoute(kubectl, session);
    const allowed = allowedBy(env);
    requireEncrypted({ url: route.url, ...allowed });
    closing.push(route.close);
    const key = await makeShortKey(kubectl, session.now());
    closing.push(key.remove);
    const access: Access = { url: route.url, key: key.token, ...allowed };
    await known(access, session);
    return access;
  });
  return {
    session,
    close: async () => {
      for (const one of closing.toReversed()) await one();
    },
  };
}

/** Waits until the server knows a key that was just made. The last refusal is the caller's. */
async function known(access: Access, session: Session): Promise<void> {
  const end = session.now() + KNOWN_WITHIN_MS;
  for (;;) {
    try {
      await new Api(access, session.env).get('/');
      return;
    } catch (error) {
      if (session.now() > end || isBroken(error)) throw error;
      await session.sleep(200);
    }
  }
}
