import { lastEventId, wantsEvents } from '../events/event-stream.ts';
import { byPrice, toOfferRecord } from '../records/offer-record.ts';
import { sendList } from '../send.ts';
import { route } from './route.ts';

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
