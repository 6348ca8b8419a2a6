import { once } from 'node:events';
import { connect } from 'node:net';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

// A process that takes bytes from its instance without a pause: `flood.ts`, where and with what as JSON in $TARGET. It is
// ended by its parent.

interface Target {
  http: number;
  ssh: number;
  token: string;
  user: string;
  privateKey: string;
}

const PORT_STREAMS = 60;
const SSH_CHANNELS = 60;

const { http, ssh, token, user, privateKey } = JSON.parse(process.env['TARGET'] ?? '') as Target;
process.on('uncaughtException', () => undefined);
process.on('unhandledRejection', () => undefined);

async function takeFromPort(): Promise<void> {
  for (;;) {
    const socket = connect({ port: http, host: '127.0.0.1' });
    socket.on('error', () => undefined).resume();
    const head = [
      'GET /api/v1/instances/lab/proxy/7000/large HTTP/1.1',
      'host: berth',
      `authorization: Bearer ${token}`,
    ];
    socket.write(`${[...head, 'connection: close'].join('\r\n')}\r\n\r\n`);
    await once(socket, 'close');
  }
}

async function takeBySsh(): Promise<void> {
  const client = new ssh2.Client();
  client.connect({ host: '127.0.0.1', port: ssh, username: user, privateKey });
  await once(client, 'ready');
  for (let count = 0; count < SSH_CHANNELS; count += 1)
    client.exec('cat /dev/zero', (error, channel) => {
      if (error === undefined) channel.resume();
    });
}

for (let count = 0; count < PORT_STREAMS; count += 1) void takeFromPort();
void takeBySsh();
