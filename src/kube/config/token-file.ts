import { readFile } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import { KubeConfigError } from '../errors.ts';

const REREAD_MS = 60_000;

/** Gives the headers that authenticate a request; `refresh` reads the credential again. */
export type HeaderSource = (options?: { refresh: boolean }) => Promise<Record<string, string>>;

/**
 * A bearer token from a file that the kubelet rotates: read at most once a minute, and at once after a 401. A failed
 * read keeps the last token, as in client-go's transport/token_source.go.
 */
export function tokenFile(path: string, clock: Clock): HeaderSource {
  let token: string | undefined;
  let readAt = 0;
  return async (options) => {
    const fresh = token !== undefined && clock.monotonic() - readAt < REREAD_MS;
    if (!fresh || options?.refresh === true) {
      token = await readToken(path, token);
      readAt = clock.monotonic();
    }
    return { authorization: `Bearer ${token ?? ''}` };
  };
}

async function readToken(path: string, last: string | undefined): Promise<string> {
  try {
    const text = (await readFile(path, 'utf8')).trim();
    if (text !== '') return text;
  } catch (error) {
    if (last === undefined) throw new KubeConfigError(`The token file ${path} cannot be read.`, { cause: error });
  }
  if (last === undefined) throw new KubeConfigError(`The token file ${path} is empty.`);
  return last;
}
