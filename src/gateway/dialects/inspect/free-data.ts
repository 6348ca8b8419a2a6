import type { Json } from '../../../lib/json.ts';

/** Fields with data of the caller, which no server reads as a part of the request: schemas, arguments, maps, quotations. */
const FREE: ReadonlySet<string> = new Set([
  'parameters',
  'input_schema',
  'input_examples',
  'schema',
  'guided_json',
  'structured_outputs',
  'arguments',
  'metadata',
  'logit_bias',
  'chat_template_kwargs',
  'custom_params',
  'vllm_xargs',
  'annotations',
  'citations',
]);
/** Fields with such data in items and blocks of these types. */
const FREE_IN: Readonly<Record<string, RegExp>> = {
  input: /^(?:server_|mcp_)?tool_use$/,
  action: /_call$/,
  operation: /_call$/,
};

/** Whether the value of this field of `parent` is data of the caller, in which names mean nothing to a server. */
export function isFreeData(name: string, parent: Json, isBody: boolean): boolean {
  if (FREE.has(name)) return true;
  // A body has an input of its own, whatever type it claims to be.
  const { type } = parent;
  if (isBody || typeof type !== 'string' || !Object.hasOwn(FREE_IN, name)) return false;
  return FREE_IN[name]?.test(type) === true;
}
