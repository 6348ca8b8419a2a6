import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { riddles } from '../../../tools/english/riddles.ts';
import { textOfMarkdown, textOfTemplate, textsOfProgram } from '../../../tools/english/texts.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

const found = (text: string): string[] => riddles(text).map((riddle) => riddle.found);

describe('the rule for English', () => {
  const contributing = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const [, table = ''] = /^\| Not \| But \|\n[^\n]+\n((?:\|.*\n)+)/m.exec(contributing) ?? [];
  const examples = [...table.matchAll(/^\| (.*) \| (.*) \|$/gm)].map(([, not = '', but = '']) => ({ not, but }));

  it('has twenty examples', () => expect(examples).toHaveLength(20));

  it.each(examples)('finds: $not', ({ not, but }) => {
    expect(found(not)).toHaveLength(1);
    expect(found(but)).toEqual([]);
  });

  it.each([
    'What is a lease? Who asks?',
    'Leave it alone, or let the other one alone.',
    'A hand-Of-God is no sentence.',
    'Nobody is beneath it.',
  ])('leaves: %s', (text) => expect(found(text)).toEqual([]));

  it('says where: in the middle of a text, and after a line break', () => {
    expect(riddles('One.\nWhat two?\n\nThat is it.').map(({ at, found: word }) => [at, word])).toEqual([[16, 'That']]);
  });
});

describe('texts', () => {
  it('of a document have no code, quotations and addresses, and keep their places', () => {
    const document = 'See `alone` and "Of this".\n```sh\n# What\n```\n<!-- Who -->\nA [link](alone.md) alone.';
    const { text } = textOfMarkdown(document);
    expect(riddles(text).map(({ at }) => at)).toEqual([document.lastIndexOf('alone')]);
  });

  it('of a template of the chart are without its comments', () => {
    const { text } = textOfTemplate('{{- /* Of it */}}\n  # What it is\n{{ fail "Of this" }}');
    expect(found(text)).toEqual(['Of']);
  });

  it.each([
    ['a string', "throw new Error('Of that nothing is left.');"],
    ['a template', 'say(`${name} alone is left`);'],
    ['a field of an object', "const option = { help: 'ids alone' };"],
    ['an attribute', 'const element = <Help text="What it is" />;'],
    ['words of an element', 'const element = <p>Instances go on.</p>;'],
  ])('of a program are %s', (_what, source) => {
    expect(textsOfProgram('one.tsx', source).flatMap(({ text }) => found(text))).toHaveLength(1);
  });

  it('of a program are neither its comments nor its names', () => {
    expect(textsOfProgram('one.ts', "// Of this alone\nconst alone = 'alone';")).toEqual([]);
  });
});
