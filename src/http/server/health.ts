import { Router } from 'express';
import { methodNotAllowed } from '../interface/route.ts';
import type { ApiStores } from './context.ts';

/** /livez: the process answers. /readyz: its caches are filled and it may get traffic. */
export function healthRouter(stores: ApiStores, isStopping: () => boolean): Router {
  const router = Router({ caseSensitive: true });
  router.get('/livez', (_request, response) => {
    response.set('cache-control', 'no-store').json({ status: 'ok' });
  });
  router.get('/readyz', (_request, response) => {
    const missing = Object.entries(stores)
      .filter(([, store]) => !store.hasSynced)
      .map(([name]) => name);
    const ready = missing.length === 0 && !isStopping();
    const body = ready ? { status: 'ok' } : { status: isStopping() ? 'stopping' : 'starting', waiting_for: missing };
    response
      .set('cache-control', 'no-store')
      .status(ready ? 200 : 503)
      .json(body);
  });
  router.all(['/livez', '/readyz'], methodNotAllowed(['get']));
  return router;
}
