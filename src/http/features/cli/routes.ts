import { Router } from 'express';
import { methodNotAllowed } from '../../interface/route.ts';
import { type CliPackage, packCli } from './package.ts';

const CLI_PATH = '/cli/berth.tgz';

/** The renters' command line, for everyone: it has no secret, and who has no key yet needs it. */
export function cliRouter(): Router {
  const router = Router({ caseSensitive: true });
  let packed: CliPackage | undefined;
  router.get(CLI_PATH, (request, response) => {
    packed ??= packCli();
    response.set({ etag: packed.etag, 'cache-control': 'public, max-age=300', 'content-type': 'application/gzip' });
    // fetch() adds no-cache to a conditional request, and Express would then ignore the condition.
    if (request.headers['if-none-match']?.includes(packed.etag)) {
      response.status(304).end();
      return;
    }
    response.end(packed.content);
  });
  router.all(CLI_PATH, methodNotAllowed(['get']));
  return router;
}
