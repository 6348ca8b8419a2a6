import type { Dispatcher } from 'undici';
import { expect, it } from 'vitest';
import type { ReceiverDeps } from '../../../src/gateway/calls/answer-receiver.ts';
import { StreamReceiver } from '../../../src/gateway/calls/stream-receiver.ts';
import { BodyShares } from '../../../src/gateway/limits/body-shares.ts';

const controller = { aborted: false } as Dispatcher.DispatchController;
const event = (text: string): string =>
  `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`;

function receive() {
  const done: string[] = [];
  const client = {
    write: (data: Uint8Array) => done.push(`write ${Buffer.from(data).toString()}`),
    endStream: (data: Uint8Array) => done.push(`end ${Buffer.from(data).toString()}`),
  };
  const deps = {
    call: { dialect: 'chat', body: {}, inspection: { wantsUsage: true }, kept: new BodyShares(1000).hold('a', 1000) },
    request: { dialect: 'chat', native: true },
    client,
    context: {},
    onFirstByte: () => done.push('begun'),
  };
  return { done, receiver: new StreamReceiver(deps as unknown as ReceiverDeps) };
}

it('sends what came last together with the end of the stream, in one write', async () => {
  const { done, receiver } = receive();
  receiver.data(Buffer.from(event('a')), controller);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  receiver.data(Buffer.from(event('b')), controller);
  receiver.data(Buffer.from('data: [DONE]\n\n'), controller);
  receiver.end(controller);
  receiver.finish();
  expect(done).toEqual(['begun', `write ${event('a')}`, `end ${event('b')}data: [DONE]\n\n`]);
});
