import { Router } from 'express';
import { requireScope } from '../auth/middleware.ts';
import type { ApiContext } from '../context.ts';
import { byPrice, toOfferRecord } from '../records/offer-record.ts';
import { sendList } from '../send.ts';
import { methodNotAllowed } from './method-not-allowed.ts';

/** GET /offers. */
export function offersRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  router.get('/', requireScope('compute:read'), (_request, response) => {
    const offers = context.offers.offers().toSorted(byPrice);
    sendList(
      response,
      offers.map((offer) => JSON.stringify(toOfferRecord(offer, context.defaultImage))),
    );
  });
  router.all('/', methodNotAllowed('GET, HEAD'));
  return router;
}
