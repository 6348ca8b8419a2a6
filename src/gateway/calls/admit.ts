import type { Principal } from '../../access/principal.ts';
import { isObject, type Json } from '../../lib/json.ts';
import type { Span } from '../../runtime/tracing/tracer.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { findModel, requireRoute } from '../find-model.ts';
import { DialectError, inspectRequest, promptTokens, requestFeatures, type Dialect } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { readHistory } from '../state/history.ts';
import type { Call } from './call.ts';

export interface Incoming {
  id: string;
  dialect: Dialect;
  principal: Principal;
  bytes: Buffer;
  hold: BodyHold;
  sessionHeader: string | undefined;
  contentType: string | undefined;
  trace: readonly string[];
  span: Span | undefined;
  startedAt: number;
}

/** Parses and checks a body, and finds its model and the history it continues. Throws DialectError. */
export async function admit(deps: ModelRouterDeps, incoming: Incoming): Promise<{ call: Call; model: Model }> {
  const { dialect, principal, bytes } = incoming;
  const body = parseBody(bytes);
  const inspection = inspectRequest(dialect, body);
  const model = findModel(deps, principal, inspection.model);
  requireRoute(deps, principal, model, undefined);
  const { previousResponseId, itemReferences } = inspection;
  const call: Call = {
    ...incoming,
    promptTokens: promptTokens(body as Json, bytes.length),
    mayRetry: true,
    // Checked by `inspectRequest`.
    body: body as Json,
    inspection,
    features: requestFeatures(dialect, body),
    history: previousResponseId === undefined ? [] : await readHistory(deps.store, principal, previousResponseId),
    references: itemReferences.length === 0 ? new Map() : await deps.store.findItems(principal, itemReferences),
    createdAt: Math.floor(deps.clock.now() / 1000),
  };
  return { call, model };
}

/** @throws DialectError 400 when it is not JSON */
export function parseBody(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  try {
    return withWholeSeed(JSON.parse(text), text);
  } catch {
    throw new DialectError({ status: 400, message: 'The request body is not valid JSON.', code: 'invalid_json' });
  }
}

/** Writes a number as the client did. TypeScript has no type for it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(this: void, text: string): unknown };

/** A seed has 64 bits, of which a JavaScript number keeps 53. The rounded one would give another answer. */
function withWholeSeed(body: unknown, text: string): unknown {
  if (!isObject(body) || typeof body.seed !== 'number' || Number.isSafeInteger(body.seed)) return body;
  const written = [...text.matchAll(/"seed"\s*:\s*(-?\d{16,20})\b/g)].map(([, digits = '']) => digits);
  const whole = written.find((digits) => Number(digits) === body.seed);
  return whole === undefined ? body : { ...body, seed: rawJSON(whole) };
}
