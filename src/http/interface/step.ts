import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * What is done with every request of a kind before it is served. A step uses nothing that Express adds to a request or
 * an answer, so the same function runs in Express and in `runSteps`. It throws, or rejects with, what the error handler answers. Below a
 * mount `request.url` has no mount path.
 */
export type Step = (request: IncomingMessage, response: ServerResponse, next: () => void) => void | Promise<void>;

/** Runs the steps in order, each when the one before calls `next`, and then `last`. `fail` gets what one of them throws. */
export function runSteps(
  steps: readonly Step[],
  last: () => void | Promise<void>,
  { request, response, fail }: { request: IncomingMessage; response: ServerResponse; fail: (error: unknown) => void },
): void {
  let index = 0;
  const next = (): void => {
    const step = steps[index];
    index += 1;
    try {
      const running = step === undefined ? last() : step(request, response, next);
      running?.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
  next();
}

/** The query of a URL with its question mark; empty when there is none. */
export function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at === -1 ? '' : url.slice(at);
}

/** The path of a request without its query. A URL of absolute form (RFC 9112 section 3.2.2) loses its host. */
export function pathOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  const [path = ''] = url.split(/[?#]/, 1);
  return path.startsWith('/') ? path : path.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '') || '/';
}
