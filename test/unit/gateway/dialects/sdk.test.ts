import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, jsonSchema, streamText, tool, type LanguageModel } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANSWER, startServer } from './sdk-server.ts';
import { DIALECTS, WEATHER } from './support.ts';

// The AI SDK warns about model names it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

const INPUTS = ANSWER.calls.map((call) => JSON.parse(call.arguments) as unknown);
const QUESTION = 'What is the weather in Oslo and Rome?';

describe.each(DIALECTS)('official clients over a backend that speaks %s', (upstream) => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let openai: OpenAI;
  let anthropic: Anthropic;
  beforeAll(async () => {
    server = await startServer(upstream);
    openai = new OpenAI({ apiKey: 'k', baseURL: `${server.url}/v1`, maxRetries: 0 });
    anthropic = new Anthropic({ apiKey: 'k', baseURL: server.url, maxRetries: 0 });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const chat = {
    model: 'm',
    messages: [{ role: 'user' as const, content: QUESTION }],
    tools: [{ type: 'function' as const, function: { name: 'weather', parameters: WEATHER, strict: true } }],
  };

  it('openai chat completions, streaming and whole', async () => {
    const stream = openai.chat.completions.stream({ ...chat, stream_options: { include_usage: true } });
    for (const completion of [await stream.finalChatCompletion(), await openai.chat.completions.create(chat)]) {
      const [choice] = completion.choices;
      expect(choice?.finish_reason).toBe('tool_calls');
      expect(choice?.message.content).toBe(ANSWER.text);
      expect(choice?.message.tool_calls).toMatchObject(
        ANSWER.calls.map(({ id, name, arguments: text }) => ({ id, function: { name, arguments: text } })),
      );
      expect(completion.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 7 });
    }
  });

  it('openai responses, streaming and whole', async () => {
    const request = {
      model: 'm',
      input: QUESTION,
      tools: [{ type: 'function' as const, name: 'weather', parameters: WEATHER, strict: true }],
    };
    const streamed = await openai.responses.stream(request).finalResponse();
    for (const response of [streamed, await openai.responses.create(request)]) {
      expect(response.status).toBe('completed');
      expect(response.output_text).toBe(ANSWER.text);
      expect(response.output.map((item) => item.type)).toEqual([
        'reasoning',
        'message',
        'function_call',
        'function_call',
      ]);
      expect(response.output.slice(2)).toMatchObject(ANSWER.calls.map(({ id, ...call }) => ({ call_id: id, ...call })));
      expect(response.usage).toMatchObject({ input_tokens: 100, output_tokens: 7 });
    }
  });

  it('anthropic messages, streaming and whole', async () => {
    const request: Anthropic.MessageCreateParamsNonStreaming = {
      model: 'm',
      max_tokens: 100,
      messages: [{ role: 'user', content: QUESTION }],
      tools: [{ name: 'weather', input_schema: { ...WEATHER, type: 'object' } }],
    };
    const streamed = await anthropic.messages.stream(request).finalMessage();
    for (const message of [streamed, await anthropic.messages.create(request)]) {
      expect(message.stop_reason).toBe('tool_use');
      expect(message.content).toMatchObject([
        { type: 'thinking', thinking: ANSWER.reasoning, signature: expect.stringMatching(/./) as string },
        { type: 'text', text: ANSWER.text },
        { type: 'tool_use', id: 'call_a', name: 'weather', input: INPUTS[0] },
        { type: 'tool_use', id: 'call_b', name: 'weather', input: INPUTS[1] },
      ]);
      expect(message.usage).toMatchObject({ input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 7 });
    }
  });

  it.each(['chat', 'responses', 'messages'] as const)('the AI SDK in %s, streaming and whole', async (dialect) => {
    const provider = createOpenAI({ apiKey: 'k', baseURL: `${server.url}/v1` });
    const models: Record<typeof dialect, LanguageModel> = {
      chat: provider.chat('m'),
      responses: provider.responses('m'),
      messages: createAnthropic({ apiKey: 'k', baseURL: `${server.url}/v1` })('m'),
    };
    const settings = {
      model: models[dialect],
      prompt: QUESTION,
      tools: {
        weather: tool({
          inputSchema: jsonSchema<{ city: string }>({
            ...WEATHER,
            type: 'object',
            properties: { city: { type: 'string' } },
          }),
        }),
      },
      maxRetries: 0,
      onError: ({ error }: { error: unknown }) => {
        throw error;
      },
    };
    const streamed = streamText(settings);
    await streamed.consumeStream();
    const whole = await generateText(settings);
    for (const { text, toolCalls, finishReason, usage } of [
      {
        text: await streamed.text,
        toolCalls: await streamed.toolCalls,
        finishReason: await streamed.finishReason,
        usage: await streamed.usage,
      },
      whole,
    ]) {
      expect(text).toBe(ANSWER.text);
      expect(toolCalls.map((call) => [call.toolCallId, call.input])).toEqual([
        ['call_a', INPUTS[0]],
        ['call_b', INPUTS[1]],
      ]);
      expect(finishReason).toBe('tool-calls');
      expect(usage).toMatchObject({ inputTokens: 100, outputTokens: 7 });
    }
  });
});

describe('an engine that dies in the middle of its answer', () => {
  it('is an error for every official stream helper', async () => {
    await using server = await startServer('chat', true);
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${server.url}/v1`, maxRetries: 0 });
    const anthropic = new Anthropic({ apiKey: 'k', baseURL: server.url, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'x' }];
    await expect(openai.chat.completions.stream({ model: 'm', messages }).done()).rejects.toThrow(/went away/);
    await expect(anthropic.messages.stream({ model: 'm', max_tokens: 9, messages }).done()).rejects.toThrow(
      /went away/,
    );
    const response = await openai.responses.stream({ model: 'm', input: 'x' }).finalResponse();
    expect(response).toMatchObject({ status: 'failed', error: { message: 'the engine went away' } });
  });
});
