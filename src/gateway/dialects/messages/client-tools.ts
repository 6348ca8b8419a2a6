import { type Json, isObject } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { optionalNumber, optionalString } from '../fields.ts';
import type { Tool } from '../types.ts';

/** A tool that Anthropic defines and the client runs. Its models know the schema, other models are told. */
interface ClientTool {
  type: RegExp;
  description: string;
  properties: Json;
  required: readonly string[];
}

const PATH = { type: 'string', description: 'Absolute path of a file or directory.' };
const LINES = {
  type: 'array',
  items: { type: 'integer' },
  description: 'For view: first and last line, counted from 1. -1 as the last line is the end of the file.',
};

/** Anthropic's documentation, "Bash tool", "Text editor tool" and "Memory tool". */
const CLIENT_TOOLS: readonly ClientTool[] = [
  {
    type: /^bash_\d+$/,
    description: 'Runs a command in a bash session that lasts. Gives its output and errors.',
    properties: {
      command: { type: 'string', description: 'The command. Required unless restart is true.' },
      restart: { type: 'boolean', description: 'true: starts the session again.' },
    },
    required: [],
  },
  {
    type: /^text_editor_\d+$/,
    description:
      'Views and edits text files. view shows a file or directory, str_replace replaces old_str, which must be there exactly once, by new_str, create writes file_text to a new file, insert puts insert_text behind the line insert_line.',
    properties: {
      command: { type: 'string', enum: ['view', 'str_replace', 'create', 'insert'] },
      path: PATH,
      view_range: LINES,
      old_str: { type: 'string' },
      new_str: { type: 'string' },
      file_text: { type: 'string' },
      insert_line: { type: 'integer', description: 'The line to insert behind. 0 is the start of the file.' },
      insert_text: { type: 'string' },
    },
    required: ['command', 'path'],
  },
  {
    type: /^memory_\d+$/,
    description: 'Keeps notes in files below /memories: view, create, str_replace, insert, delete and rename.',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      path: PATH,
      view_range: LINES,
      file_text: { type: 'string' },
      old_str: { type: 'string' },
      new_str: { type: 'string' },
      insert_line: { type: 'integer' },
      insert_text: { type: 'string' },
      old_path: PATH,
      new_path: PATH,
    },
    required: ['command'],
  },
];

/** `text_editor_20241022` and `text_editor_20250124` can take back the last edit, and insert `new_str`. */
const OLD_EDITOR = /^text_editor_(?:20241022|20250124)$/;

/**
 * A tool of a type that Anthropic defines, as a function that any engine can call: the client runs it as it runs its
 * own. Undefined for a tool with a schema. Throws DialectError for one that runs at Anthropic.
 */
export function clientTool(tool: Json, path: string): Tool | undefined {
  const { type } = tool;
  if (typeof type !== 'string' || type === 'custom') return undefined;
  const found = CLIENT_TOOLS.find((known) => known.type.test(type));
  const name = optionalString(tool.name);
  if (found === undefined || name === undefined)
    throw unsupported(
      path,
      `The tool '${type}' is not available here: other models do not know it. Declare a tool with an input_schema.`,
    );
  const limit = optionalNumber(tool.max_characters);
  return {
    name,
    description:
      limit === undefined ? found.description : `${found.description} view gives ${limit} characters at most.`,
    parameters: {
      type: 'object',
      properties: OLD_EDITOR.test(type) ? oldEditor(found.properties) : found.properties,
      required: found.required,
    },
    strict: false,
  };
}

function oldEditor({ command, insert_text: _text, ...rest }: Json): Json {
  const commands = isObject(command) && Array.isArray(command.enum) ? (command.enum as unknown[]) : [];
  return { command: { type: 'string', enum: [...commands, 'undo_edit'] }, ...rest };
}
