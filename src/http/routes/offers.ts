import { type RequestHandler, Router } from 'express';
import { requireScope } from '../auth/middleware.ts';
import type { ApiContext } from '../context.ts';
import { wantsEvents } from '../events/stream-registry.ts';
import { lastEventId } from '../events/event-stream.ts';
import { byPrice, toOfferRecord } from '../records/offer-record.ts';
import { sendList } from '../send.ts';
import { methodNotAllowed } from './method-not-allowed.ts';

/** GET /offers as an event stream. */
function offerStream({ streams, offerEvents }: ApiContext): RequestHandler {
  return (request, response, next) => {
    if (!wantsEvents(request)) return next();
    const stream = streams.open(request, response);
    const unfollow = offerEvents.follow(lastEventId(request), (event) => stream.send(event));
    response.once('close', unfollow);
  };
}

/** GET /offers. */
export function offersRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  router.get('/', requireScope('compute:read'), offerStream(context), (_request, response) => {
    const offers = context.offers.offers().toSorted(byPrice);
    sendList(
      response,
      offers.map((offer) => JSON.stringify(toOfferRecord(offer, context.defaultImage))),
    );
  });
  router.all('/', methodNotAllowed('GET, HEAD'));
  return router;
}
