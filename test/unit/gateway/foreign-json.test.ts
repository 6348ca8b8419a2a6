/** JSON of others has any shape, and members that are named as what every object inherits. No reader breaks by it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bodyToGoOn,
  DialectError,
  errorInAnswer,
  forOutside,
  inspectRequest,
  isSaidInChat,
  mostOfPrompt,
  observeBody,
  parseInput,
  PassThroughObserver,
  promptTokens,
  quirksOf,
  readUpstreamError,
  refuseImagesInText,
  refuseOfServers,
  remoteMedia,
  requestFeatures,
  StreamTranslator,
  translateRequest,
  translateResponse,
  translatorBehind,
  usageAtEnd,
} from '../../../src/gateway/dialects/index.ts';
import { likelyTokens, mostTokens } from '../../../src/gateway/calls/most-tokens.ts';
import { parseBody } from '../../../src/gateway/calls/parse-body.ts';
import { Model } from '../../../src/gateway/balance/model.ts';
import type { Call } from '../../../src/gateway/calls/call.ts';
import { decodeReasoning } from '../../../src/gateway/dialects/encrypted-content.ts';
import { probe } from '../../../src/gateway/discovery/probe.ts';
import { ProbeError } from '../../../src/gateway/discovery/route-test.ts';
import { parseAnswer } from '../../../src/gateway/discovery/small-http.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { contextOf, DIALECTS, VLLM } from './dialects/support.ts';

type Json = Record<string, unknown>;

/** What every object inherits. As members of JSON they hide it, and are no functions. */
const INHERITED = [
  'toString',
  'valueOf',
  'constructor',
  '__proto__',
  '__defineGetter__',
  'hasOwnProperty',
  'toJSON',
  'length',
];
const NAMES =
  `type role content messages input tools tool_calls function index delta choices item output usage error message code
  status status_code http_status_code detail loc msg param n_prompt_tokens n_ctx data id owned_by version model_info model_path internal_states
  default_generation_settings max_model_len meta n_ctx_train created parent max_total_tokens content_block response name arguments text
  thinking system tool_choice source image_url url media_type file file_data input_audio call_id parameters input_schema format stop
  stop_reason finish_reason reasoning encrypted_content summary action queries outputs logs results prompt_tokens completion_tokens
  input_tokens output_tokens prompt_tokens_details sequence_number output_index item_id n best_of max_tokens metadata user_id
  response_format json_schema schema namespace`.split(/\s+/);
const WORDS =
  `function tool user assistant system text tool_use tool_result thinking message function_call reasoning message_start
  content_block_start content_block_delta message_delta response.completed response.in_progress response.output_item.added
  response.output_text.delta image document file input_file image_url error response list web_search_call mcp_call compaction
  tool_search_output additional_tools agent_message vllm llamacpp 400 auto none json_schema`.split(/\s+/);

const name = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...NAMES) }, fc.constantFrom(...INHERITED));
const word = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...WORDS) }, fc.constantFrom(...INHERITED));

/** Texts, because only a text has `__proto__` as a member of its own. */
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc
      .oneof(word, fc.constantFrom(null, true, 0, -1, 1.5, 1e21, 429), fc.string({ maxLength: 5 }))
      .map((one) => JSON.stringify(one)),
    fc.array(tie('value'), { maxLength: 3 }).map((list) => `[${list.join()}]`),
    tie('object'),
  ),
  object: fc
    .uniqueArray(fc.tuple(name, tie('value')), { maxLength: 6, selector: ([one]) => one })
    .map((members) => `{${members.map(([one, value]) => `${JSON.stringify(one)}:${value}`).join()}}`),
}));

/** One that is deep, where the innermost is no text and cannot be made one. */
const HIDDEN = '{"toString":1,"valueOf":1}';
const DEEP = `${'['.repeat(150)}${HIDDEN}${']'.repeat(150)}`;
const hostile = fc.oneof(
  { weight: 4, arbitrary: object },
  fc
    .tuple(name, fc.constantFrom(HIDDEN, `[${HIDDEN}]`, DEEP))
    .map(([one, value]) => `{${JSON.stringify(one)}:${value}}`),
  fc
    .tuple(
      fc.constantFrom('error', 'usage', 'item', 'message', 'response', 'delta'),
      name,
      fc.constantFrom(HIDDEN, DEEP),
    )
    .map(([outer, one, value]) => `{"type":"error","${outer}":{${JSON.stringify(one)}:${value}}}`),
);

function onlyDialectErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(DialectError);
  }
}

describe.each(DIALECTS)('%s', (dialect) => {
  it('bodies are read or refused', () => {
    fc.assert(
      fc.property(hostile, object, fc.constantFrom(...DIALECTS), (text, other, to) => {
        onlyDialectErrors(() => {
          const whole = `{"model":"m","max_tokens":1,"messages":[${text}],"input":[${text}],"tools":[${other}]}`;
          const body = { ...(JSON.parse(text) as Json), ...(parseBody(Buffer.from(whole)) as Json) };
          const model = new Model('m', [], fakeClock());
          const call = { body, bytes: Buffer.from(text), promptTokens: 1, history: [], references: new Map() };
          for (const run of [
            () => inspectRequest(dialect, body),
            () => refuseOfServers(body),
            () => remoteMedia(body),
            () => refuseImagesInText(body),
            () => parseInput(body.input, new Map()),
            () => forOutside(body, dialect),
            () => translateRequest(dialect, to, body, { model: 'm', quirks: VLLM, contextLength: 10 }),
            () => translateRequest(dialect, to, body, { model: 'm', quirks: quirksOf('unknown', undefined, 'm') }),
          ])
            onlyDialectErrors(run);
          requestFeatures(dialect, body);
          promptTokens(body, 20_000);
          mostOfPrompt(body, 20_000);
          mostTokens(call as unknown as Call, model);
          likelyTokens(call as unknown as Call);
          isSaidInChat(body, '');
          bodyToGoOn(body, { text: 'x', tokens: 1, blank: 0 }, VLLM);
        });
      }),
      { numRuns: 300 },
    );
  });

  it('answers and their streams are read to the end', () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 5 }), fc.constantFrom(...DIALECTS), (events, to) => {
        const machine = new StreamTranslator(dialect, to, contextOf({ messages: [{ role: 'user', content: 'x' }] }));
        const observer = new PassThroughObserver(dialect, { hideUsage: true });
        const told = Buffer.from(events.map((event) => `data: ${event}\n\n`).join(''));
        machine.push(told);
        machine.end();
        expect(machine.finished).toBe(true);
        observer.push(told);
        observer.end();
        translatorBehind(dialect, told, contextOf());
        for (const event of events) {
          const bytes = Buffer.from(event);
          onlyDialectErrors(() => translateResponse(dialect, to, JSON.parse(event), contextOf()));
          observeBody(dialect, bytes);
          usageAtEnd(dialect, Buffer.from(`{"usage":${event}}`));
        }
      }),
      { numRuns: 300 },
    );
  });
});

it('errors of engines are read, and what is no status is none', () => {
  fc.assert(
    fc.property(hostile, fc.constantFrom(200, 400, 429, 500), (text, status) => {
      for (const said of [text, `{"error":${text}}`, `{"error":{"code":${text}}}`, `{"detail":[${text}]}`]) {
        const read = [readUpstreamError(status, said), errorInAnswer(Buffer.from(said))];
        for (const error of read) {
          if (error === undefined) continue;
          expect(Number.isInteger(error.status)).toBe(true);
          expect(error.status).toBeGreaterThanOrEqual(400);
          expect(typeof error.message).toBe('string');
        }
      }
    }),
    { numRuns: 500 },
  );
});

it.each(['["429"]', '[429]', '{"0":429}', 'true', '""'])('a status is a number or its digits, not %s', (code) => {
  expect(readUpstreamError(200, `{"error":{"message":"x","code":${code}}}`).status).toBe(502);
});

it.each(['429', '"429"', '429.0'])('a status is a number or its digits: %s', (code) => {
  expect(readUpstreamError(200, `{"error":{"message":"x","code":${code}}}`).status).toBe(429);
});

it('a server that is probed says what it wants', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, hostile, fc.constantFrom(200, 400, 404), async (text, listed, status) => {
      const ask = (path: string) => {
        const said = path.endsWith('/models') ? `{"data":[${listed},{"id":"m"}]}` : text;
        const answer = { status: path.endsWith('/models') ? 200 : status, text: said };
        return Promise.resolve({ ...answer, json: parseAnswer(Buffer.from(said), said) });
      };
      try {
        const found = await probe(ask, { namespace: 'team', name: 'llm', uid: 'svc', aliases: [], problems: [] });
        expect(found.models.every(({ id }) => typeof id === 'string')).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(ProbeError);
      }
    }),
    { numRuns: 300 },
  );
});

it('what a client sends back of its reasoning is read', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const read = decodeReasoning(`berth1.${Buffer.from(text).toString('base64url')}`);
      expect(typeof read.text).toBe('string');
    }),
  );
});
