import { DialectError, inspectRequest, requestFeatures, type ClientError, type Dialect } from '../dialects/index.ts';
import type { Pool } from '../balance/pool.ts';
import type { ModelRouterDeps } from '../deps.ts';
import type { Principal } from '../principal.ts';
import { readHistory } from '../state/history.ts';
import type { Call } from './call.ts';

const NAMES_IN_ERROR = 20;

export interface Incoming {
  id: string;
  dialect: Dialect;
  principal: Principal;
  bytes: Buffer;
  sessionHeader: string | undefined;
  startedAt: number;
}

/** Reads and checks a body, finds its model and the history it continues. Throws DialectError. */
export async function admit(deps: ModelRouterDeps, incoming: Incoming): Promise<{ call: Call; pool: Pool }> {
  const { dialect, principal, bytes } = incoming;
  const body = parseBody(bytes);
  const inspection = inspectRequest(dialect, body);
  const pool = findModel(deps, principal, inspection.model);
  const { previousResponseId, itemReferences } = inspection;
  const call: Call = {
    ...incoming,
    // Checked by `inspectRequest`.
    body: body as Record<string, unknown>,
    inspection,
    features: requestFeatures(dialect, body),
    history: previousResponseId === undefined ? [] : await readHistory(deps.store, principal.keyId, previousResponseId),
    references: itemReferences.length === 0 ? new Map() : await deps.store.findItems(principal.keyId, itemReferences),
    createdAt: Math.floor(deps.wallClock() / 1000),
  };
  return { call, pool };
}

/** @throws DialectError 400 when it is not JSON */
export function parseBody(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new DialectError({ status: 400, message: 'The request body is not valid JSON.', code: 'invalid_json' });
  }
}

/** @throws DialectError 404 with the names that there are */
export function findModel(deps: ModelRouterDeps, { namespace }: Principal, model: string): Pool {
  const catalog = deps.catalog();
  const pool = catalog.find(namespace, model);
  if (pool !== undefined) return pool;
  throw new DialectError(
    unknownModel(
      model,
      catalog.list(namespace).map(({ model }) => model),
    ),
  );
}

function unknownModel(model: string, known: readonly string[]): ClientError {
  const shown = known
    .slice(0, NAMES_IN_ERROR)
    .map((name) => `'${name}'`)
    .join(', ');
  const rest = known.length > NAMES_IN_ERROR ? ` and ${known.length - NAMES_IN_ERROR} more` : '';
  const list = known.length === 0 ? 'No model is served at the moment.' : `Known models: ${shown}${rest}.`;
  return {
    status: 404,
    message: `The model '${model.slice(0, 200)}' does not exist or you do not have access to it. ${list}`,
    code: 'model_not_found',
    param: 'model',
  };
}
