import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../../tools/lib/paths.ts';
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

describe('the chart', () => {
  const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

  it('says where it is from and who makes it, as catalogs of charts show it', () => {
    const { home, icon, sources, maintainers } = parse(read('charts/berth/Chart.yaml')) as Record<string, unknown>;
    expect(sources).toEqual([home]);
    expect(maintainers).toMatchObject([{ name: expect.any(String), url: home }]);
    const [, path = ''] = /^https:\/\/raw\.githubusercontent\.com\/[^/]+\/[^/]+\/main\/(.+)$/.exec(String(icon)) ?? [];
    expect(existsSync(join(ROOT, path)) && path.endsWith('.svg')).toBe(true);
  });

  it.each(['README.md', 'docs/run/install.md'])('is installed without a checkout, as %s says', (page) => {
    expect(read(page)).toContain('helm install berth oci://ghcr.io/berth-dev/charts/berth');
    expect(read(page)).not.toMatch(/helm install \S+ (\.\/)?charts\//);
  });
});
