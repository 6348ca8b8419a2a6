import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, jsonSchema, streamText, tool, type LanguageModel } from 'ai';
import OpenAI from 'openai';

// The AI SDK warns about model names it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

export interface SdkRequest {
  model: string;
  prompt: string;
  stream: boolean;
  /** Offers the tool `weather` with one string argument, `city`. */
  tool?: 'offered' | 'forced';
  maxTokens?: number;
}

export interface SdkAnswer {
  text: string;
  calls: { name: string; input: unknown }[];
  inputTokens: number | undefined;
  outputTokens: number | undefined;
  /** The `x-berth-route` header of the answer. */
  route: string;
}

export interface SdkCaller {
  client: 'openai' | 'anthropic' | 'ai';
  dialect: 'chat' | 'responses' | 'messages';
  call(request: SdkRequest): Promise<SdkAnswer>;
}

type Answer = Omit<SdkAnswer, 'route'>;

const SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
};

/** The official clients, each with every dialect it speaks, at a base URL that ends in `/api`. */
export function sdkCallers(base: string, apiKey = 'k'): SdkCaller[] {
  let route = '';
  const watchedFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    route = response.headers.get('x-berth-route') ?? '';
    return response;
  };
  const openai = new OpenAI({ apiKey, baseURL: `${base}/v1`, maxRetries: 0, fetch: watchedFetch });
  const anthropic = new Anthropic({ apiKey, baseURL: base, maxRetries: 0, fetch: watchedFetch });
  const aiOpenai = createOpenAI({ apiKey, baseURL: `${base}/v1`, fetch: watchedFetch });
  const aiAnthropic = createAnthropic({ apiKey, baseURL: `${base}/v1`, fetch: watchedFetch });
  const caller = (
    client: SdkCaller['client'],
    dialect: SdkCaller['dialect'],
    run: (request: SdkRequest) => Promise<Answer>,
  ): SdkCaller => ({ client, dialect, call: async (request) => ({ ...(await run(request)), route }) });
  return [
    caller('openai', 'chat', (request) => openaiChat(openai, request)),
    caller('openai', 'responses', (request) => openaiResponses(openai, request)),
    caller('anthropic', 'messages', (request) => anthropicMessages(anthropic, request)),
    caller('ai', 'chat', (request) => aiSdk(aiOpenai.chat(request.model), request)),
    caller('ai', 'responses', (request) => aiSdk(aiOpenai.responses(request.model), request)),
    caller('ai', 'messages', (request) => aiSdk(aiAnthropic(request.model), request)),
  ];
}

async function openaiChat(openai: OpenAI, request: SdkRequest): Promise<Answer> {
  const { model, prompt, tool, maxTokens } = request;
  const body = {
    model,
    messages: [{ role: 'user' as const, content: prompt }],
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(tool && {
      tools: [{ type: 'function' as const, function: { name: 'weather', parameters: SCHEMA, strict: true } }],
    }),
    ...(tool === 'forced' && { tool_choice: { type: 'function' as const, function: { name: 'weather' } } }),
  };
  const completion = request.stream
    ? await openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
    : await openai.chat.completions.create(body);
  const message = completion.choices[0]?.message;
  const calls = (message?.tool_calls ?? []).flatMap((call) =>
    call.type === 'function'
      ? [{ name: call.function.name, input: JSON.parse(call.function.arguments) as unknown }]
      : [],
  );
  const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = completion.usage ?? {};
  return { text: message?.content ?? '', calls, inputTokens, outputTokens };
}

async function openaiResponses(openai: OpenAI, request: SdkRequest): Promise<Answer> {
  const { model, prompt, tool, maxTokens } = request;
  const body = {
    model,
    input: prompt,
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    ...(tool && { tools: [{ type: 'function' as const, name: 'weather', parameters: SCHEMA, strict: true }] }),
    ...(tool === 'forced' && { tool_choice: { type: 'function' as const, name: 'weather' } }),
  };
  const response = request.stream
    ? await openai.responses.stream(body).finalResponse()
    : await openai.responses.create(body);
  const calls = response.output.flatMap((item) =>
    item.type === 'function_call' ? [{ name: item.name, input: JSON.parse(item.arguments) as unknown }] : [],
  );
  const { input_tokens: inputTokens, output_tokens: outputTokens } = response.usage ?? {};
  return { text: response.output_text, calls, inputTokens, outputTokens };
}

async function anthropicMessages(anthropic: Anthropic, request: SdkRequest): Promise<Answer> {
  const { model, prompt, tool, maxTokens = 100 } = request;
  const body: Anthropic.MessageCreateParamsNonStreaming = {
    model,
    max_tokens: maxTokens,
    messages: [{ role: 'user', content: prompt }],
    ...(tool && { tools: [{ name: 'weather', input_schema: SCHEMA }] }),
    ...(tool === 'forced' && { tool_choice: { type: 'tool', name: 'weather' } }),
  };
  const message = request.stream
    ? await anthropic.messages.stream(body).finalMessage()
    : await anthropic.messages.create(body);
  const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  const calls = message.content.flatMap((block) =>
    block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [],
  );
  const { input_tokens: fresh, cache_read_input_tokens: cached, output_tokens: outputTokens } = message.usage;
  return { text, calls, inputTokens: fresh + (cached ?? 0), outputTokens };
}

async function aiSdk(model: LanguageModel, request: SdkRequest): Promise<Answer> {
  const settings = {
    model,
    prompt: request.prompt,
    maxRetries: 0,
    ...(request.maxTokens !== undefined && { maxOutputTokens: request.maxTokens }),
    ...(request.tool && { tools: { weather: tool({ inputSchema: jsonSchema<{ city: string }>(SCHEMA) }) } }),
    ...(request.tool === 'forced' && { toolChoice: { type: 'tool' as const, toolName: 'weather' as const } }),
    onError: ({ error }: { error: unknown }) => {
      throw error;
    },
  };
  const result = request.stream ? streamText(settings) : await generateText(settings);
  if ('consumeStream' in result) await result.consumeStream();
  const [text, toolCalls, usage] = await Promise.all([result.text, result.toolCalls, result.usage]);
  const calls = toolCalls.map((call) => ({ name: call.toolName, input: call.input }));
  return { text, calls, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
}
