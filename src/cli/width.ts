let segmenter: Intl.Segmenter | undefined;

/** The graphemes of a text. What finds them is made when it is needed: it takes a good part of the time of a start. */
function graphemesOf(text: string): Iterable<{ segment: string }> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(text);
}

// Wide and fullwidth characters (Unicode Standard Annex 11), as far as terminals agree about them: Hangul, CJK, kana, fullwidth
// forms, and what is drawn as a picture.
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|.\ufe0f)/u;

const ASCII = /^[\x20-\x7e]*$/;

// What is drawn after the character before it, in a column of its own, though both are one grapheme.
const BESIDE = /[\u0e33\u0eb3\uff9e\uff9f]/g;
const UNSEEN = /^[\p{Cf}\p{Mn}\p{Me}]+$/u;

/** Columns of a terminal that one grapheme takes. */
function widthOfGrapheme(grapheme: string): number {
  if (UNSEEN.test(grapheme)) return 0;
  return (WIDE.test(grapheme) ? 2 : 1) + (grapheme.slice(1).match(BESIDE)?.length ?? 0);
}

/** Columns of a terminal that the text takes. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += widthOfGrapheme(segment);
  return width;
}

/** The text in exactly that many columns: filled up with spaces, or cut with an ellipsis, never within a grapheme. */
export function fitted(text: string, width: number): string {
  const missing = width - widthOf(text);
  if (missing >= 0) return text + ' '.repeat(missing);
  if (ASCII.test(text)) return `${text.slice(0, width - 1)}\u2026`;
  let [kept, taken] = ['', 0];
  for (const { segment } of graphemesOf(text)) {
    const next = taken + widthOfGrapheme(segment);
    if (next > width - 1) break;
    [kept, taken] = [kept + segment, next];
  }
  return `${kept}\u2026${' '.repeat(width - 1 - taken)}`;
}

/** The text in lines of at most that many columns, broken between words; a word that is longer is a line of its own. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
