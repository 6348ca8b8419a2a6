import { randomBytes } from 'node:crypto';
import type { Principal } from '../../access/principal.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import type { Span } from '../../runtime/tracing/tracer.ts';
import type {
  Dialect,
  HistoryItem,
  Inspection,
  RemoteMedia,
  RequestFeatures,
  ResponseState,
} from '../dialects/index.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';
import type { Part } from './multipart.ts';
import type { BodyHold } from '../limits/body-shares.ts';

/** What the gateway reads of a call that it passes on as it is. */
export interface PlainCall {
  route: PlainRoute;
  /** The fields of a form. */
  form?: readonly Part[];
}

/** One call of a client, read and checked. */
export interface Call {
  /** Unique, `[a-z0-9]+`: in response ids, error bodies and logs. */
  id: string;
  dialect: Dialect;
  /** A call outside of the dialects. Its errors have the shape of chat. */
  plain?: PlainCall;
  /** The answer is to be that of `/responses/compact`. */
  compacts?: boolean;
  /** What a client of Anthropic says in headers, for servers of its dialect: which version and which trials it speaks. */
  anthropicHeaders: { version?: string | undefined; trials?: string | undefined };
  principal: Principal;
  /** What stands for its tenant, as it was when the call came. */
  tenant: string;
  /** The body as the client sent it. Empty once the call cannot be sent again. */
  bytes: Buffer;
  /** An estimate, for the limits and for a call that ends before the engine reports usage. */
  promptTokens: number;
  /** What the body holds of the share of its tenant. */
  hold: BodyHold;
  /** What is kept of the answer holds of that share. */
  kept: BodyHold;
  /** The body is still there, so another endpoint may be tried. */
  mayRetry: boolean;
  body: Record<string, unknown>;
  /** What its tokens cost, fixed when it is let in. Undefined: nothing. */
  prices: TokenPrices | undefined;
  inspection: Inspection;
  features: RequestFeatures;
  /** What the server would have to fetch. */
  media: readonly RemoteMedia[];
  /** Keeps what servers cache of the tenant's prompts from other tenants. */
  cacheSalt: string;
  /** The session that the client names in a header. */
  sessionHeader: string | undefined;
  /** The trace that the client is in, as headers, each name with its value. */
  trace: readonly string[];
  /** That of the request; undefined where calls are not traced. */
  span: Span | undefined;
  /** Stored items that the call continues. */
  history: readonly HistoryItem[];
  references: ReadonlyMap<string, readonly HistoryItem[]>;
  /** Milliseconds, monotonic. */
  startedAt: number;
  /** Seconds since the epoch. */
  createdAt: number;
}

export type CallOutcome =
  | 'ok'
  | 'client_error'
  | 'rate_limited'
  | 'unavailable'
  | 'upstream_error'
  | 'interrupted'
  | 'client_closed'
  | 'cut';

const PROCESS = randomBytes(10).toString('hex');
let count = 0;

/** Unique over all processes, `[0-9a-f]+`. Random bytes for each call would cost more than the look-up of its key. */
export function nextCallId(): string {
  count += 1;
  return `${PROCESS}${count.toString(16).padStart(12, '0')}`;
}

/** Whether the answer is stored for later calls to continue: in the responses dialect, unless the client opts out. */
export function isStored({ dialect, inspection }: Call): boolean {
  return dialect === 'responses' && inspection.store;
}

/** What is true of the response of a call; undefined where that is what its server says, which stores nothing. */
export function stateOf(call: Call): ResponseState | undefined {
  const { previousResponseId: previous } = call.inspection;
  if (!isStored(call) && previous === undefined) return undefined;
  return { store: isStored(call), previous_response_id: previous ?? null };
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Lets go of the body of a call that is not to be sent again, and of its place in the share. A call whose answer is
 * stored keeps them: it needs its input until the end.
 */
export function letGo(call: Call): void {
  if (isStored(call)) return;
  call.mayRetry = false;
  call.bytes = NO_BYTES;
  if (call.plain !== undefined) call.plain = { route: call.plain.route };
  call.body = {};
  call.inspection = { ...call.inspection, promptPrefix: [] };
  call.history = [];
  call.references = new Map();
  call.hold.release();
}
