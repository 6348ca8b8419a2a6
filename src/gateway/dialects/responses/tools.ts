import { isObject, type Json } from '../../../lib/json.ts';
import { invalid, unsupported } from '../errors/dialect-error.ts';
import {
  arrayAt,
  excerpt,
  objectAt,
  objectsOf,
  optionalBoolean,
  optionalString,
  stringAt,
  textValue,
} from '../fields.ts';
import type { HistoryItem, Tool } from '../types.ts';
import { ownTool } from './own-tools.ts';

/** Characters of the name of a namespace. */
const NAMESPACE_MAX = 256;

/** The name that the engine sees of a tool inside a namespace. Engines know flat names only. */
export function wireName(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}

/** The tools of a responses body. Functions stand for all other kinds. Hosted ones are refused. */
function parseTools(value: unknown, list: string): Tool[] {
  if (value === undefined || value === null) return [];
  return arrayAt(value, list).flatMap((entry, position) => {
    const path = `${list}[${position}]`;
    const tool = objectAt(entry, path);
    if (tool.type !== 'namespace') return parseTool(tool, path, undefined);
    const namespace = nameOfNamespace(tool, path);
    return arrayAt(tool.tools, `${path}.tools`).flatMap((inner, index) =>
      parseTool(objectAt(inner, `${path}.tools[${index}]`), `${path}.tools[${index}]`, namespace),
    );
  });
}

/** Each tool inside has it in its name. Throws DialectError for one that is too long. */
function nameOfNamespace({ name }: Json, path: string): string {
  const namespace = stringAt(name, `${path}.name`);
  if (namespace.length > NAMESPACE_MAX) throw invalid(`${path}.name`, `expected at most ${NAMESPACE_MAX} characters`);
  return namespace;
}

/**
 * All tools that a call offers: those of its body, and those that its conversation adds. What is added may declare a tool
 * anew, whose last declaration counts. Throws DialectError.
 */
export function offeredTools(body: Json, items: readonly HistoryItem[]): Tool[] {
  const offered = Map.groupBy(parseTools(body.tools, 'tools'), keyOf);
  for (const item of items) {
    if (item.kind !== 'tools') continue;
    for (const [key, tools] of Map.groupBy(parseTools(item.tools, 'additional_tools'), keyOf)) {
      // At the end now, as what was added last.
      offered.delete(key);
      offered.set(key, tools);
    }
  }
  return [...offered.values()].flat();
}

/** The items of an input that add tools. */
export function addedTools(input: readonly Json[]): HistoryItem[] {
  return input.flatMap(({ type, tools }) => (ADDS_TOOLS.has(type) ? [{ kind: 'tools', tools: objectsOf(tools) }] : []));
}

const ADDS_TOOLS = new Set<unknown>(['additional_tools', 'tool_search_output']);

/** The same for declarations of one tool. */
function keyOf({ name, origin }: Tool): string {
  return JSON.stringify([name, origin]);
}

/** The names that the model sees of tools. */
export function namesOfTools(tools: unknown): { name: string; description: string }[] {
  return objectsOf(tools).flatMap((tool) => {
    const inner = tool.type === 'namespace' ? objectsOf(tool.tools) : [tool];
    const namespace = tool.type === 'namespace' ? nameOfNamespace(tool, 'tools') : undefined;
    return inner.map(({ name, type, description }) => ({
      name: wireName(namespace, textValue(name) || textValue(type)),
      description: textValue(description),
    }));
  });
}

/** Declared by agents beside their own tools, which can do without. */
const WEB_SEARCH = /^web_search(?:_|$)/;

/** Whether a tool runs at OpenAI, and may be left out. */
export function isDispensable({ type }: Json): boolean {
  // All tools for which a search at OpenAI would look are offered here.
  return type === 'tool_search' || (typeof type === 'string' && WEB_SEARCH.test(type));
}

function parseTool(tool: Json, path: string, namespace: string | undefined): Tool[] {
  if (tool.type === 'custom') return [customTool(tool, path, namespace)];
  if (tool.type === 'function') return [functionTool(tool, path, namespace)];
  const own = ownTool(tool);
  if (own !== undefined) return [own];
  if (isDispensable(tool)) return [];
  throw unsupported(
    path,
    `The hosted tool '${excerpt(tool.type)}' runs at OpenAI and is not available here. Remove it or declare a function.`,
  );
}

function functionTool(tool: Json, path: string, namespace: string | undefined): Tool {
  const name = stringAt(tool.name, `${path}.name`);
  const parameters = isObject(tool.parameters) ? tool.parameters : { type: 'object', properties: {} };
  return {
    name: wireName(namespace, name),
    description: optionalString(tool.description),
    parameters,
    // In the responses dialect a tool is strict by default, as far as its schema allows.
    strict: optionalBoolean(tool.strict) ?? isStrictSchema(parameters),
    ...(namespace !== undefined && { origin: { type: 'namespace', namespace, name } }),
  };
}

/** A free-form tool as a function with one string, which every engine can call. */
function customTool(tool: Json, path: string, namespace: string | undefined): Tool {
  const name = stringAt(tool.name, `${path}.name`);
  const format = isObject(tool.format) ? tool.format : {};
  const grammar =
    typeof format.definition === 'string' ? `\n\nThe input must match this grammar:\n${format.definition}` : '';
  return {
    name: wireName(namespace, name),
    description: `${textValue(tool.description)}${grammar}`,
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description: 'The raw input of the tool.' } },
      required: ['input'],
      additionalProperties: false,
    },
    strict: true,
    origin: { type: 'custom', ...(namespace !== undefined && { namespace }), name },
  };
}

/** Whether a schema meets the rules of strict mode: every object is closed and every property required. */
function isStrictSchema(schema: unknown): boolean {
  if (!isObject(schema)) return true;
  if (isObject(schema.properties) || schema.type === 'object') {
    const names = isObject(schema.properties) ? Object.keys(schema.properties) : [];
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    if (schema.additionalProperties !== false || !names.every((name) => required.has(name))) return false;
  }
  const inner = [
    ...(isObject(schema.properties) ? Object.values(schema.properties) : []),
    ...objectsOf(schema.anyOf),
    ...(isObject(schema.$defs) ? Object.values(schema.$defs) : []),
    schema.items,
  ];
  return inner.every(isStrictSchema);
}
