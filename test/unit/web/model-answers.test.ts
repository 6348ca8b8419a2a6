import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { eventsOf } from '../../../src/wire/event-stream.ts';
import { APIS, type Dialect, readEvent } from '../../../src/web/page/models/dialects.ts';
import { snippetsFor } from '../../../src/web/page/models/snippets.ts';
import { chatEvents, messagesEvents, responsesEvents } from '../../support/engine-answers.ts';

const run = promisify(execFile);
const REPLY = { text: 'A berth — für Schiffe.', reasoning: 'Ships sleep.', inputTokens: 12, outputTokens: 34 };

/** A body that comes in pieces of so many bytes. */
function bodyOf(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
  return ReadableStream.from(pieces);
}

describe('the answer of a model', () => {
  const ANSWERS: Readonly<Record<Dialect, string>> = {
    chat: chatEvents('m', REPLY, true).join(''),
    responses: responsesEvents('m', REPLY).join(''),
    messages: messagesEvents('m', REPLY).join(''),
  };

  it.each(Object.keys(APIS) as Dialect[])('is read in the dialect %s', async (dialect) => {
    const whole = { text: '', thought: '', read: 0, written: 0 };
    for await (const { data } of eventsOf(bodyOf(ANSWERS[dialect], 11))) {
      const { text = '', thought = '', read, written, error } = readEvent(dialect, data);
      expect(error).toBeUndefined();
      whole.text += text;
      whole.thought += thought;
      whole.read = read ?? whole.read;
      whole.written = written ?? whole.written;
    }
    // The scripted engine thinks in chat completions alone.
    const thought = dialect === 'chat' ? REPLY.reasoning : '';
    expect(whole).toEqual({ text: REPLY.text, thought, read: 12, written: 34 });
  });

  it.each([
    ['chat', '{"choices":[{"delta":{"reasoning":"hm"}}]}'],
    ['responses', '{"type":"response.reasoning_text.delta","delta":"hm"}'],
    ['responses', '{"type":"response.reasoning_summary_text.delta","delta":"hm"}'],
    ['messages', '{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}'],
    ['chat', '{"choices":[{"delta":{"reasoning_content":"","reasoning":"hm"}}]}'],
  ] as const)('may begin with thoughts: %s', (dialect, data) => {
    expect(readEvent(dialect, data)).toEqual({ thought: 'hm' });
  });

  it.each([
    ['chat', '{"error":{"message":"too long","code":"x"}}'],
    ['responses', '{"type":"response.failed","response":{"error":{"code":"x","message":"too long"}}}'],
    ['responses', '{"type":"error","code":"x","message":"too long"}'],
    ['messages', '{"type":"error","error":{"type":"x","message":"too long"}}'],
  ] as const)('may be an error inside the stream: %s', (dialect, data) => {
    expect(readEvent(dialect, data)).toEqual({ error: 'too long' });
  });

  it.each(['[DONE]', '', 'null', '7', '{"choices":[]}', '{"choices":null}', '{"delta":7}'])(
    '%j adds nothing',
    (data) => {
      for (const dialect of Object.keys(APIS) as Dialect[]) expect(readEvent(dialect, data)).toEqual({});
    },
  );
});

describe('a program to copy', () => {
  const HOSTILE = `it's "$(id)" \`id\` \\`;
  const snippets = snippetsFor({ origin: 'https://berth.example', model: HOSTILE, context: 4096 });
  const textOf = (name: string): string => snippets.find((one) => one.name === name)?.text ?? '';

  it('keeps the name of a model one word of the shell', async () => {
    const { stdout } = await run('bash', [
      '-c',
      textOf('Claude Code').replace(/claude$/, 'printf "%s|%s" "$ANTHROPIC_MODEL" "$ANTHROPIC_BASE_URL"'),
    ]);
    expect(stdout).toBe(`${HOSTILE}|https://berth.example/api`);
    const curl = await run('bash', ['-c', `curl() { printf '%s\\n' "\${@: -1}"; }; ${textOf('curl')}`]);
    expect(JSON.parse(curl.stdout)).toMatchObject({ model: HOSTILE });
  });

  it.each(['OpenAI, Python', 'OpenAI, TypeScript', 'Anthropic, Python', 'Anthropic, TypeScript', 'Codex'])(
    'keeps it one text in %s',
    (name) => {
      const [, text = ''] = /model(?: = |=|: )("(?:[^"\\]|\\.)*")/.exec(textOf(name)) ?? [];
      expect(JSON.parse(text)).toBe(HOSTILE);
    },
  );
});
