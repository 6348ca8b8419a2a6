import { mayUseModel, type Principal } from '../access/principal.ts';
import type { PlainRoute } from '../wire/model-endpoints.ts';
import type { Model } from './balance/model.ts';
import type { ModelRouterDeps } from './deps.ts';
import { DialectError, unsupported, type RemoteMedia } from './dialects/index.ts';
import type { Probe } from './discovery/types.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from './plain-routes.ts';

const NAMES_IN_ERROR = 20;

/**
 * Finds a model that the key may use. Another one is refused as one that does not exist, as OpenAI does: the answer
 * says nothing about models beyond the key's own list.
 *
 * @throws DialectError 404 with the names of the models that the key may use
 */
export function findModel(deps: Pick<ModelRouterDeps, 'catalog'>, principal: Principal, name: string): Model {
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
export function listModels({ catalog }: Pick<ModelRouterDeps, 'catalog'>, principal: Principal): readonly Model[] {
  return catalog().listFor(principal);
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

/** What was found for the media of a call, by the list of a server: asked for each server and each attempt. */
const ANSWERS = new WeakMap<readonly RemoteMedia[], Map<readonly string[], boolean>>();

/** Whether a server that may fetch from these hosts may fetch all of this. */
export function mayFetch(hosts: readonly string[], media: readonly RemoteMedia[]): boolean {
  if (media.length === 0 || hosts.length === 0) return media.length === 0;
  let answers = ANSWERS.get(media);
  if (answers === undefined) ANSWERS.set(media, (answers = new Map()));
  let answer = answers.get(hosts);
  if (answer === undefined) answers.set(hosts, (answer = media.every(({ host }) => isAmong(host, hosts))));
  return answer;
}

function isAmong(host: string, hosts: readonly string[]): boolean {
  return hosts.some((one) => one === host || (one.startsWith('*.') && host.endsWith(one.slice(1))));
}

/** @throws DialectError 400 when a body refers to what no server of the model may fetch */
export function requireMedia({ name, members, sleepers }: Model, media: readonly RemoteMedia[]): void {
  const [first] = media;
  const lists = [
    ...members.map(({ endpoint }) => endpoint.mediaHosts),
    ...sleepers.map(({ server }) => server.mediaHosts ?? []),
  ];
  if (first === undefined || lists.length === 0 || lists.some((hosts) => mayFetch(hosts, media))) return;
  const allowed = [...new Set([...new Set(lists)].flat())];
  const fetches = allowed.length === 0 ? 'fetch nothing' : `fetch only from ${inWords(allowed)}`;
  throw unsupported(
    first.path,
    `The servers of the model '${name}' ${fetches}, and '${first.path}' is an address. Send the data itself as a data: URL.`,
  );
}
