import type { Json } from '../../../lib/json.ts';
import { DialectError, invalid, unsupported } from '../errors/dialect-error.ts';
import { arrayAt, excerpt, objectAt, objectsOf, optionalString, stringAt, textValue } from '../fields.ts';
import { decodeReasoning } from '../encrypted-content.ts';
import type { HistoryItem, Part, ReasoningItem } from '../types.ts';
import { wireName } from './tools.ts';
import { parseVendorItem } from './vendor-items.ts';

export type References = ReadonlyMap<string, readonly HistoryItem[]>;

/** The `input` of a responses body in the internal form. Throws DialectError. */
export function parseInput(input: unknown, references: References | undefined): HistoryItem[] {
  if (input === undefined || input === null) return [];
  if (typeof input === 'string') return [{ kind: 'message', role: 'user', parts: [{ type: 'text', text: input }] }];
  const referred = new Set<string>();
  return arrayAt(input, 'input').flatMap((value, position) => {
    const path = `input[${position}]`;
    const item = objectAt(value, path);
    if (item.type === 'item_reference') {
      // Without repeats, references are bounded by what the store has of a key. OpenAI refuses repeats too.
      const id = stringAt(item.id, `${path}.id`);
      if (referred.has(id)) throw invalid(`${path}.id`, 'expected each item to be referenced once');
      referred.add(id);
      return resolve(id, path, references);
    }
    return parseItem(item, path);
  });
}

function parseItem(item: Json, path: string): readonly HistoryItem[] {
  const id = idOf(item);
  switch (item.type) {
    case undefined:
    case 'message':
      return parseMessageItem(item, path);
    case 'function_call': {
      const name = wireName(optionalString(item.namespace), stringAt(item.name, `${path}.name`));
      const callId = stringAt(item.call_id, `${path}.call_id`);
      return [{ kind: 'call', callId, name, arguments: stringAt(item.arguments, `${path}.arguments`), ...id }];
    }
    case 'custom_tool_call': {
      const name = wireName(optionalString(item.namespace), stringAt(item.name, `${path}.name`));
      const callId = stringAt(item.call_id, `${path}.call_id`);
      const input = stringAt(item.input, `${path}.input`);
      return [{ kind: 'call', callId, name, arguments: JSON.stringify({ input }), ...id }];
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return [
        {
          kind: 'result',
          callId: stringAt(item.call_id, `${path}.call_id`),
          parts: parseContent(item.output, `${path}.output`),
          ...id,
        },
      ];
    case 'reasoning':
      return [parseReasoningItem(item)];
    default: {
      const items = parseVendorItem(item, path);
      if (items !== undefined) return items;
      throw unsupported(`${path}.type`, `Input items of type '${excerpt(item.type)}' are not supported.`);
    }
  }
}

function resolve(id: string, path: string, references: References | undefined): readonly HistoryItem[] {
  const found = references?.get(id);
  if (found !== undefined) return found;
  throw new DialectError({
    status: 404,
    message: `Item with id '${id}' not found. Items are stored for a limited time, and only when 'store' is not false. Send the item itself.`,
    code: 'not_found',
    param: `${path}.id`,
  });
}

function idOf(item: Json): { id?: string } {
  return typeof item.id === 'string' ? { id: item.id } : {};
}

function parseMessageItem(item: Json, path: string): HistoryItem[] {
  const id = idOf(item);
  if (item.role === 'assistant') return parseAssistant(item.content, `${path}.content`, id);
  if (item.role === 'user') {
    return [{ kind: 'message', role: 'user', parts: parseContent(item.content, `${path}.content`), ...id }];
  }
  if (item.role !== 'system' && item.role !== 'developer') {
    throw invalid(`${path}.role`, "expected 'user', 'assistant', 'system' or 'developer'");
  }
  return [{ kind: 'message', role: 'system', parts: parseContent(item.content, `${path}.content`), ...id }];
}

function parseAssistant(content: unknown, path: string, id: { id?: string }): HistoryItem[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content, ...id }];
  return arrayAt(content, path).flatMap((value, position): HistoryItem[] => {
    const part = objectAt(value, `${path}[${position}]`);
    if (part.type === 'refusal') {
      return [{ kind: 'refusal', text: stringAt(part.refusal, `${path}[${position}].refusal`), ...id }];
    }
    const text = stringAt(part.text, `${path}[${position}].text`);
    return text === '' ? [] : [{ kind: 'text', text, ...id }];
  });
}

/** Input content: a string, or a list of input_text, input_image and input_file. */
function parseContent(content: unknown, path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return arrayAt(content, path).map((value, position) => {
    const at = `${path}[${position}]`;
    const part = objectAt(value, at);
    switch (part.type) {
      case 'input_text':
      case 'output_text':
      case 'text':
        return { type: 'text', text: stringAt(part.text, `${at}.text`) };
      case 'input_image': {
        if (typeof part.image_url !== 'string') {
          throw unsupported(`${at}.image_url`, 'Uploaded files are not available. Send images as a URL or data URL.');
        }
        const detail = optionalString(part.detail);
        return { type: 'image', url: part.image_url, ...(detail && { detail }) };
      }
      case 'input_file':
        return parseFile(part, at);
      default:
        throw unsupported(
          `${at}.type`,
          `Content of type '${excerpt(part.type)}' is not supported. Send input_text or input_image.`,
        );
    }
  });
}

/** A reasoning item: its text if the client kept it, else the text that the gateway put into `encrypted_content`. */
export function parseReasoningItem(item: Json): ReasoningItem {
  const token = optionalString(item.encrypted_content);
  const decoded = token ? decodeReasoning(token) : { text: '' };
  const content = objectsOf(item.content).map((part) => textValue(part.text));
  const summary = objectsOf(item.summary).map((part) => textValue(part.text));
  const text = content.join('') || decoded.text || summary.join('\n\n');
  return { kind: 'reasoning', ...decoded, text, ...idOf(item) };
}

const TEXT_TYPES = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh))(?:;[^,]*)?$/i;
/** SVG is a picture to most, and text. Other images are input_image. */
const DATA_URL = /^data:([^,]*?)(;base64)?,/i;

/** A file in the input: a text file becomes text, with its name before it. Throws DialectError for any other. */
function parseFile(part: Json, path: string): Part {
  const data = optionalString(part.file_data);
  if (data === undefined) {
    const given = part.file_id === undefined ? 'file_url' : 'file_id';
    const why =
      given === 'file_id' ? 'Uploaded files are not available.' : 'The gateway does not fetch files from addresses.';
    throw unsupported(`${path}.${given}`, `${why} Send text files as 'file_data', a base64 data URL.`);
  }
  const head = DATA_URL.exec(data);
  if (head === null) throw unsupported(`${path}.file_data`, "Send 'file_data' as a base64 data URL.");
  const [prefix, type = '', base64] = head;
  if (!TEXT_TYPES.test(type)) {
    throw unsupported(
      `${path}.file_data`,
      `Files of type '${excerpt(type)}' are not supported, only text files. Extract the text in the client.`,
    );
  }
  const body = data.slice(prefix.length);
  const text = base64 === undefined ? decoded(body, path) : Buffer.from(body, 'base64').toString('utf8');
  const name = optionalString(part.filename);
  return { type: 'text', text: name === undefined ? text : `${name}:\n${text}` };
}

function decoded(body: string, path: string): string {
  try {
    return decodeURIComponent(body);
  } catch {
    throw unsupported(`${path}.file_data`, "Send 'file_data' as a base64 data URL.");
  }
}
