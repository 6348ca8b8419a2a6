/** What a code of an error means: the source of the answers and of the table in the documentation. */
export interface ErrorKind {
  status: number;
  /** When it happens and what to do. */
  help: string;
}

/** Every `error.code` of the compute endpoints. Codes are never renamed; new ones may come. */
export const ERRORS = {
  malformed_json: { status: 400, help: 'The body is not JSON. Send one JSON object, in UTF-8.' },
  bad_request: { status: 400, help: 'The request breaks HTTP, or a header has a form that is not allowed.' },
  invalid_api_key: { status: 401, help: 'No key, or one that is unknown, expired or revoked. They look all the same.' },
  insufficient_scope: { status: 403, help: 'The key lacks the scope that the message names. Create another key.' },
  quota_exceeded: { status: 403, help: 'A quota or a policy of the cluster refuses; its words are in the message.' },
  not_signed_in: { status: 401, help: 'Dashboard only: there is no session, or the token is not good. Sign in.' },
  not_allowed: {
    status: 403,
    help: 'Dashboard only: the role of the user in the cluster, or the origin, does not allow it.',
  },
  not_found: { status: 404, help: 'No endpoint has this path.' },
  instance_not_found: { status: 404, help: 'No instance has this id, or its deletion is complete.' },
  port_not_declared: { status: 404, help: 'The instance declares no such TCP port; the message lists those it has.' },
  ssh_key_not_found: { status: 404, help: 'No SSH key has this id.' },
  method_not_allowed: { status: 405, help: 'The path is right, the method is not; Allow names the ones there are.' },
  request_timeout: { status: 408, help: 'The request took too long to arrive.' },
  offer_unavailable: {
    status: 409,
    help: 'Nothing was rented: the offer is gone or fully rented. `alternatives` has the nearest offers.',
  },
  offer_changed: {
    status: 409,
    help: 'Nothing was rented: the offer has less disk than offer_disk_space. `alternatives` has the nearest offers.',
  },
  idempotency_conflict: {
    status: 409,
    help: 'This Idempotency-Key came with another body before. Use a new key for a new request.',
  },
  instance_deleting: { status: 409, help: 'The instance is being deleted and cannot be changed any more.' },
  instance_not_running: {
    status: 409,
    help: 'Ports answer while the instance runs. Start it, or wait until it is up.',
  },
  tenant_unavailable: { status: 409, help: 'The namespace of the key is being deleted.' },
  payload_too_large: { status: 413, help: 'The body is longer than the limit of the endpoint.' },
  unsupported_media_type: { status: 415, help: 'Send Content-Type: application/json, UTF-8, not compressed.' },
  validation_failed: { status: 422, help: '`fields` names each field that is wrong and what was expected.' },
  rate_limit_exceeded: { status: 429, help: 'Too many requests. Wait as long as Retry-After says.' },
  too_many_streams: {
    status: 429,
    help: 'Too many event streams of the key, or connections to the instance, are open. Close one.',
  },
  headers_too_large: { status: 431, help: 'The request headers are longer than 16 KiB.' },
  internal_error: { status: 500, help: 'A fault of ours. Quote incident_id when you report it.' },
  port_unreachable: { status: 502, help: 'Nothing in the instance answers on this port. Start a server there.' },
  cluster_unavailable: {
    status: 503,
    help: 'Kubernetes does not answer or is overloaded. Try again; use an Idempotency-Key when creating.',
  },
  claim_timeout: {
    status: 503,
    help: 'No controller decided in time. Nothing was rented; with an Idempotency-Key, retry to learn the outcome.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;
