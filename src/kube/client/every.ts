import { GoneError } from '../errors.ts';
import type { KubeObject, ResourceType } from '../types.ts';
import type { CallOptions, KubeClient, ListOptions } from './client.ts';

/** Objects of one page, by default. */
const PAGE = 500;

interface Options extends Pick<ListOptions, 'namespace' | 'labelSelector' | 'metadataOnly'>, CallOptions {
  /** Objects of one page, where others wait for who reads it: a page is parsed in one go. */
  page?: number;
}

/**
 * Every object of a kind, page by page, each once. When the API server has forgotten the state that the list began with,
 * after some minutes, it goes on with the state of now: objects that come or go meanwhile may be there or not. For who
 * does not need all of them as they were at one moment.
 */
export async function* everyObject<T extends KubeObject>(
  client: Pick<KubeClient, 'list'>,
  type: ResourceType<T>,
  { page: limit = PAGE, ...options }: Options = {},
): AsyncGenerator<T> {
  let next: string | undefined;
  do {
    try {
      const page = await client.list(type, { ...options, limit, ...(next && { continue: next }) });
      next = page.continue;
      yield* page.items;
    } catch (error) {
      if (!(error instanceof GoneError) || !error.continue || error.continue === next) throw error;
      next = error.continue;
    }
  } while (next);
}
