/** What an error code means. The answers and the table in /docs/api.md are made from it. */
export interface ErrorKind {
  status: number;
  /** What happened, and what to do. */
  help: string;
}

/** Every `error.code` of the compute endpoints. Codes are never renamed; new ones may be added. */
export const ERRORS = {
  malformed_json: { status: 400, help: 'The body is not valid JSON. Send one JSON object in UTF-8.' },
  bad_request: { status: 400, help: 'The request is not valid HTTP, or a header has an invalid value. Correct it.' },
  invalid_api_key: { status: 401, help: 'The key is missing, unknown, expired or revoked. Create another key.' },
  insufficient_scope: { status: 403, help: 'The key lacks the scope that the message names. Create another key.' },
  quota_exceeded: { status: 403, help: 'A quota or a policy of the cluster refuses; the message quotes it.' },
  tenant_limit: {
    status: 403,
    help: 'A ceiling that the operator set for the tenant refuses; the message names it. GET /limits shows all of them.',
  },
  budget_exceeded: {
    status: 403,
    help: 'A budget of the tenant or of the key has no room; the message says what is spent, when it renews, and who can raise it. GET /limits shows what is left.',
  },
  not_a_tenant: {
    status: 403,
    help: 'The namespace of the key is no tenant. Ask an operator of the cluster to label it.',
  },
  template_read_only: {
    status: 403,
    help: 'Another tenant shares this template, and only that one can change it. Make a copy with POST /templates.',
  },
  not_signed_in: { status: 401, help: 'Dashboard only: no session, or the cluster rejects the token. Sign in.' },
  not_allowed: { status: 403, help: 'Dashboard only: the role of the user or the origin of the request forbids it.' },
  not_found: { status: 404, help: 'No endpoint has this path. See /docs for the endpoints.' },
  instance_not_found: { status: 404, help: 'No instance has this id, or its deletion is complete.' },
  port_not_declared: { status: 404, help: 'The instance declares no such TCP port. The message lists its ports.' },
  template_not_found: {
    status: 404,
    help: 'No template that the tenant may use has this id or hash. Nothing was rented.',
  },
  registry_not_found: { status: 404, help: 'No credentials of a registry have this name.' },
  webhook_not_found: { status: 404, help: 'No webhook has this id.' },
  webhooks_disabled: { status: 404, help: 'This installation has no webhooks. The operator can turn them on.' },
  log_not_found: { status: 404, help: 'There is no such log: no earlier start, or the node removed it.' },
  ssh_key_not_found: { status: 404, help: 'No SSH key has this id.' },
  method_not_allowed: { status: 405, help: 'The endpoint does not have this method. Allow lists its methods.' },
  request_timeout: { status: 408, help: 'The request took too long to arrive. Send it again.' },
  offer_unavailable: {
    status: 409,
    help: 'Nothing was rented: the offer is gone or has no free place. `alternatives` has the nearest free offers.',
  },
  offer_changed: {
    status: 409,
    help: 'Nothing was rented: the offer has less disk than offer_disk_space. `alternatives` has the nearest free offers.',
  },
  idempotency_conflict: {
    status: 409,
    help: 'An earlier request had this Idempotency-Key and another body. Use a new key for a new request.',
  },
  pool_changed: {
    status: 409,
    help: 'Dashboard only: the pool has changed since it was read. Look at it, and change it again.',
  },
  registry_exists: { status: 409, help: 'Credentials of this name exist. Delete them, or choose another name.' },
  instance_deleting: { status: 409, help: 'The instance is being deleted. It cannot be changed any more.' },
  instance_simulated: {
    status: 409,
    help: 'The instance is on a simulated node: no container runs there, so no port answers, and there is no log and no measurement.',
  },
  not_measured: {
    status: 409,
    help: 'Nothing measures the instance; the message says why. Rent with install_monitoring.',
  },
  instance_not_running: { status: 409, help: 'The instance does not run. Start it, or wait until it runs.' },
  tenant_unavailable: { status: 409, help: 'The namespace of the key is being deleted. Use another key.' },
  payload_too_large: { status: 413, help: 'The body is longer than the endpoint allows. Send a shorter one.' },
  unsupported_media_type: { status: 415, help: 'Send Content-Type: application/json, in UTF-8 and not compressed.' },
  validation_failed: { status: 422, help: '`fields` lists each invalid field and what was expected instead.' },
  upgrade_required: { status: 426, help: 'This is a terminal. Open it as a WebSocket.' },
  rate_limit_exceeded: {
    status: 429,
    help: 'The key, its tenant or the address made too many requests. Wait as long as Retry-After says.',
  },
  too_many_streams: {
    status: 429,
    help: 'The key or its tenant has too many event streams or connections to instances open. Close one.',
  },
  too_many_at_once: {
    status: 429,
    help: 'The tenant or the address has too much under way. Wait for one of its requests to end.',
  },
  headers_too_large: {
    status: 431,
    help: 'The request headers are longer than 16 KiB, or more than 100. Send fewer or shorter ones.',
  },
  internal_error: { status: 500, help: 'Berth failed. Quote incident_id when you report it.' },
  port_unreachable: { status: 502, help: 'Nothing in the instance answers on this port. Start a server there.' },
  cluster_unavailable: {
    status: 503,
    help: 'Kubernetes does not answer or is overloaded. Try again, with an Idempotency-Key when you create something.',
  },
  log_unavailable: { status: 503, help: 'The node of the instance does not give its log now. Try again.' },
  metrics_unavailable: { status: 503, help: 'The exporter of the instance does not answer now. Try again.' },
  overloaded: { status: 503, help: 'This replica has too much under way. Try again as Retry-After says.' },
  dashboard_unavailable: { status: 503, help: 'Dashboard only: no replica of the dashboard answers. Try again.' },
  terminal_unavailable: { status: 503, help: 'No replica of the SSH gateway answers. Try again, or use SSH.' },
  webhooks_unavailable: { status: 503, help: 'The key of the signing secrets is not there yet. Try again.' },
  claim_timeout: {
    status: 503,
    help: 'The controller did not decide in time. Nothing was rented, or, with an Idempotency-Key, a retry tells the outcome.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;
