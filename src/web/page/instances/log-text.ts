// What ECMA-48 has for terminals: control sequences, such as colours, and strings, such as titles.
// oxlint-disable-next-line no-control-regex
const SEQUENCE = /\u001b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-Z\\-~])/g;
/** The sequence for colours and weights, "Select Graphic Rendition". */
// oxlint-disable-next-line no-control-regex
const RENDITION = /^\u001b\[[0-9;:]*m$/;
// oxlint-disable-next-line no-control-regex
const RENDITIONS = /\u001b\[([0-9;:]*)m/;

/** A part of a line in one look. */
export interface Part {
  text: string;
  /** Names of classes; empty for plain text. */
  look: string;
}

interface Look {
  /** One of the eight colours of terminals; undefined for that of the page. */
  colour: number | undefined;
  marks: ReadonlySet<string>;
}

const PLAIN: Look = { colour: undefined, marks: new Set() };
const MARKS: Readonly<Record<number, string>> = { 1: 'is-bold', 2: 'is-dim', 3: 'is-slanted', 4: 'is-underlined' };
/** What ends a mark. */
const UNMARKS: Readonly<Record<number, readonly string[]>> = {
  22: ['is-bold', 'is-dim'],
  23: ['is-slanted'],
  24: ['is-underlined'],
};

/** The nearest of the eight colours: the page has each of them so that it can be read in both themes. */
function nearest([red = 0, green = 0, blue = 0]: readonly number[]): number {
  return Number(red > 127) + 2 * Number(green > 127) + 4 * Number(blue > 127);
}

/** Of the 256 colours: 16 of terminals, a cube of 6 × 6 × 6, and greys. */
function ofTable(index: number): number {
  if (index < 16) return index % 8;
  if (index > 231) return index > 243 ? 7 : 0;
  const at = index - 16;
  return nearest([Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((level) => level * 51));
}

/** The look after a code with the colour that may stand behind it. */
function afterCode(before: Look, [code = 0, kind, ...more]: readonly number[]): Look {
  const { colour, marks } = before;
  if (code === 0) return PLAIN;
  // Backgrounds are left out: what is on them could not be read.
  if (code === 48) return before;
  if (code === 38) return { colour: kind === 5 ? ofTable(more[0] ?? 0) : nearest(more), marks };
  const mark = MARKS[code];
  if (mark !== undefined) return { colour, marks: new Set([...marks, mark]) };
  const ended = UNMARKS[code];
  if (ended !== undefined) return { colour, marks: new Set([...marks].filter((one) => !ended.includes(one))) };
  if (code === 39) return { colour: undefined, marks };
  const isColour = (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
  return isColour ? { colour: code % 10, marks } : before;
}

/** How many numbers a code takes: a colour of the table two more, one by its parts four. */
function lengthOf(code: number | undefined, kind: number | undefined): number {
  if (code !== 38 && code !== 48) return 1;
  return kind === 5 ? 3 : 5;
}

function afterCodes(before: Look, codes: readonly number[]): Look {
  let look = before;
  let at = 0;
  do {
    const length = lengthOf(codes[at], codes[at + 1]);
    look = afterCode(look, codes.slice(at, at + length));
    at += length;
  } while (at < codes.length);
  return look;
}

function classesOf({ colour, marks }: Look): string {
  return [...(colour === undefined ? [] : [`colour-${colour}`]), ...marks].join(' ');
}

/** A line of a log as a terminal would leave it: in its colours, and a bar of progress writes over itself. */
export function logParts(text: string): Part[] {
  const written = text.replaceAll(SEQUENCE, (one) => (RENDITION.test(one) ? one : '')).split('\r');
  const isShown = (part: string): boolean => part.replaceAll(SEQUENCE, '') !== '';
  // Texts and the codes between them by turns.
  const pieces = (written.findLast(isShown) ?? '').split(RENDITIONS);
  const parts: Part[] = [];
  let look = PLAIN;
  for (const [at, piece] of pieces.entries()) {
    if (at % 2 === 1) look = afterCodes(look, piece.split(/[;:]/).map(Number));
    else if (piece !== '') parts.push({ text: piece, look: classesOf(look) });
  }
  return parts;
}

export function textOf(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join('');
}
