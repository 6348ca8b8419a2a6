import { describe, expect, it } from 'vitest';
import { chartReadme, valueDocs } from '../../../tools/release/chart-readme.ts';

const VALUES = `# -- First of all.
name: ""
group:
  # -- How many | at most.
  count: 2
  deep:
    # -- Two
    # lines.
    list: [a]
# -- A map that is one value.
labels: {}
`;

describe('valueDocs', () => {
  it('lists every documented value with its path, type and default, in order', () => {
    expect(valueDocs(VALUES)).toEqual([
      { key: 'name', type: 'string', value: '""', text: 'First of all.' },
      { key: 'group.count', type: 'integer', value: '2', text: 'How many | at most.' },
      { key: 'group.deep.list', type: 'list', value: '["a"]', text: 'Two lines.' },
      { key: 'labels', type: 'object', value: '{}', text: 'A map that is one value.' },
    ]);
  });

  it('refuses a value without a comment', () => {
    expect(() => valueDocs('# -- Fine.\na: 1\nb: 2\n')).toThrow('b has no comment');
  });
});

describe('chartReadme', () => {
  it('escapes what would end a cell', () => {
    expect(chartReadme('# Head', VALUES)).toContain(String.raw`| How many \| at most. |`);
  });
});
