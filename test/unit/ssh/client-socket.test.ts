import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ClientSocket } from '../../../src/ssh/terminal/client-socket.ts';

/** A WebSocket whose kernel takes what is sent at once, or when it is told to. */
class Socket extends EventEmitter {
  readyState: number = WebSocket.OPEN;
  isPaused = false;
  bufferedAmount = 0;
  pings = 0;
  isFull = false;
  take: () => void = () => undefined;

  send(data: Buffer, _options: object, done: () => void): void {
    if (!this.isFull) return done();
    this.bufferedAmount = data.length;
    this.take = () => {
      this.bufferedAmount = 0;
      done();
    };
  }

  ping(): void {
    this.pings += 1;
  }

  terminate(): void {
    this.readyState = WebSocket.CLOSED;
  }
}

function clientOn(socket: Socket): ClientSocket {
  const events = { frame: () => undefined, closed: () => undefined };
  return new ClientSocket(socket as unknown as WebSocket, events);
}

const send = (client: ClientSocket): void => client.send(1, [Buffer.from('output')], () => undefined);

it('hangs up on a client that answers no question, whatever is sent to it', () => {
  const socket = new Socket();
  const client = clientOn(socket);
  client.ping();
  send(client);
  client.ping();
  expect([socket.pings, socket.readyState]).toEqual([1, WebSocket.CLOSED]);
});

it('waits for a client whose answer is behind what it still takes, and no longer', () => {
  const socket = new Socket();
  const client = clientOn(socket);
  socket.isFull = true;
  for (let question = 1; question <= 5; question += 1) {
    send(client);
    client.ping();
    expect([socket.pings, socket.readyState]).toEqual([question, WebSocket.OPEN]);
    socket.take();
  }
  send(client);
  client.ping();
  client.ping();
  expect(socket.readyState).toBe(WebSocket.CLOSED);
});
