import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalString, stringAt, textValue } from '../fields.ts';
import { argumentsOf } from '../tool-arguments.ts';
import type { ParsedItem, Part } from '../types.ts';
import { parseCompaction } from './compaction.ts';
import { ownToolOfCall } from './own-tools.ts';
import { namesOfTools } from './tools.ts';

/** What a call of OpenAI's was, and what came of it. */
interface Ran {
  name: string;
  input: unknown;
  output: string;
}

/** Calls that OpenAI ran, which have their output in the same item. OpenAI keeps what was found on the web. */
const VENDOR_CALLS: Readonly<Record<string, (item: Json) => Ran>> = {
  web_search_call: ({ action }) => ({ name: 'web_search', input: action, output: 'The results are not kept.' }),
  file_search_call: ({ queries, results }) => ({
    name: 'file_search',
    input: { queries },
    output:
      objectsOf(results)
        .map(({ filename, text }) => `${textValue(filename)}:\n${textValue(text)}`)
        .join('\n\n') || 'The results are not kept.',
  }),
  code_interpreter_call: ({ code, outputs }) => ({
    name: 'code_interpreter',
    input: { code },
    output: objectsOf(outputs)
      .map(({ logs }) => textValue(logs) || 'An image.')
      .join('\n'),
  }),
  image_generation_call: ({ revised_prompt: prompt }) => ({
    name: 'image_generation',
    input: { prompt },
    output: 'The image was shown to the user.',
  }),
  mcp_call: ({ name, arguments: input, output, error }) => ({
    name: textValue(name),
    input,
    output: optionalString(output) ?? (error ? `Error: ${outputText(error)}` : ''),
  }),
};

/** Calls and outputs that come as two items, by the name of what is called. */
const CLIENT_CALLS: Readonly<Record<string, { name: string; field: string }>> = {
  computer_call: { name: 'computer', field: 'action' },
  program: { name: 'program', field: 'code' },
};
const CLIENT_OUTPUTS = new Set<unknown>([
  'local_shell_call_output',
  'shell_call_output',
  'apply_patch_call_output',
  'computer_call_output',
  'program_output',
]);

const COMPACTIONS = new Set<unknown>(['compaction', 'compaction_summary', 'context_compaction']);

/** What says nothing to another model: which tools a server of OpenAI's side has, who allowed a call, and settings. */
const SILENT = new Set<unknown>([
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
  'configuration_update',
  'ghost_snapshot',
]);

/**
 * Items of earlier answers that OpenAI's own tools made, as calls and results like any other. Agents replay them when
 * they change the model in a session. Undefined for kinds that are not known.
 */
export function parseVendorItem(item: Json, path: string): ParsedItem[] | undefined {
  const type = textValue(item.type);
  const id = typeof item.id === 'string' ? { id: item.id } : {};
  if (SILENT.has(type)) return [];
  if (COMPACTIONS.has(type)) return [{ ...parseCompaction(item), ...id }];
  if (type === 'tool_search_output') return parseFound(item, id);
  if (Object.hasOwn(VENDOR_CALLS, type))
    return pairOf(optionalString(item.id) ?? madeUp(path), VENDOR_CALLS[type]?.(item));
  const call = ownToolOfCall(type) ?? (Object.hasOwn(CLIENT_CALLS, type) ? CLIENT_CALLS[type] : undefined);
  if (call !== undefined) {
    // A search that OpenAI ran has no id, and no output but the tools that it found.
    if (type === 'tool_search_call' && typeof item.call_id !== 'string') return [];
    const { [call.field]: given } = item;
    const input = argumentsOf(typeof given === 'string' ? { [call.field]: given } : given);
    const callId = optionalString(item.call_id) ?? optionalString(item.id) ?? madeUp(path);
    return [{ kind: 'call', callId, name: call.name, arguments: input, ...id }];
  }
  if (!CLIENT_OUTPUTS.has(type)) return undefined;
  return [{ kind: 'result', callId: callIdOf(item, path), parts: outputOf(item), ...id }];
}

/** Clients that store nothing leave out ids. */
function madeUp(path: string): string {
  return `call_${path.replaceAll(/\W/g, '')}`;
}

/** `local_shell_call_output` names its call in `id`. */
function callIdOf(item: Json, path: string): string {
  return optionalString(item.call_id) ?? stringAt(item.id, `${path}.call_id`);
}

function pairOf(callId: string, ran: Ran | undefined): ParsedItem[] {
  if (ran === undefined) return [];
  const { name, input, output } = ran;
  const text = typeof input === 'string' ? input : argumentsOf(input);
  return [
    { kind: 'call', callId, name, arguments: text },
    { kind: 'result', callId, parts: [{ type: 'text', text: output }] },
  ];
}

/** The tools that a search found, and for the model their names. */
function parseFound({ tools, call_id: callId }: Json, id: { id?: string }): ParsedItem[] {
  const found: ParsedItem = { kind: 'tools', tools: objectsOf(tools), ...id };
  if (typeof callId !== 'string') return [found];
  const names = namesOfTools(tools).map(({ name, description }) => `${name}: ${description}`);
  const text = names.length === 0 ? 'No tool was found.' : `These tools can be called now:\n${names.join('\n')}`;
  return [{ kind: 'result', callId, parts: [{ type: 'text', text }], ...id }, found];
}

function outputOf({ output, result, status }: Json): Part[] {
  if (isObject(output) && typeof output.image_url === 'string') return [{ type: 'image', url: output.image_url }];
  return [{ type: 'text', text: outputText(output ?? result) || textValue(status) }];
}

/** A shell's output is a text, or a list with what each command wrote. */
function outputText(output: unknown): string {
  if (typeof output === 'string') return output;
  if (!Array.isArray(output)) return output === undefined || output === null ? '' : JSON.stringify(output);
  return objectsOf(output)
    .map((part) => (typeof part.text === 'string' ? part.text : `${textValue(part.stdout)}${textValue(part.stderr)}`))
    .join('\n');
}
