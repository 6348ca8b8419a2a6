import type { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { KEXINIT, screenPackets, unfinishedPacket } from '../ssh2/private.ts';
import type { Connection } from '../ssh2/protocol.ts';

// What an agent with twenty RSA keys of 16,384 bits sends is less.
const LOGIN_PACKETS = 128;
const LOGIN_BYTES = 64 * 1024;
/** Key exchanges after the login that need no reason; beyond them, each needs a minute or a MiB of traffic. */
const FREE_EXCHANGES = 8;
const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

export interface PacketGuardDeps {
  clock: Pick<Clock, 'monotonic'>;
  /** The client broke a rule and is hung up on. */
  refused: (why: string) => void;
  /** One more packet of a client that has logged in. */
  packet: () => void;
}

/**
 * Ends a client that makes the gateway work more than an honest one does. Before the login there is one key exchange, as
 * with OpenSSH, which does not begin another one ("Don't rekey before authentication", its packet.c). Call it before keys
 * are exchanged.
 */
export function guardPackets(client: Connection, socket: Socket, { clock, refused, packet }: PacketGuardDeps): void {
  const began = clock.monotonic();
  let packets = 0;
  let exchanges = 0;
  const refuse = (why: string): false => {
    if (!socket.destroyed) refused(why);
    socket.destroy();
    return false;
  };
  const earned = (): number =>
    FREE_EXCHANGES + (clock.monotonic() - began) / MINUTE_MS + (socket.bytesRead + socket.bytesWritten) / MIB;
  screenPackets(client, (message) => {
    if (!client.authenticated) {
      packets += 1;
      if (message === KEXINIT) return refuse('a key exchange before the login');
      return packets <= LOGIN_PACKETS || refuse('too many packets before the login');
    }
    packet();
    if (message !== KEXINIT) return true;
    exchanges += 1;
    return exchanges <= earned() || refuse('too many key exchanges');
  });
  const countBytes = (): void => {
    if (client.authenticated) socket.off('data', countBytes);
    else if (Math.max(socket.bytesRead, unfinishedPacket(client)) > LOGIN_BYTES)
      refuse('too many bytes before the login');
  };
  socket.on('data', countBytes);
  // What came with the greeting is being read.
  setImmediate(countBytes);
}
