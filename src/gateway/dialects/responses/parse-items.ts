import { isObject, type Json } from '../../../lib/json.ts';
import { DialectError, invalid, unsupported } from '../errors/dialect-error.ts';
import { arrayAt, excerpt, objectAt, objectsOf, optionalString, stringAt, textValue } from '../fields.ts';
import { decodeReasoning } from '../encrypted-content.ts';
import { argumentsOf } from '../tool-arguments.ts';
import type { HistoryItem, ParsedItem, Part, ReasoningItem, Step } from '../types.ts';
import { asksToCompact, compactQuestion } from './compaction.ts';
import { wireName } from './tools.ts';
import { textFile } from '../text-files.ts';
import { parseVendorItem } from './vendor-items.ts';

export type References = ReadonlyMap<string, readonly HistoryItem[]>;

/** The `input` of a responses body in the internal form. Throws DialectError. */
export function parseInput(input: unknown, references: References | undefined): HistoryItem[] {
  return readInput(input, references, parseItem);
}

/** The same to be stored: what is for servers of responses stays as it is. Throws DialectError. */
export function inputToStore(input: unknown, references: References | undefined): HistoryItem[] {
  return readInput(input, references, (item, path) => {
    try {
      return parseItem(item, path);
    } catch (error) {
      if (error instanceof DialectError) return [givenItem(item)];
      throw error;
    }
  });
}

export function givenItem(item: Json): HistoryItem {
  return { kind: 'given', item, ...idOf(item) };
}

/** A stored item in the internal form. Throws DialectError for what it has no form for. */
export function parseStored(item: HistoryItem): readonly ParsedItem[] {
  return item.kind === 'given' ? parseItem(item.item, 'previous_response_id') : [item];
}

/** Reads references to stored items. Throws DialectError for one that comes again, or is of no stored item. */
export function referenceReader(references: References | undefined) {
  const referred = new Set<string>();
  return (item: Json, path: string): readonly HistoryItem[] => {
    // Without repeats, references are bounded by what the store has of a key. OpenAI refuses repeats too.
    const id = stringAt(item.id, `${path}.id`);
    if (referred.has(id)) throw invalid(`${path}.id`, 'expected each item to be referenced once');
    referred.add(id);
    return resolve(id, path, references);
  };
}

function readInput(
  input: unknown,
  references: References | undefined,
  read: (item: Json, path: string) => readonly HistoryItem[],
): HistoryItem[] {
  if (input === undefined || input === null) return [];
  if (typeof input === 'string') return [{ kind: 'message', role: 'user', parts: [{ type: 'text', text: input }] }];
  const refer = referenceReader(references);
  const all = arrayAt(input, 'input');
  const question = asksToCompact(input) ? [compactQuestion()] : [];
  const items = all.slice(0, all.length - question.length).flatMap((value, position) => {
    const path = `input[${position}]`;
    const item = objectAt(value, path);
    return item.type === 'item_reference' ? refer(item, path) : read(item, path);
  });
  return [...items, ...question];
}

function parseItem(item: Json, path: string): readonly ParsedItem[] {
  const id = idOf(item);
  switch (item.type) {
    case undefined:
    case 'message':
      return parseMessageItem(item, path);
    case 'function_call': {
      const name = wireName(optionalString(item.namespace), stringAt(item.name, `${path}.name`));
      const callId = stringAt(item.call_id, `${path}.call_id`);
      const { arguments: given } = item;
      const text = isObject(given) ? argumentsOf(given) : stringAt(given, `${path}.arguments`);
      return [{ kind: 'call', callId, name, arguments: text, ...id }];
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
    case 'additional_tools':
      return [
        { kind: 'tools', tools: arrayAt(item.tools, `${path}.tools`).map((tool) => objectAt(tool, path)), ...id },
      ];
    case 'agent_message':
      return [{ kind: 'message', role: 'user', parts: parseAgentMessage(item, `${path}.content`), ...id }];
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

/** What OpenAI encrypts: a token of Fernet. */
const SEALED = /^gAAAA[\w-]{60,}={0,2}$/;

/**
 * A message from one agent of Codex to another. Its `encrypted_content` is what the model wrote, in plain, unless the
 * model is OpenAI's.
 */
function parseAgentMessage({ author, recipient, content }: Json, path: string): Part[] {
  const head = `Message from ${excerpt(author)} to ${excerpt(recipient)}:`;
  const parts = typeof content === 'string' ? [{ type: 'input_text', text: content }] : (content ?? []);
  const read = arrayAt(parts, path).flatMap((value, position): Part[] => {
    const part = objectAt(value, `${path}[${position}]`);
    if (part.type !== 'encrypted_content') return parseContent([part], path);
    const text = stringAt(part.encrypted_content, `${path}[${position}].encrypted_content`);
    return [{ type: 'text', text: SEALED.test(text) ? 'The text is encrypted, and cannot be read here.' : text }];
  });
  return [{ type: 'text', text: head }, ...read];
}

function idOf(item: Json): { id?: string } {
  return typeof item.id === 'string' ? { id: item.id } : {};
}

function parseMessageItem(item: Json, path: string): Step[] {
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

function parseAssistant(content: unknown, path: string, id: { id?: string }): Step[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content, ...id }];
  return arrayAt(content, path).flatMap((value, position): Step[] => {
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
        return textFile(part, at);
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
