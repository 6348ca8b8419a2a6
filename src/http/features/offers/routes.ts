import { lastEventId, wantsEvents } from '../../interface/events/event-stream.ts';
import { byPrice, toOfferRecord } from './record.ts';
import { searchOffers } from './search.ts';
import { EXAMPLES } from '../../interface/examples.ts';
import { sendList } from '../../interface/send.ts';
import { route, routeWithBody } from '../../interface/route.ts';

export const listOffersRoute = route({
  method: 'get',
  path: '/offers',
  id: 'listOffers',
  tag: 'Offers',
  scope: 'compute:read',
  summary: 'List the offers, cheapest first',
  description: 'With Accept: text/event-stream: snapshot (the list), offer (new or changed), deleted.',
  success: { status: 200, schema: 'OfferList', description: 'All offers, also those without a free place.' },
  events: 'snapshot, offer, deleted, resync',
  handle({ streams, offerEvents, offers, defaultImage }, { request, response }) {
    if (wantsEvents(request)) {
      // It closed while its limits were looked up: nothing would give back what it holds.
      if (response.destroyed) return;
      const stream = streams.open(request, response);
      const unfollow = offerEvents.follow(lastEventId(request), (event) => stream.send(event));
      response.once('close', unfollow);
      return;
    }
    const sorted = offers.offers().toSorted(byPrice);
    sendList(
      response,
      sorted.map((offer) => JSON.stringify(toOfferRecord(offer, defaultImage))),
    );
  },
});

export const searchOffersRoute = routeWithBody({
  method: 'post',
  path: '/offers/search',
  id: 'searchOffers',
  tag: 'Offers',
  scope: 'compute:read',
  summary: 'Find offers for an image, cheapest first',
  description:
    'Says for each offer whether the image is there already, and how long a start would take. Changes nothing.',
  request: { schema: 'OfferSearch', required: false, examples: EXAMPLES.searchOffers },
  success: {
    status: 200,
    schema: 'FoundOfferList',
    description: 'The offers that fit, also those without a free place.',
  },
  handle({ offers, startTimes, defaultImage }, { response, body }) {
    const found = searchOffers(offers.offers(), body, { startTimes, defaultImage });
    sendList(
      response,
      found.map((offer) => JSON.stringify(offer)),
    );
  },
});
