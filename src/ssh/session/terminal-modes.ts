/** Opcodes of RFC 4254 section 8 for characters, as stty(1) names them. */
const CHARACTERS: Readonly<Record<number, string>> = {
  1: 'intr',
  2: 'quit',
  3: 'erase',
  4: 'kill',
  5: 'eof',
  6: 'eol',
  7: 'eol2',
  8: 'start',
  9: 'stop',
  10: 'susp',
  12: 'rprnt',
  13: 'werase',
  14: 'lnext',
};

/** The same for what is on or off; 42 is of RFC 8160. */
const SWITCHES: Readonly<Record<number, string>> = {
  30: 'ignpar',
  31: 'parmrk',
  32: 'inpck',
  33: 'istrip',
  34: 'inlcr',
  35: 'igncr',
  36: 'icrnl',
  38: 'ixon',
  39: 'ixany',
  40: 'ixoff',
  41: 'imaxbel',
  42: 'iutf8',
  50: 'isig',
  51: 'icanon',
  53: 'echo',
  54: 'echoe',
  55: 'echok',
  56: 'echonl',
  57: 'noflsh',
  58: 'tostop',
  59: 'iexten',
  60: 'echoctl',
  61: 'echoke',
  70: 'opost',
  72: 'onlcr',
  73: 'ocrnl',
  74: 'onocr',
  75: 'onlret',
};

/** From here on opcodes have no known form, and what follows cannot be read. */
const UNKNOWN_FORM = 160;
const BYTES = 5;
const DELETE = 0x7f;
const BLANK = 0x20;

/** A character as stty takes it. 0 and 255 mean that no character does it. */
function character(value: number): string | undefined {
  if (value === 0 || value === 255) return 'undef';
  if (value === DELETE) return '^?';
  if (value < BLANK) return `^${String.fromCharCode(value + 0x40)}`;
  if (value < DELETE) return String.fromCharCode(value);
  return value < 255 ? `0x${value.toString(16)}` : undefined;
}

/**
 * The terminal modes of a client as arguments of stty: what its own terminal does with keys, so that a key means the same
 * there and here. Speeds and parity are left out, which a terminal without a line does not have.
 */
export function sttyArguments(modes: Buffer): string[] {
  const found = new Map<string, string[]>();
  for (let at = 0; at + BYTES <= modes.length; at += BYTES) {
    const opcode = modes.readUInt8(at);
    if (opcode === 0 || opcode >= UNKNOWN_FORM) break;
    const value = modes.readUInt32BE(at + 1);
    const [key, flag] = [CHARACTERS[opcode], SWITCHES[opcode]];
    const letter = key === undefined ? undefined : character(value);
    if (key !== undefined && letter !== undefined) found.set(key, [key, letter]);
    if (flag !== undefined) found.set(flag, [value === 0 ? `-${flag}` : flag]);
  }
  return [...found.values()].flat();
}
