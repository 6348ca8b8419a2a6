import { isObject, type Json } from '../../../lib/json.ts';
import { type AllowedTools, parseAllowedTools } from '../allowed-tools.ts';
import { invalid, unsupported } from '../errors/dialect-error.ts';
import {
  arrayAt,
  excerpt,
  objectAt,
  objectsOf,
  OF_ENGINES,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
  parseStop,
  pick,
  stringAt,
} from '../fields.ts';
import { textFile } from '../text-files.ts';
import { reasoningField, thinkingOf } from './parse-response.ts';
import type { IrRequest, OutputFormat, Part, Step, Tool, ToolChoice } from '../types.ts';

const CHAT_SAMPLING = ['temperature', 'top_p', 'top_k'] as const;
const CHAT_ONLY = [
  ...OF_ENGINES,
  'user',
  'metadata',
  'service_tier',
  'prompt_cache_key',
  'safety_identifier',
  'verbosity',
] as const;

/** A chat/completions body in the internal form. Throws DialectError. */
export function parseChatRequest(body: Json): IrRequest {
  refuseFields(body);
  const messages = arrayAt(body.messages, 'messages');
  const { toolChoice, among } = parseToolChoice(body.tool_choice);
  const tools = parseTools(body.tools);
  return {
    stream: body.stream === true,
    items: messages.flatMap((message, position) => parseMessage(message, `messages[${position}]`)),
    tools: among?.(tools) ?? tools,
    toolChoice,
    parallel: optionalBoolean(body.parallel_tool_calls),
    maxTokens: optionalNumber(body.max_completion_tokens) ?? optionalNumber(body.max_tokens),
    stop: parseStop(body.stop),
    format: parseFormat(optionalObject(body.response_format, 'response_format')),
    reasoning: parseReasoning(body),
    sampling: pick(body, CHAT_SAMPLING),
    chatOnly: pick(body, CHAT_ONLY),
  };
}

/** OpenAI's field, those of templates, and those of OpenRouter (`reasoning`), Z.ai (`thinking`) and Alibaba (`enable_thinking`). */
function parseReasoning(body: Json): IrRequest['reasoning'] {
  const [kwargs, reasoning, thinking] = [body.chat_template_kwargs, body.reasoning, body.thinking].map((value) =>
    isObject(value) ? value : {},
  ) as [Json, Json, Json];
  const effort = optionalString(body.reasoning_effort) ?? optionalString(reasoning.effort);
  const { type } = thinking;
  const enabled =
    optionalBoolean(kwargs.enable_thinking) ??
    optionalBoolean(kwargs.thinking) ??
    optionalBoolean(body.enable_thinking) ??
    optionalBoolean(reasoning.enabled) ??
    (typeof type === 'string' ? type !== 'disabled' : undefined);
  const budget =
    optionalNumber(body.thinking_budget) ??
    optionalNumber(thinking.budget_tokens) ??
    optionalNumber(reasoning.max_tokens);
  if (effort === 'none') return { enabled: false };
  if ([effort, enabled, budget].every((one) => one === undefined)) return undefined;
  return { effort, enabled: enabled ?? (budget === undefined ? undefined : true), budget };
}

function parseMessage(value: unknown, path: string): Step[] {
  const message = objectAt(value, path);
  switch (message.role) {
    case 'system':
    case 'developer':
      return [{ kind: 'message', role: 'system', parts: parseParts(message.content, `${path}.content`) }];
    case 'user':
      return [{ kind: 'message', role: 'user', parts: parseParts(message.content, `${path}.content`) }];
    case 'assistant':
      return parseAssistant(message, path);
    case 'tool':
      return [
        {
          kind: 'result',
          callId: stringAt(message.tool_call_id, `${path}.tool_call_id`),
          parts: parseParts(message.content, `${path}.content`),
        },
      ];
    case 'function': {
      const callId = idOfFunction(stringAt(message.name, `${path}.name`));
      return [{ kind: 'result', callId, parts: parseParts(message.content, `${path}.content`) }];
    }
    default:
      throw invalid(`${path}.role`, "expected one of 'system', 'developer', 'user', 'assistant' and 'tool'");
  }
}

function parseAssistant(message: Json, path: string): Step[] {
  if (isObject(message.audio) && !message.content)
    throw unsupported(`${path}.audio`, 'OpenAI keeps what was said. Send its transcript as content.');
  const items: Step[] = [];
  const reasoning = reasoningField(message);
  if (reasoning) items.push({ kind: 'reasoning', text: reasoning });
  if (typeof message.content === 'string') {
    if (message.content !== '') items.push({ kind: 'text', text: message.content });
  } else if (message.content !== null && message.content !== undefined) {
    for (const [position, value] of arrayAt(message.content, `${path}.content`).entries()) {
      const part = objectAt(value, `${path}.content[${position}]`);
      if (part.type === 'refusal')
        items.push({ kind: 'refusal', text: stringAt(part.refusal, `${path}.content[${position}].refusal`) });
      else if (part.type === 'thinking') items.push({ kind: 'reasoning', text: thinkingOf(part) });
      else items.push({ kind: 'text', text: stringAt(part.text, `${path}.content[${position}].text`) });
    }
  }
  if (typeof message.refusal === 'string' && message.refusal !== '')
    items.push({ kind: 'refusal', text: message.refusal });
  const calls = message.tool_calls ?? [];
  for (const [position, value] of arrayAt(calls, `${path}.tool_calls`).entries()) {
    items.push(parseCall(objectAt(value, `${path}.tool_calls[${position}]`), `${path}.tool_calls[${position}]`));
  }
  if (isObject(message.function_call)) {
    const name = stringAt(message.function_call.name, `${path}.function_call.name`);
    items.push(callOf(idOfFunction(name), name, message.function_call));
  }
  return items;
}

/** Calls of functions, which came before tools, have no ids. */
function idOfFunction(name: string): string {
  return `call_${name}`;
}

function parseCall(call: Json, path: string): Step {
  const callId = stringAt(call.id, `${path}.id`);
  if (call.type === 'custom') {
    const custom = objectAt(call.custom, `${path}.custom`);
    const input = stringAt(custom.input, `${path}.custom.input`);
    return callOf(callId, stringAt(custom.name, `${path}.custom.name`), { arguments: { input } });
  }
  const fn = objectAt(call.function, `${path}.function`);
  return callOf(callId, stringAt(fn.name, `${path}.function.name`), fn);
}

function callOf(callId: string, name: string, { arguments: given }: Json): Step {
  return { kind: 'call', callId, name, arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}) };
}

function parseParts(content: unknown, path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (content === null || content === undefined) return [];
  return arrayAt(content, path).map((value, position) => {
    const part = objectAt(value, `${path}[${position}]`);
    if (part.type === 'text') return { type: 'text', text: stringAt(part.text, `${path}[${position}].text`) };
    if (part.type === 'file') return fileText(part, `${path}[${position}]`);
    if (part.type !== 'image_url') {
      throw unsupported(
        `${path}[${position}].type`,
        `Content of type '${excerpt(part.type)}' is not supported. Send text or image_url.`,
      );
    }
    const image = objectAt(part.image_url, `${path}[${position}].image_url`);
    const detail = optionalString(image.detail);
    return { type: 'image', url: stringAt(image.url, `${path}[${position}].image_url.url`), ...(detail && { detail }) };
  });
}

function fileText(part: Json, path: string): Part & { type: 'text' } {
  return textFile(objectAt(part.file, `${path}.file`), `${path}.file`);
}

/** Messages in which text files are text: engines that speak this dialect know no files. Throws DialectError for others. */
export function withTextOfFiles(messages: unknown): unknown {
  const isFile = ({ type }: Json): boolean => type === 'file';
  if (!objectsOf(messages).some(({ content }) => objectsOf(content).some(isFile))) return messages;
  return arrayAt(messages, 'messages').map((message, position) => {
    if (!isObject(message) || !Array.isArray(message.content)) return message;
    const content = (message.content as unknown[]).map((part, index) =>
      isObject(part) && isFile(part) ? fileText(part, `messages[${position}].content[${index}]`) : part,
    );
    return { ...message, content };
  });
}

function parseTools(value: unknown): Tool[] {
  if (value === undefined || value === null) return [];
  return arrayAt(value, 'tools').map((entry, position) => {
    const path = `tools[${position}]`;
    const tool = objectAt(entry, path);
    if (tool.type !== 'function')
      throw unsupported(`${path}.type`, `Tools of type '${excerpt(tool.type)}' are not supported. Declare a function.`);
    const fn = objectAt(tool.function, `${path}.function`);
    return {
      name: stringAt(fn.name, `${path}.function.name`),
      description: optionalString(fn.description),
      parameters: isObject(fn.parameters) ? fn.parameters : { type: 'object', properties: {} },
      // The default of chat is the opposite of that of responses, so the internal form always has the flag.
      strict: fn.strict === true,
    };
  });
}

function parseToolChoice(value: unknown): { toolChoice?: ToolChoice } & Partial<AllowedTools> {
  if (value === undefined || value === null) return {};
  if (value === 'auto' || value === 'none' || value === 'required') return { toolChoice: { mode: value } };
  const choice = objectAt(value, 'tool_choice');
  if (choice.type === 'function') {
    const fn = objectAt(choice.function, 'tool_choice.function');
    return { toolChoice: { mode: 'tool', name: stringAt(fn.name, 'tool_choice.function.name') } };
  }
  if (choice.type === 'allowed_tools') return parseAllowedTools(choice.allowed_tools, 'tool_choice.allowed_tools');
  throw unsupported(
    'tool_choice',
    `tool_choice of type '${excerpt(choice.type)}' is not supported. Send a mode, a function or allowed_tools.`,
  );
}

function parseFormat(value: Json | undefined): OutputFormat | undefined {
  if (value === undefined || value.type === 'text') return undefined;
  if (value.type === 'json_object') return { type: 'json_object' };
  if (value.type !== 'json_schema')
    throw unsupported(
      'response_format',
      `response_format '${excerpt(value.type)}' is not supported. Send text, json_object or json_schema.`,
    );
  const schema = objectAt(value.json_schema, 'response_format.json_schema');
  return {
    type: 'json_schema',
    name: optionalString(schema.name),
    description: optionalString(schema.description),
    schema: isObject(schema.schema) ? schema.schema : {},
    strict: optionalBoolean(schema.strict),
  };
}

/** What a client of chat asks for and no other dialect has a field for, with what it should do instead. */
const REFUSALS: Readonly<Record<string, { isAsked: (value: unknown) => boolean; words: string }>> = {
  n: {
    isAsked: (value) => (optionalNumber(value) ?? 1) > 1,
    words: 'This engine gives one choice per request. Send n = 1.',
  },
  logprobs: {
    isAsked: (value) => value === true,
    words: 'This engine gives no log probabilities. Remove the field.',
  },
  functions: { isAsked: isSet, words: "This engine takes only 'tools'. Send the functions as tools." },
  function_call: { isAsked: isSet, words: "This engine takes only 'tool_choice'. Send the choice there." },
  audio: { isAsked: isSet, words: 'This engine answers only with text. Remove the field.' },
  modalities: {
    isAsked: (value) => Array.isArray(value) && value.some((one) => one !== 'text'),
    words: "This engine answers only with text. Send ['text'].",
  },
  web_search_options: {
    isAsked: isSet,
    words: 'Web search runs at OpenAI and is not available here. Remove the field, or declare a function.',
  },
  logit_bias: {
    isAsked: (value) => isObject(value) && Object.keys(value).length > 0,
    words: 'This engine takes no bias of tokens. Remove the field.',
  },
};

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Refuses a chat body that cannot be said in another dialect without a loss. Throws DialectError. */
function refuseFields(body: Json): void {
  for (const [field, { isAsked, words }] of Object.entries(REFUSALS))
    if (isAsked(body[field])) throw unsupported(field, words);
}
