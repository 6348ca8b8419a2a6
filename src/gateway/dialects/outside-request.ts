import { isObject, type Json } from '../../lib/json.ts';
import { unsupported } from './errors/dialect-error.ts';
import { excerpt, objectsOf, textValue } from './fields.ts';
import { isFreeData } from './inspect/free-data.ts';

/** By which the operator's account would keep what a tenant said, or pay for another class of service. */
const OF_ACCOUNT = ['store', 'service_tier'] as const;
/** By which a server runs something that costs more than tokens, or calls where the caller says. */
const OF_HOSTS = ['mcp_servers', 'web_search_options', 'container', 'background'] as const;
/** What is kept in the account that the credential is of: the caller has put nothing there. */
const KEPT: ReadonlySet<string> = new Set(['file_id', 'file_ids', 'vector_store_ids']);

/** Tools that clients run, in any dialect. */
const CLIENT_TOOL =
  /^(?:function|custom|namespace|tool_search|shell|local_shell|apply_patch|(?:bash|text_editor|computer|memory)_\d+)$/;
/** Agents declare it and do without it. */
const WEB_SEARCH = /^web_search(?:_|$)/;

/**
 * A body for a server outside, without what would act for the operator's account there. Throws DialectError for what
 * cannot be left out.
 */
export function forOutside(body: Json): Json {
  const found = OF_HOSTS.find((name) => isGiven(body[name])) ?? keptIn(body, true);
  if (found !== undefined)
    throw unsupported(
      found,
      `'${found}' is not available: the server of this model is outside the cluster, and its account is not yours. Remove it.`,
    );
  const sent = { ...body };
  for (const name of OF_ACCOUNT) if (sent[name] !== undefined) delete sent[name];
  // Without a word, the responses route of OpenAI stores.
  if (body.store === false) sent.store = false;
  const tools = objectsOf(body.tools);
  const isHosted = ({ type }: Json): boolean => type !== undefined && !CLIENT_TOOL.test(textValue(type));
  const hosted = tools.filter(isHosted);
  if (hosted.length === 0) return sent;
  const refused = isForced(body.tool_choice) ? hosted[0] : hosted.find(({ type }) => !WEB_SEARCH.test(textValue(type)));
  if (refused !== undefined)
    throw unsupported(
      'tools',
      `The tool '${excerpt(refused.type)}' runs at the server, which is outside the cluster, and is not available. Remove it or declare a function.`,
    );
  const left = tools.filter((tool) => !isHosted(tool));
  if (left.length > 0) return { ...sent, tools: left };
  const { tools: _tools, tool_choice: _choice, ...rest } = sent;
  return rest;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function isForced(choice: unknown): boolean {
  const mode = isObject(choice) ? choice.type : choice;
  return mode !== undefined && mode !== null && mode !== 'auto' && mode !== 'none';
}

/** The name of the first field that names something kept, at any depth. */
function keptIn(value: unknown, isBody: boolean): string | undefined {
  if (Array.isArray(value)) {
    for (const inner of value) {
      const found = keptIn(inner, false);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(value)) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (KEPT.has(name) && isGiven(inner)) return name;
    const found = isFreeData(name, value, isBody) ? undefined : keptIn(inner, false);
    if (found !== undefined) return found;
  }
  return undefined;
}
