import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalString, stringAt, textValue } from '../fields.ts';
import type { HistoryItem } from '../types.ts';

/** The item of each kind of call that OpenAI defines and the client runs, and the field that says what to do. */
const CLIENT_CALLS: Readonly<Record<string, { name: string; field: string }>> = {
  local_shell_call: { name: 'local_shell', field: 'action' },
  shell_call: { name: 'shell', field: 'action' },
  apply_patch_call: { name: 'apply_patch', field: 'operation' },
};
const CLIENT_OUTPUTS = new Set<unknown>(['local_shell_call_output', 'shell_call_output', 'apply_patch_call_output']);

/**
 * Items of earlier answers that OpenAI's own tools made, as calls and results like any other. Agents replay them when
 * they change the model in a session. Undefined for kinds that mean nothing to another model.
 */
export function parseVendorItem(item: Json, path: string): HistoryItem[] | undefined {
  const type = textValue(item.type);
  const id = typeof item.id === 'string' ? { id: item.id } : {};
  const call = CLIENT_CALLS[type];
  if (call !== undefined) {
    const input = JSON.stringify(isObject(item[call.field]) ? item[call.field] : {});
    return [{ kind: 'call', callId: callIdOf(item, path), name: call.name, arguments: input, ...id }];
  }
  if (CLIENT_OUTPUTS.has(type)) {
    const parts = [{ type: 'text' as const, text: outputText(item.output) }];
    return [{ kind: 'result', callId: callIdOf(item, path), parts, ...id }];
  }
  if (type === 'web_search_call') {
    const input = JSON.stringify(isObject(item.action) ? item.action : {});
    // OpenAI keeps what was found. The answer that follows has what mattered of it.
    return pair(stringAt(item.id, `${path}.id`), { name: 'web_search', input, output: 'The results are not kept.' });
  }
  if (type !== 'mcp_call') return undefined;
  const { name, arguments: input, output, error } = item;
  return pair(stringAt(item.id, `${path}.id`), {
    name: stringAt(name, `${path}.name`),
    input: textValue(input),
    output: optionalString(output) ?? (error ? `Error: ${outputText(error)}` : ''),
  });
}

/** `local_shell_call_output` names its call in `id`. */
function callIdOf(item: Json, path: string): string {
  return optionalString(item.call_id) ?? stringAt(item.id, `${path}.call_id`);
}

function pair(callId: string, { name, input, output }: { name: string; input: string; output: string }): HistoryItem[] {
  return [
    { kind: 'call', callId, name, arguments: input },
    { kind: 'result', callId, parts: [{ type: 'text', text: output }] },
  ];
}

/** A shell's output is a text, or a list with what each command wrote. */
function outputText(output: unknown): string {
  if (typeof output === 'string') return output;
  if (!Array.isArray(output)) return output === undefined || output === null ? '' : JSON.stringify(output);
  return objectsOf(output)
    .map((part) => (typeof part.text === 'string' ? part.text : `${textValue(part.stdout)}${textValue(part.stderr)}`))
    .join('\n');
}
