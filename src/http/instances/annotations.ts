/** On what an Idempotency-Key made: the hash of the body that came with it. */
export const REQUEST_HASH = 'berth.dev/request-hash';
