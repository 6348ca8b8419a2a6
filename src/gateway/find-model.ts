import { mayUseModel, type Principal } from '../access/principal.ts';
import type { Model } from './balance/model.ts';
import type { ModelRouterDeps } from './deps.ts';
import { DialectError } from './dialects/index.ts';

const NAMES_IN_ERROR = 20;

/**
 * Finds a model that the key may use. Another one is refused as one that does not exist, as OpenAI does: the answer
 * says nothing about models beyond the key's own list.
 *
 * @throws DialectError 404 with the names of the models that the key may use
 */
export function findModel(deps: ModelRouterDeps, principal: Principal, name: string): Model {
  const model = mayUseModel(principal, name) ? deps.catalog().find(principal.namespace, name) : undefined;
  if (model !== undefined) return model;
  const known = listModels(deps, principal).map((each) => each.name);
  throw new DialectError({
    status: 404,
    message: `The model '${name.slice(0, 200)}' does not exist or you do not have access to it. ${knownModels(known)}`,
    code: 'model_not_found',
    param: 'model',
  });
}

/** The models that the key may use, by name. */
export function listModels({ catalog }: Pick<ModelRouterDeps, 'catalog'>, principal: Principal): Model[] {
  return catalog()
    .list(principal.namespace)
    .filter(({ name }) => mayUseModel(principal, name));
}

function knownModels(names: readonly string[]): string {
  if (names.length === 0) return 'No model is served to this key at the moment.';
  return `Known models: ${inWords(names)}.`;
}

/** Names in an error message. */
export function inWords(names: readonly string[]): string {
  const listed = names.slice(0, NAMES_IN_ERROR).map((name) => `'${name}'`);
  const rest = names.length > NAMES_IN_ERROR ? ` and ${names.length - NAMES_IN_ERROR} more` : '';
  return `${listed.join(', ')}${rest}`;
}
