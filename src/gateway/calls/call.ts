import type { Dialect, HistoryItem, Inspection, RequestFeatures } from '../dialects/index.ts';
import type { Principal } from '../principal.ts';

/** One client call, read and checked, on its way to an endpoint. */
export interface Call {
  /** Unique, `[a-z0-9]+`: in response ids, error bodies and logs. */
  id: string;
  dialect: Dialect;
  principal: Principal;
  /** The body as it came, and parsed. */
  bytes: Buffer;
  body: Record<string, unknown>;
  inspection: Inspection;
  features: RequestFeatures;
  /** The session that an agent names in a header. */
  sessionHeader: string | undefined;
  /** Stored items that the call continues. */
  history: readonly HistoryItem[];
  references: ReadonlyMap<string, readonly HistoryItem[]>;
  /** Milliseconds, monotonic. */
  startedAt: number;
  /** Seconds since the epoch. */
  createdAt: number;
}

/** The answer is stored, so that a later call can continue it: in the responses dialect, unless the client asked not to. */
export function isKept({ dialect, inspection }: Call): boolean {
  return dialect === 'responses' && inspection.store;
}
