import type { KubeClient } from '../kube/client/client.ts';
import { findObject } from '../kube/client/find-object.ts';
import { ForbiddenError, GoneError, KubeError, NotFoundError } from '../kube/errors.ts';
import type { KubeObject } from '../kube/types.ts';
import { type Objects, type Snapshot, type Source, type SourceName, SOURCES, type Unread } from './sources.ts';

/** Objects of one answer. */
const PAGE = 500;
/** Kinds that are read at the same time. */
const AT_ONCE = 6;

type Reader = Pick<KubeClient, 'get' | 'list'>;

async function readNames<T extends KubeObject>(client: Reader, { type, names = [] }: Source<T>): Promise<T[]> {
  const found: T[] = [];
  for (const name of names) {
    const object = await findObject(client, type, { name });
    if (object !== undefined) found.push(object);
  }
  return found;
}

/** All pages. When the list changed so much that its next page is lost, the whole list in one answer. */
async function readPages<T extends KubeObject>(client: Reader, { type, options, keep }: Source<T>): Promise<T[]> {
  const found: T[] = [];
  let next: string | undefined;
  do {
    try {
      const page = await client.list(type, { ...options, limit: PAGE, ...(next !== undefined && { continue: next }) });
      for (const object of page.items) found.push(keep === undefined ? object : keep(object));
      next = page.continue;
    } catch (error) {
      if (!(error instanceof GoneError)) throw error;
      const { items } = await client.list(type, options);
      return keep === undefined ? items : items.map(keep);
    }
  } while (next !== undefined);
  return found;
}

function unreadBecause(error: KubeError, { type, options, names }: Source): Unread {
  if (!(error instanceof ForbiddenError)) return { message: error.message, right: undefined };
  const resource = type.group === '' ? type.plural : `${type.plural}.${type.group}`;
  const where = options.namespace === undefined ? '--all-namespaces' : `-n ${options.namespace}`;
  const scope = type.namespaced ? ` ${where}` : '';
  return { message: error.message, right: `${names === undefined ? 'list' : 'get'} ${resource}${scope}` };
}

/** Reads every kind, several at a time and page by page. What cannot be read is in `unread`; nothing is written. */
export async function readCluster(client: Reader): Promise<Snapshot> {
  const lists: Partial<Record<SourceName, readonly KubeObject[]>> = {};
  const unread = new Map<SourceName, Unread>();
  const absent = new Set<SourceName>();
  const queue = Object.keys(SOURCES) as SourceName[];
  async function read(name: SourceName): Promise<void> {
    const source = SOURCES[name] as Source;
    lists[name] = [];
    try {
      lists[name] = source.names === undefined ? await readPages(client, source) : await readNames(client, source);
    } catch (error) {
      if (error instanceof NotFoundError) absent.add(name);
      else if (error instanceof KubeError) unread.set(name, unreadBecause(error, source));
      else throw error;
    }
  }
  async function work(): Promise<void> {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) await read(name);
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { objects: lists as Objects, unread, absent };
}
