import type { Principal } from '../../access/principal.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError } from '../dialects/index.ts';
import type { Probe } from '../discovery/types.ts';
import { inWords, listModels } from '../find-model.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from './routes.ts';

/** Whether a server takes calls of this route; without one, of any of the dialects. */
export function serves(probe: Probe | undefined, route: PlainRoute | undefined): boolean {
  if (route === undefined) return probe === undefined || probe.dialects.length > 0;
  return probe?.plainPaths[route] !== undefined;
}

function isServed({ members, probe }: Model, route: PlainRoute | undefined): boolean {
  if (members.length === 0) return serves(probe, route);
  return members.some(({ endpoint }) => serves(endpoint.probe, route));
}

/** @throws DialectError 400 when no server of the model has the route; it names the models that have it */
export function requireRoute(
  deps: Pick<ModelRouterDeps, 'catalog'>,
  principal: Principal,
  model: Model,
  route: PlainRoute | undefined,
): void {
  if (isServed(model, route)) return;
  const others = listModels(deps, principal).filter((each) => isServed(each, route));
  const names = others.map(({ name }) => name);
  const known = names.length === 0 ? 'No model of this key is.' : `Models that are: ${inWords(names)}.`;
  const own = PLAIN_NAMES.filter((name) => isServed(model, name)).map((name) => PLAIN_ROUTES[name].path);
  const instead = own.length === 0 ? '' : ` It is at ${own.join(', ')}.`;
  const where = route === undefined ? '/chat/completions, /responses and /messages' : PLAIN_ROUTES[route].path;
  throw new DialectError({
    status: 400,
    message: `The model '${model.name}' is not served at ${where}.${instead} ${known}`,
    code: 'unsupported_endpoint',
    param: 'model',
  });
}
