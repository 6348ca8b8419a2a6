import { describe, expect, it } from 'vitest';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { checkFields, checkPrivateFields } from '../../../src/ssh/ssh2/private.ts';
import { protocolServer } from '../../../src/ssh/ssh2/protocol.ts';

const ADVICE =
  /^ssh2 1\.17\.\d+ lacks .* and ssh2 1\.17 has\. Install ssh2 1\.17\.x, or adapt src\/ssh\/ssh2\/private\.ts\.$/;

function server() {
  return protocolServer(newEd25519Key('').private, { gcmOnly: false });
}

describe('the private fields of ssh2', () => {
  it('are all in the installed package', async () => {
    await expect(checkPrivateFields(server())).resolves.toBeUndefined();
  });

  it.each([
    ['Connection._sock', (client: object) => Reflect.deleteProperty(client, '_sock')],
    [
      'Connection._chanMgr.remove()',
      (client: object) => Object.assign(client, { _chanMgr: { cleanup: () => undefined } }),
    ],
    [
      'Protocol._cipher.encrypt(), Protocol.channelWindowAdjust()',
      ({ _protocol: protocol }: { _protocol: { _cipher: object } }) => {
        Object.assign(protocol._cipher, { encrypt: undefined });
        Object.assign(protocol, { channelWindowAdjust: undefined });
      },
    ],
  ])('are named when a connection lacks them: %s', async (names, damage) => {
    const damaged = server();
    damaged.on('connection', damage as never);
    const refusal = await checkPrivateFields(damaged).then(String, ({ name, message }: Error) => ({ name, message }));
    expect(refusal).toMatchObject({ name: 'Ssh2VersionError', message: expect.stringMatching(ADVICE) as string });
    expect(refusal).toMatchObject({ message: expect.stringContaining(`lacks ${names}, which`) as string });
  });

  it.each([
    ['Session', { _chanInfo: { incoming: { id: 0 } } }, 'Session._channel, Session._chanInfo.outgoing.id'],
    ['Session', undefined, 'Session._channel, Session._chanInfo.incoming.id, Session._chanInfo.outgoing.id'],
    [
      'Channel',
      { _chunk: 1, _chunkcb: 1, _chunkErr: 1, outgoing: { id: 1 } },
      'Channel._chunkcbErr, Channel.outgoing.state',
    ],
  ] as const)('are named when a %s lacks them: %j', (kind, object, names) => {
    expect(() => checkFields(kind, object)).toThrow(ADVICE);
    expect(() => checkFields(kind, object)).toThrow(`lacks ${names}, which`);
  });
});
