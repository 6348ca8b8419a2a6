import type { Api } from '../api/client.ts';
import { eventsOf } from '../../wire/event-stream.ts';
import type { List } from '../../wire/records.ts';
import { CliFailure, EXIT, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { printList } from '../print-list.ts';
import type { Session } from '../session.ts';
import { logLine, plain } from '../text.ts';

interface Model {
  id: string;
  ready_endpoints?: number;
  context_length?: number | null;
  /** Calls leave the cluster. */
  outside?: boolean;
  scales_from_zero?: boolean;
  price_per_million_tokens?: { input: string; output: string; currency: string };
}

interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  error?: { message?: string };
}

/** Whether a call is answered at once. */
function readyText({ ready_endpoints: ready = 0, scales_from_zero: sleeps }: Model): string {
  if (ready > 0) return 'yes';
  return sleeps === true ? 'starts at a call' : 'no';
}

function priceText({ price_per_million_tokens: price }: Model): string {
  return price === undefined ? '' : `${price.input} in, ${price.output} out ${price.currency}`;
}

/** `berth models`: what can be called. */
export async function models(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<Model>>('/models');
  await printList(input, session, answer, {
    titles: ['MODEL', 'READY', 'CONTEXT', 'PER MILLION TOKENS', 'NOTES'],
    rows: answer.data.map((one) => [
      one.id,
      readyText(one),
      one.context_length == null ? '' : String(one.context_length),
      priceText(one),
      one.outside ? 'outside the cluster' : '',
    ]),
    optional: ['CONTEXT', 'PER MILLION TOKENS', 'NOTES'],
    empty: 'The cluster serves no models.',
  });
}

async function modelOf(api: Api, input: Input): Promise<string> {
  const named = input.text('model');
  if (named !== undefined) return named;
  const { data } = await api.get<List<Model>>('/models');
  if (data.length === 1 && data[0] !== undefined) return data[0].id;
  if (data.length === 0) {
    const next = 'The operator of the cluster can add one.';
    throw new CliFailure('The cluster serves no models.', { exitCode: EXIT.notFound, next });
  }
  throw usageFailure(
    `There are ${data.length} models.`,
    `Write --model, for example --model ${plain(data[0]?.id ?? '')}.`,
  );
}

/** Prints an answer as it comes, and returns it. */
async function answer(api: Api, model: string, messages: readonly Message[], { terminal }: Session): Promise<string> {
  const body = await api.open('POST', '/chat/completions', {
    body: { model, messages, stream: true },
    headers: { accept: 'text/event-stream' },
  });
  let said = '';
  for await (const { data } of eventsOf(body)) {
    if (data === '[DONE]') break;
    const { choices, error } = JSON.parse(data) as Chunk;
    if (error !== undefined) {
      const next = 'Ask again, or another one of berth models with --model.';
      throw new CliFailure(plain(error.message ?? 'The model server failed.'), { next });
    }
    const text = choices?.[0]?.delta?.content ?? '';
    said += text;
    await terminal.out(terminal.screen ? text.split('\n').map(logLine).join('\n') : text);
  }
  await terminal.out('\n');
  return said;
}

/** `berth chat`: one answer to the words of the command line or of the input, else a conversation. */
export async function chat(input: Input, session: Session): Promise<void> {
  const { terminal } = session;
  const api = await session.api();
  const system = input.text('system');
  const messages: Message[] = system === undefined ? [] : [{ role: 'system', content: system }];
  const model = await modelOf(api, input);
  const asked = input.operands.length > 0 ? input.operands.join(' ') : undefined;
  if (asked !== undefined || !terminal.interactive) {
    const content = asked ?? (await terminal.input()).trim();
    if (content === '') throw usageFailure('There is no question.', 'Write berth chat QUESTION.');
    await answer(api, model, [...messages, { role: 'user', content }], session);
    return;
  }
  terminal.say(`You talk to ${plain(model)}. An empty line ends it.`);
  for (;;) {
    const content = (await terminal.ask('> ')).trim();
    if (content === '') return;
    messages.push({ role: 'user', content });
    messages.push({ role: 'assistant', content: await answer(api, model, messages, session) });
  }
}
