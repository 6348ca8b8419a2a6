/**
 * On an instance whose client has no answer yet: until when the answer is due (RFC 3339). Removed just before the 201;
 * an instance that still has it some time later is removed, because nobody knows of it.
 */
export const CONFIRM_BY = 'berth.dev/confirm-by';

/** On what an Idempotency-Key made: the hash of the body that came with it. */
export const REQUEST_HASH = 'berth.dev/request-hash';
