import type { Principal } from '../../access/principal.ts';
import type { Json } from '../../lib/json.ts';
import type { Span } from '../../runtime/tracing/tracer.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { findModel, requireMedia, requireRoute } from '../find-model.ts';
import {
  type Inspection,
  inspectRequest,
  optionalString,
  promptTokens,
  refuseOfServers,
  remoteMedia,
  requestFeatures,
  toCompact,
  tokensOfItem,
  type Dialect,
} from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { readHistory, readReferences } from '../state/history.ts';
import type { Call } from './call.ts';
import { parseBody } from './parse-body.ts';
import { textHolder } from './read-body.ts';

export interface Incoming {
  id: string;
  dialect: Dialect;
  principal: Principal;
  tenant: string;
  bytes: Buffer;
  hold: BodyHold;
  kept: BodyHold;
  sessionHeader: string | undefined;
  contentType: string | undefined;
  trace: readonly string[];
  span: Span | undefined;
  startedAt: number;
  /** The conversation is to be summed up (`/responses/compact`). */
  compacts?: boolean;
  anthropicHeaders: Call['anthropicHeaders'];
}

/** Parses and checks a body, and finds its model and the history it continues. Throws DialectError. */
export async function admit(deps: ModelRouterDeps, incoming: Incoming): Promise<{ call: Call; model: Model }> {
  const { dialect, principal, bytes } = incoming;
  const given = parseBody(bytes);
  const parsed = incoming.compacts ? toCompact(given) : given;
  const inspection = inspectRequest(dialect, parsed);
  // Checked by `inspectRequest`.
  const body = parsed as Json;
  const model = findModel(deps, principal, inspection.model);
  requireRoute(deps, principal, model, undefined);
  const { history, references } = await readConversation(deps, incoming, inspection);
  const stored = [...history, ...[...references.values()].flat()];
  if (model.isShared) refuseOfServers(body, stored);
  // What was stored may have been for a server that may fetch more.
  const referred = remoteMedia([...history, ...references.values()], 'previous_response_id');
  const media = [...remoteMedia(body), ...referred];
  requireMedia(model, media);
  const call: Call = {
    ...incoming,
    promptTokens: stored.reduce((sum, item) => sum + tokensOfItem(item), promptTokens(body, bytes.length)),
    mayRetry: true,
    prices: model.prices,
    body,
    inspection,
    features: requestFeatures(dialect, body),
    media,
    cacheSalt: deps.salts.of(principal.namespace, optionalString(body.cache_salt)),
    history,
    references,
    createdAt: Math.floor(deps.clock.now() / 1000),
  };
  return { call, model };
}

/** What a call continues of the stored answers of its key. They count as its body. */
export async function readConversation(
  { store }: Pick<ModelRouterDeps, 'store'>,
  { principal, hold }: Pick<Incoming, 'principal' | 'hold'>,
  { previousResponseId: id, itemReferences }: Pick<Inspection, 'previousResponseId' | 'itemReferences'>,
): Promise<Pick<Call, 'history' | 'references'>> {
  const take = textHolder(hold);
  return {
    history: id === undefined ? [] : await readHistory(store, principal, id, take),
    references: await readReferences(store, principal, itemReferences, take),
  };
}
