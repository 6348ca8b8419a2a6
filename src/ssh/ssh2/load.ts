import { readFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type Ssh2 from 'ssh2';
import ssh2Package from 'ssh2/package.json' with { type: 'json' };

const EXPECTED = '1.17';

/** The installed ssh2 is not one that this gateway can work with. */
export class Ssh2VersionError extends Error {
  override name = 'Ssh2VersionError';

  constructor(lacks: string, file: string) {
    super(
      `ssh2 ${ssh2Package.version} lacks ${lacks}, which the SSH gateway needs and ssh2 ${EXPECTED} has. Install ssh2 ${EXPECTED}.x, or adapt src/ssh/ssh2/${file}.`,
    );
  }
}

/** Bytes of the longest packet that a client may send: OpenSSH's PACKET_MAX_SIZE, so that a command may be as long as for sshd. */
export const MAX_PACKET = 256 * 1024;
const THEIR_LIMIT = 'const MAX_PACKET_SIZE = 35000;';
/** ssh2 adds the length of a packet and its tag to it for AES-GCM. */
const OUR_LIMIT = `const MAX_PACKET_SIZE = ${MAX_PACKET + 4 + 16};`;

/** The text of lib/protocol/crypto.js with our limit, which it has no setting for. Throws {@link Ssh2VersionError}. */
export function withLongPackets(text: string): string {
  const [before, after, ...others] = text.split(THEIR_LIMIT);
  if (before === undefined || after === undefined || others.length > 0) {
    throw new Ssh2VersionError(`the line "${THEIR_LIMIT}" in lib/protocol/crypto.js`, 'load.ts');
  }
  return `${before}${OUR_LIMIT}${after}`;
}

/** Throws when other code has loaded ssh2 before, whose limit stays then. */
function load(): typeof Ssh2 {
  const require = createRequire(import.meta.url);
  const file = require.resolve('ssh2/lib/protocol/crypto.js');
  const address = pathToFileURL(file).href;
  let isRaised = false;
  const hooks = registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      if (url !== address) return loaded;
      isRaised = true;
      return { ...loaded, source: withLongPackets(readFileSync(file, 'utf8')) };
    },
  });
  try {
    const loaded = require('ssh2') as typeof Ssh2;
    if (!isRaised) throw new Error('ssh2 was loaded before its limit was raised. Import it from src/ssh/ssh2/load.ts.');
    return loaded;
  } finally {
    hooks.deregister();
  }
}

export const ssh2 = load();
