import { isObject, type Json } from '../../../lib/json.ts';
import { invalid, unsupported } from '../errors/dialect-error.ts';
import {
  arrayAt,
  excerpt,
  objectAt,
  optionalNumber,
  optionalObject,
  optionalString,
  pick,
  OF_ENGINES,
  stringAt,
  textValue,
} from '../fields.ts';
import { withoutBillingLine } from '../inspect/billing-line.ts';
import { isTextType } from '../text-files.ts';
import type { Quirks } from '../quirks.ts';
import { decodeOwn } from '../encrypted-content.ts';
import { argumentsOf } from '../tool-arguments.ts';
import type { Step, IrRequest, Part, Tool, ToolChoice } from '../types.ts';
import { clientTool } from './client-tools.ts';
import { isSummary, parseVendorBlock, unanswered } from './vendor-blocks.ts';

export const MESSAGES_SAMPLING = ['temperature', 'top_p', 'top_k'] as const;

interface MessagesOptions {
  quirks: Quirks;
  joinsSystem?: string | undefined;
}

/** A messages body in the internal form. Throws DialectError. */
export function parseMessagesRequest(body: Json, { quirks, joinsSystem }: MessagesOptions): IrRequest {
  refuseMcpServers(body);
  const messages = arrayAt(body.messages, 'messages');
  const output = optionalObject(body.output_config, 'output_config');
  const choice = optionalObject(body.tool_choice, 'tool_choice');
  const toolChoice = parseToolChoice(choice);
  const tools = parseTools(body.tools, toolChoice);
  const said = sinceSummary(messages.flatMap((message, position) => parseMessage(message, `messages.${position}`)));
  return {
    stream: body.stream === true,
    items: [...parseSystem(body.system, joinsSystem), ...said],
    tools,
    toolChoice,
    parallel: choice?.disable_parallel_tool_use === true ? false : undefined,
    maxTokens: optionalNumber(body.max_tokens),
    stop: arrayAt(body.stop_sequences ?? [], 'stop_sequences').map((value, position) =>
      stringAt(value, `stop_sequences.${position}`),
    ),
    // Anthropic takes an empty answer at the end, which begins nothing.
    continuesAnswer: isAnswer(messages.at(-1)) && said.at(-1)?.kind === 'text',
    // The name that the field had as a beta.
    format: parseFormat(optionalObject(output?.format ?? body.output_format, 'output_config.format')),
    reasoning: parseThinking(optionalObject(body.thinking, 'thinking'), optionalString(output?.effort), quirks),
    sampling: pick(body, MESSAGES_SAMPLING),
    chatOnly: pick(body, OF_ENGINES),
  };
}

/** A conversation from its last summary on, which stands for what was before it. */
function sinceSummary(items: readonly Step[]): Step[] {
  const last = items.findLastIndex(isSummary);
  return last === -1 ? [...items] : items.slice(last);
}

/** Refuses what neither the gateway nor an engine does: engines leave the field out. Throws DialectError. */
export function refuseMcpServers({ mcp_servers: servers }: Json): void {
  if (!Array.isArray(servers) || servers.length === 0) return;
  throw unsupported('mcp_servers', 'The gateway does not connect to MCP servers. Connect to them from the client.');
}

function isAnswer(message: unknown): boolean {
  return isObject(message) && message.role === 'assistant';
}

function parseSystem(system: unknown, between: string | undefined): Step[] {
  if (system === undefined || system === null) return [];
  const parts = typeof system === 'string' ? [{ type: 'text' as const, text: system }] : parseParts(system, 'system');
  const kept = parts.flatMap((part) => {
    if (part.type !== 'text') throw invalid('system', 'expected text blocks');
    return withoutBillingLine(part.text) || [];
  });
  if (kept.length === 0) return [];
  const texts = between === undefined ? kept : [kept.join(between)];
  return [{ kind: 'message', role: 'system', parts: texts.map((text) => ({ type: 'text', text })) }];
}

function parseMessage(value: unknown, path: string): Step[] {
  const message = objectAt(value, path);
  if (message.role === 'assistant') return parseAssistant(message.content, `${path}.content`);
  if (message.role === 'system') {
    return [{ kind: 'message', role: 'system', parts: parseParts(message.content, `${path}.content`) }];
  }
  if (message.role !== 'user') throw invalid(`${path}.role`, "expected 'user', 'assistant' or 'system'");
  return parseUser(message.content, `${path}.content`);
}

function parseUser(content: unknown, path: string): Step[] {
  if (typeof content === 'string') return [{ kind: 'message', role: 'user', parts: [{ type: 'text', text: content }] }];
  const results: Step[] = [];
  const parts: Part[] = [];
  for (const [position, value] of arrayAt(content, path).entries()) {
    const block = objectAt(value, `${path}.${position}`);
    if (block.type === 'tool_result') results.push(parseResult(block, `${path}.${position}`));
    else for (const part of parsePart(block, `${path}.${position}`)) parts.push(part);
  }
  // Results answer the calls of the turn before, so they come first, wherever the client put them.
  return parts.length === 0 ? results : [...results, { kind: 'message', role: 'user', parts }];
}

function parseResult(block: Json, path: string): Step {
  return {
    kind: 'result',
    callId: stringAt(block.tool_use_id, `${path}.tool_use_id`),
    parts: block.content === undefined || block.content === null ? [] : parseParts(block.content, `${path}.content`),
    ...(block.is_error === true && { isError: true }),
  };
}

function parseAssistant(content: unknown, path: string): Step[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }];
  const blocks = arrayAt(content, path);
  const items = blocks.flatMap((value, position): Step[] => {
    const at = `${path}.${position}`;
    const block = objectAt(value, at);
    switch (block.type) {
      case 'text': {
        const text = stringAt(block.text, `${at}.text`);
        return text === '' ? [] : [{ kind: 'text', text }];
      }
      case 'thinking':
        return [parseThinkingBlock(block, at)];
      case 'redacted_thinking':
        return [parseRedacted(textValue(block.data))];
      case 'tool_use':
        return [
          {
            kind: 'call',
            callId: stringAt(block.id, `${at}.id`),
            name: stringAt(block.name, `${at}.name`),
            arguments: argumentsOf(block.input),
          },
        ];
      case 'fallback':
      case 'mcp_tool_listing':
        // Which model answered at Anthropic, and which tools a server there has.
        return [];
      default: {
        const item = parseVendorBlock(block, at);
        if (item !== undefined) return [item];
        throw unsupported(at, `Assistant content of type '${excerpt(block.type)}' is not supported by this engine.`);
      }
    }
  });
  return unanswered(blocks, items);
}

function parseThinkingBlock(block: Json, at: string): Step {
  const signature = optionalString(block.signature);
  // What is signed may not be shown.
  const text = signature ? textValue(block.thinking) : stringAt(block.thinking, `${at}.thinking`);
  if (!signature) return { kind: 'reasoning', text };
  // The gateway's own signatures carry data. Any other is passed on unread.
  return { kind: 'reasoning', ...(decodeOwn(signature) ?? { signature }), text };
}

function parseRedacted(data: string): Step {
  return { kind: 'reasoning', text: '', ...(decodeOwn(data) ?? { redacted: data }) };
}

/** The parts of text, image and plain-text document blocks. */
function parseParts(content: unknown, path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return arrayAt(content, path).flatMap((value, position) =>
    parsePart(objectAt(value, `${path}.${position}`), `${path}.${position}`),
  );
}

function parsePart(block: Json, path: string): Part[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: stringAt(block.text, `${path}.text`) }];
    case 'image':
      return [{ type: 'image', url: imageUrl(objectAt(block.source, `${path}.source`), path) }];
    case 'document':
      return parseDocument(block, path);
    case 'search_result':
      return [
        { type: 'text', text: `${textValue(block.title)} (${textValue(block.source)})` },
        ...parseParts(block.content, `${path}.content`),
      ];
    case 'tool_reference':
      return [{ type: 'text', text: `Tool: ${excerpt(block.tool_name)}` }];
    default:
      throw unsupported(path, `Content of type '${excerpt(block.type)}' is not supported by this engine.`);
  }
}

function imageUrl(source: Json, path: string): string {
  if (source.type === 'url') return stringAt(source.url, `${path}.source.url`);
  if (source.type === 'base64') {
    const data = stringAt(source.data, `${path}.source.data`);
    return `data:${stringAt(source.media_type, `${path}.source.media_type`)};base64,${data}`;
  }
  throw unsupported(`${path}.source`, 'Uploaded files are not available. Send images as base64 or url.');
}

function parseDocument(block: Json, path: string): Part[] {
  const source = objectAt(block.source, `${path}.source`);
  const title = optionalString(block.title);
  const head: Part[] = title ? [{ type: 'text', text: title }] : [];
  if (source.type === 'text') return [...head, { type: 'text', text: stringAt(source.data, `${path}.source.data`) }];
  if (source.type === 'content') return [...head, ...parseParts(source.content, `${path}.source.content`)];
  if (source.type === 'base64' && isTextType(textValue(source.media_type))) {
    const text = Buffer.from(stringAt(source.data, `${path}.source.data`), 'base64').toString('utf8');
    return [...head, { type: 'text', text }];
  }
  throw unsupported(
    `${path}.source`,
    'Only plain-text documents are supported. Extract the text of a PDF in the client.',
  );
}

/** Declared beside the tools of the client, which can do without unless it is the one that is asked for. */
const WEB_SEARCH = /^web_search_\d+$/;

function parseTools(value: unknown, choice: ToolChoice | undefined): Tool[] {
  if (value === undefined || value === null) return [];
  const all = arrayAt(value, 'tools').map((entry, position) => ({
    tool: objectAt(entry, `tools.${position}`),
    position,
  }));
  const kept = all.filter(({ tool }) => !WEB_SEARCH.test(textValue(tool.type)) || isWanted(tool, choice));
  return (kept.length === 0 ? all : kept).map(({ tool, position }) => {
    const path = `tools.${position}`;
    const known = clientTool(tool, path);
    if (known !== undefined) return known;
    return {
      name: stringAt(tool.name, `${path}.name`),
      description: optionalString(tool.description),
      parameters: objectAt(tool.input_schema, `${path}.input_schema`),
      strict: tool.strict === true,
    };
  });
}

function isWanted({ name }: Json, choice: ToolChoice | undefined): boolean {
  return choice?.mode === 'tool' && choice.name === name;
}

function parseToolChoice(choice: Json | undefined): ToolChoice | undefined {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case 'auto':
      return { mode: 'auto' };
    case 'any':
      return { mode: 'required' };
    case 'none':
      return { mode: 'none' };
    case 'tool':
      return { mode: 'tool', name: stringAt(choice?.name, 'tool_choice.name') };
    default:
      throw invalid('tool_choice.type', "expected 'auto', 'any', 'tool' or 'none'");
  }
}

function parseFormat(value: Json | undefined): IrRequest['format'] {
  if (value === undefined) return undefined;
  if (value.type !== 'json_schema') throw invalid('output_config.format.type', "expected 'json_schema'");
  // In this dialect every schema is kept to.
  return { type: 'json_schema', schema: objectAt(value.schema, 'output_config.format.schema'), strict: true };
}

/** In this dialect no thinking is asked for by saying nothing. Engines would think, as some models do unasked. */
function parseThinking(
  value: Json | undefined,
  effort: string | undefined,
  { thinksUnasked }: Quirks,
): IrRequest['reasoning'] {
  if (value === undefined && thinksUnasked) return { enabled: false, effort };
  if (value === undefined) return effort === undefined ? undefined : { effort };
  return { enabled: value.type !== 'disabled', effort, budget: optionalNumber(value.budget_tokens) };
}
