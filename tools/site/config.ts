import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { defineConfig, type DefaultTheme, type MarkdownRenderer } from 'vitepress';
import { ROOT, stateFolder } from '../lib/paths.ts';

const SOURCE = 'https://github.com/berth-dev/berth/blob/main/';
const DOCS = join(ROOT, 'docs');
const BUILT = join(ROOT, 'src/http/server/site');
/** Links to these, and out of docs/, lead to the repository. */
const NOT_HERE = /^(?:\.\.\/|decisions\/|use\/examples\/)/;

/** A row of the index for each reader, with the pages for this reader in order. */
function sidebar(): DefaultTheme.SidebarItem[] {
  const concepts = { text: 'Concepts', link: '/concepts' };
  const rows = [...readFileSync(join(DOCS, 'README.md'), 'utf8').matchAll(/^\| (?!You|-)([^|]+) \| (.+) \|$/gm)];
  const groups = rows.map(([, reader = '', cells = '']) => ({
    text: reader.charAt(0).toUpperCase() + reader.slice(1),
    items: [...cells.matchAll(/\[([^\]]+)\]\(([^)]+)\.md\)/g)]
      .filter(([, , path = '']) => !NOT_HERE.test(path))
      .map(([, text = '', path = '']) => ({ text: text.charAt(0).toUpperCase() + text.slice(1), link: `/${path}` })),
  }));
  return [concepts, ...groups];
}

/** As GitHub makes the anchor of a title: links work there and here. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\- _]/gu, '')
    .replaceAll(' ', '-');
}

function linkToSource(md: MarkdownRenderer): void {
  md.core.ruler.push('link-to-source', ({ tokens, env }) => {
    const page = (env as { relativePath: string }).relativePath.replace('index.md', 'README.md');
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const target = token.type === 'link_open' ? (token.attrGet('href') ?? '') : '';
      if (target === '' || /^(?:#|[a-z]+:)/.test(target)) continue;
      const path = join(dirname(page), target);
      if (NOT_HERE.test(path)) token.attrSet('href', SOURCE + join('docs', path));
    }
  });
}

/** The generator's inline scripts, which set the theme before a page is drawn. The server's content policy runs none. */
const INLINE = /<script id="[\w-]+">(.*?)<\/script>/gs;
const inline = new Set<string>();

function withoutInline(html: string): string {
  for (const [, script = ''] of html.matchAll(INLINE)) inline.add(script);
  return html.replaceAll(INLINE, '').replace('</title>', '</title>\n<script src="/docs/first.js"></script>');
}

export const config = defineConfig({
  lang: 'en',
  title: 'Berth',
  description: 'A GPU cluster as a GPU cloud',
  base: '/docs/',
  srcDir: DOCS,
  srcExclude: ['decisions/**'],
  outDir: BUILT,
  cacheDir: join(stateFolder(), 'site'),
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  metaChunk: true,
  head: [['link', { rel: 'icon', href: '/docs/favicon-32x32.png' }]],
  markdown: { anchor: { slugify: anchorOf }, config: linkToSource },
  themeConfig: {
    outline: [2, 3],
    search: { provider: 'local' },
    sidebar: sidebar(),
    nav: [
      { text: 'API reference', link: '/api', target: '_self' },
      { text: 'Source', link: SOURCE.replace('/blob/main/', '') },
    ],
  },
  transformHtml: withoutInline,
  buildEnd: ({ outDir }) =>
    writeFileSync(join(outDir, 'first.js'), [...inline].map((script) => `{${script}}\n`).join('')),
});
