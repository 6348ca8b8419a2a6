import type { Inventory } from '../../../inventory/inventory.ts';
import { lastEventId, wantsEvents } from '../../interface/events/event-stream.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import { route, routeWithBody } from '../../interface/route.ts';
import { sendList } from '../../interface/send.ts';
import type { OfferEvents } from './offer-events.ts';
import { foundOfferListSchema, offerListSchema, offerSearchSchema } from './schema.ts';
import { searchOffers } from './search.ts';
import type { StartTimes } from './start-times.ts';

export interface OffersContext {
  streams: StreamRegistry;
  offerEvents: OfferEvents;
  offers: Inventory;
  startTimes: StartTimes;
  defaultImage: string;
}

export const listOffersRoute = route({
  method: 'get',
  path: '/offers',
  id: 'listOffers',
  tag: 'Offers',
  scope: 'compute:read',
  summary: 'List the offers, cheapest first',
  description: 'With Accept: text/event-stream: snapshot (the list), offer (new or changed), deleted.',
  success: { status: 200, schema: offerListSchema, description: 'All offers, also those without a free place.' },
  events: 'snapshot, offer, deleted, resync',
  handle({ streams, offerEvents }: OffersContext, { request, response }) {
    if (wantsEvents(request)) {
      // It closed while its limits were looked up: nothing would give back what it holds.
      if (response.destroyed) return;
      const stream = streams.open(request, response);
      const unfollow = offerEvents.follow(lastEventId(request), (event) => stream.send(event));
      response.once('close', unfollow);
      return;
    }
    sendList(response, [...offerEvents.current().values()]);
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
  request: {
    schema: offerSearchSchema,
    required: false,
    examples: {
      all: { summary: 'All offers, for the default image', value: {} },
      image: {
        summary: 'Free places with at least 40 GB per GPU, for an image',
        value: {
          image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime',
          gpu_count: 1,
          min_gpu_memory_mb: 40000,
          min_available: 1,
          max_price_per_hour: '2.50',
        },
      },
    },
  },
  success: {
    status: 200,
    schema: foundOfferListSchema,
    description: 'The offers that fit, also those without a free place.',
  },
  handle({ offers, startTimes, defaultImage }: OffersContext, { response, body, caller: { namespace: tenant } }) {
    const found = searchOffers(offers.offers(), body, { startTimes, defaultImage, tenant });
    sendList(
      response,
      found.map((offer) => JSON.stringify(offer)),
    );
  },
});
