import { isObject, type Json } from '../../../lib/json.ts';
import { optionalNumber, parseJson, textValue } from '../fields.ts';
import { inputOf } from '../tool-arguments.ts';
import type { CallItem, OwnToolName, Tool } from '../types.ts';

/** A tool that OpenAI defines and the client runs. Its models know the schema, other models are told. */
interface OwnTool {
  /** The type of its calls, and the field of them that says what to do. */
  item: string;
  field: string;
  description: string;
  parameters: Json;
  /** What a call has beside that field. */
  more?: Json;
  /** That field, with all that clients read of it. */
  complete: (input: Json) => Json;
}

const TEXT = { type: 'string' };
const TEXTS = { type: 'array', items: TEXT };
const MILLISECONDS = { type: 'integer', description: 'Milliseconds after which to give up.' };

/** OpenAI's documentation, "Shell", "Local shell", "Apply patch" and "Tool search". */
const OWN_TOOLS: Readonly<Record<OwnToolName, OwnTool>> = {
  shell: {
    item: 'shell_call',
    field: 'action',
    description: 'Runs commands in a shell, one after the other, and gives the output of each.',
    parameters: {
      type: 'object',
      properties: { commands: TEXTS, timeout_ms: MILLISECONDS, max_output_length: { type: 'integer' } },
      required: ['commands'],
    },
    more: { environment: null },
    complete: ({ commands, timeout_ms: timeout, max_output_length: length }) => ({
      commands: textsOf(commands),
      timeout_ms: numberIn(timeout) ?? null,
      max_output_length: numberIn(length) ?? null,
    }),
  },
  local_shell: {
    item: 'local_shell_call',
    field: 'action',
    description: 'Runs one command, given as its program and arguments, and gives its output.',
    parameters: {
      type: 'object',
      properties: { command: TEXTS, working_directory: TEXT, timeout_ms: MILLISECONDS },
      required: ['command'],
    },
    complete: ({ command, env, ...others }) => ({
      ...others,
      type: 'exec',
      command: textsOf(command),
      env: isObject(env) ? env : {},
    }),
  },
  apply_patch: {
    item: 'apply_patch_call',
    field: 'operation',
    description:
      'Creates, changes or deletes a file. A diff has a line with @@ before each place that it changes, and there lines that begin with a space for context, with - for what goes and with + for what comes. The diff of a new file has only lines with +. It has no numbers of lines.',
    parameters: {
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
        path: TEXT,
        diff: { type: 'string', description: 'Not for delete_file.' },
      },
      required: ['type', 'path'],
    },
    complete: ({ type, path, diff }) => ({
      type: textValue(type) || 'update_file',
      path: textValue(path),
      ...(type !== 'delete_file' && { diff: textValue(diff) }),
    }),
  },
  tool_search: {
    item: 'tool_search_call',
    field: 'arguments',
    description: 'Searches for more tools. Those that it finds can be called from then on.',
    parameters: { type: 'object', properties: { query: TEXT, limit: { type: 'integer' } }, required: ['query'] },
    more: { execution: 'client' },
    complete: (input) => input,
  },
};

const NAMES = Object.keys(OWN_TOOLS) as OwnToolName[];

/** A number, also one that is kept as the model wrote it: `1000.0`. */
function numberIn(value: unknown): number | undefined {
  return optionalNumber(parseJson(JSON.stringify(value ?? null)));
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/**
 * A declared tool that OpenAI defines and the client runs, as a function that every engine can call. Undefined for any
 * other, also for a shell in a container of OpenAI.
 */
export function ownTool(tool: Json): Tool | undefined {
  const name = NAMES.find((one) => one === tool.type);
  if (name === undefined || !isOfClient(tool)) return undefined;
  const { description, parameters } = OWN_TOOLS[name];
  return {
    name,
    description: textValue(tool.description) || description,
    parameters: isObject(tool.parameters) ? tool.parameters : parameters,
    strict: false,
    origin: { type: 'own', name },
  };
}

function isOfClient(tool: Json): boolean {
  if (tool.type === 'tool_search') return tool.execution === 'client';
  return !isShellOfServer(tool);
}

/** Whether a tool is a shell in a container of OpenAI. */
export function isShellOfServer({ type, environment }: Json): boolean {
  return type === 'shell' && isObject(environment) && environment.type !== 'local';
}

/** The tool whose calls are items of this type. */
export function ownToolOfCall(type: unknown): { name: OwnToolName; field: string } | undefined {
  const name = NAMES.find((one) => OWN_TOOLS[one].item === type);
  return name === undefined ? undefined : { name, field: OWN_TOOLS[name].field };
}

/** A call of such a tool as its own item; while it is in progress, with nothing to do. */
export function renderOwnCall({ id, callId, arguments: text }: CallItem, name: OwnToolName, status: string): Json {
  const { item, field, more, complete } = OWN_TOOLS[name];
  const input = status === 'in_progress' ? {} : inputOf(text);
  return { id, type: item, status, call_id: callId, [field]: complete(input), ...more };
}
