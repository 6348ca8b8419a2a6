import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { wireString } from '../../../src/lib/ssh-strings.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

let server: SshServer;
beforeEach(async () => {
  ({ server } = await loneGateway());
});
afterEach(() => server.close(0));

/** A packet before keys are in use (RFC 4253 section 6). */
function packet(payload: Buffer): Buffer {
  const padding = 16 - ((payload.length + 5) % 8);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length + 1 + padding);
  head[4] = padding;
  return Buffer.concat([head, payload, Buffer.alloc(padding)]);
}

/** The number of each message that the gateway has sent. */
function messagesOf(bytes: Buffer): number[] {
  const found: number[] = [];
  let at = bytes.indexOf('\n') + 1;
  while (at > 0 && at + 6 <= bytes.length) {
    const length = bytes.readUInt32BE(at);
    if (at + 4 + length > bytes.length) break;
    found.push(bytes.readUInt8(at + 5));
    at += 4 + length;
    // What follows NEWKEYS is sealed.
    if (found.at(-1) === 21) break;
  }
  return found;
}

interface Offer {
  kex: string;
  hostKeys?: string;
  follows: boolean;
}

function kexInit({ kex, hostKeys = 'ssh-ed25519', follows }: Offer): Buffer {
  const lists = [kex, hostKeys, 'aes128-ctr', 'aes128-ctr', 'hmac-sha2-256', 'hmac-sha2-256', 'none', 'none', '', ''];
  const tail = Buffer.from([follows ? 1 : 0, 0, 0, 0, 0]);
  return Buffer.concat([Buffer.of(20), Buffer.alloc(16, 7), ...lists.map((list) => wireString(list)), tail]);
}

function publicKey(): Buffer {
  const { publicKey: key } = generateKeyPairSync('x25519');
  return key.export({ type: 'spki', format: 'der' }).subarray(-32);
}

const exchange = (): Buffer => packet(Buffer.concat([Buffer.of(30), wireString(publicKey())]));
const WRONG = packet(Buffer.concat([Buffer.of(30), wireString('a guess of another kind')]));

async function hears(payloads: readonly Buffer[]): Promise<{ messages: () => number[]; socket: Socket }> {
  const socket = connect(server.address.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  let heard = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => (heard = Buffer.concat([heard, chunk])));
  socket.write(Buffer.concat([Buffer.from('SSH-2.0-guesser\r\n'), ...payloads]));
  return { messages: () => messagesOf(heard), socket };
}

const CURVE = 'curve25519-sha256';

describe('the first packet of a key exchange that a client guessed', () => {
  it.each<[string, Offer, (() => Buffer)[]]>([
    ['none', { kex: CURVE, follows: false }, [exchange]],
    ['right, as Dropbear', { kex: CURVE, follows: true }, [exchange]],
    ['wrong in its algorithm', { kex: `sntrup761x25519-sha512,${CURVE}`, follows: true }, [() => WRONG, exchange]],
    [
      'wrong in its host key',
      { kex: CURVE, hostKeys: 'rsa-sha2-512,ssh-ed25519', follows: true },
      [() => WRONG, exchange],
    ],
  ])('is %s: the exchange goes on', async (_name, offer, packets) => {
    const { messages, socket } = await hears([packet(kexInit(offer)), ...packets.map((make) => make())]);
    await waitFor('new keys', () => messages().at(-1) === 21);
    expect(messages()).toEqual([20, 31, 21]);
    socket.destroy();
  });
});
