import type { Principal } from '../../access/principal.ts';
import type { Json } from '../../lib/json.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError, inspectRequest, requestFeatures, type Dialect } from '../dialects/index.ts';
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

/** Parses and checks a body, and finds its model and the history it continues. Throws DialectError. */
export async function admit(deps: ModelRouterDeps, incoming: Incoming): Promise<{ call: Call; model: Model }> {
  const { dialect, principal, bytes } = incoming;
  const body = parseBody(bytes);
  const inspection = inspectRequest(dialect, body);
  const model = findModel(deps, principal, inspection.model);
  const { previousResponseId, itemReferences } = inspection;
  const call: Call = {
    ...incoming,
    // Checked by `inspectRequest`.
    body: body as Json,
    inspection,
    features: requestFeatures(dialect, body),
    history: previousResponseId === undefined ? [] : await readHistory(deps.store, principal.keyId, previousResponseId),
    references: itemReferences.length === 0 ? new Map() : await deps.store.findItems(principal.keyId, itemReferences),
    createdAt: Math.floor(deps.clock.now() / 1000),
  };
  return { call, model };
}

/** @throws DialectError 400 when it is not JSON */
export function parseBody(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new DialectError({ status: 400, message: 'The request body is not valid JSON.', code: 'invalid_json' });
  }
}

/** @throws DialectError 404 with the names of the known models */
export function findModel(deps: ModelRouterDeps, { namespace }: Principal, name: string): Model {
  const catalog = deps.catalog();
  const model = catalog.find(namespace, name);
  if (model !== undefined) return model;
  const known = catalog.list(namespace).map((each) => each.name);
  throw new DialectError({
    status: 404,
    message: `The model '${name.slice(0, 200)}' does not exist or you do not have access to it. ${knownModels(known)}`,
    code: 'model_not_found',
    param: 'model',
  });
}

function knownModels(names: readonly string[]): string {
  if (names.length === 0) return 'No model is served at the moment.';
  const listed = names.slice(0, NAMES_IN_ERROR).map((name) => `'${name}'`);
  const rest = names.length > NAMES_IN_ERROR ? ` and ${names.length - NAMES_IN_ERROR} more` : '';
  return `Known models: ${listed.join(', ')}${rest}.`;
}
