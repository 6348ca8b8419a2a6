import { isObject, type Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
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
import type { Tool, ToolChoice } from '../types.ts';

/** The name that the engine sees of a tool inside a namespace. Engines know flat names only. */
export function wireName(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}

/** The tools of a responses body. Functions stand for custom and namespaced tools. Hosted ones are refused. */
export function parseResponsesTools(value: unknown): Tool[] {
  if (value === undefined || value === null) return [];
  return arrayAt(value, 'tools').flatMap((entry, position) => {
    const path = `tools[${position}]`;
    const tool = objectAt(entry, path);
    if (tool.type !== 'namespace') return [parseTool(tool, path, undefined)];
    const namespace = stringAt(tool.name, `${path}.name`);
    return arrayAt(tool.tools, `${path}.tools`).map((inner, index) =>
      parseTool(objectAt(inner, `${path}.tools[${index}]`), `${path}.tools[${index}]`, namespace),
    );
  });
}

function parseTool(tool: Json, path: string, namespace: string | undefined): Tool {
  if (tool.type === 'custom') return customTool(tool, path, namespace);
  if (tool.type !== 'function') {
    throw unsupported(
      path,
      `The hosted tool '${excerpt(tool.type)}' runs at OpenAI and is not available here. Remove it or declare a function.`,
    );
  }
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

/** The choice of tools, and for `allowed_tools` the names of those to offer. */
export function parseResponsesChoice(value: unknown): { toolChoice?: ToolChoice; allowed?: Set<string> } {
  if (value === undefined || value === null) return {};
  if (value === 'auto' || value === 'none' || value === 'required') return { toolChoice: { mode: value } };
  const choice = objectAt(value, 'tool_choice');
  if (choice.type === 'function' || choice.type === 'custom') {
    return { toolChoice: { mode: 'tool', name: stringAt(choice.name, 'tool_choice.name') } };
  }
  if (choice.type === 'allowed_tools') {
    const names = objectsOf(choice.tools).map((tool) => textValue(tool.name));
    return { toolChoice: { mode: choice.mode === 'required' ? 'required' : 'auto' }, allowed: new Set(names) };
  }
  throw unsupported(
    'tool_choice',
    `tool_choice of type '${excerpt(choice.type)}' names a hosted tool, which is not available here. Choose a function.`,
  );
}
