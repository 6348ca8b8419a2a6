/** A process of SSH clients for `load.ts`: `clients.ts PORT idle COUNT` or `clients.ts PORT cycles COUNT`, key in $KEY. */
import { once } from 'node:events';
import type { Client } from 'ssh2';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

const [port = '', mode = '', number = ''] = process.argv.slice(2);
const count = Number(number);
const AT_ONCE = 16;
let lost = 0;

async function open(): Promise<Client> {
  const client = new ssh2.Client();
  client.on('error', () => (lost += 1));
  client.connect({ host: '127.0.0.1', port: Number(port), username: 'i-one', privateKey: process.env['KEY'] ?? '' });
  await once(client, 'ready');
  return client;
}

async function idle(): Promise<void> {
  const client = await open();
  client.once('close', () => (lost += 1));
}

async function cycle(): Promise<void> {
  const client = await open();
  const closed = once(client, 'close');
  client.end();
  await closed;
}

const work = mode === 'idle' ? idle : cycle;
let started = 0;
async function lane(): Promise<void> {
  while (started < count) {
    started += 1;
    await work();
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, lane));
process.stdout.write('done\n');
if (mode === 'idle') await once(process.stdin, 'data');
process.stdout.write(`lost ${lost}\n`);
process.exit(0);
