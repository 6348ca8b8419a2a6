import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RequestHandler } from 'express';
import { staticFile } from '../interface/static-file.ts';

/** The documents as pages. `npm run docs` builds them; a checkout has none before. */
const FOLDER = fileURLToPath(new URL('./site', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};
/** Files of these names never change: their names have the hash of what they hold. */
const HASHED = /^assets\//;

function filesOf(folder: string): string[] {
  try {
    const found = readdirSync(folder, { recursive: true, withFileTypes: true });
    return found.filter((one) => one.isFile()).map((one) => relative(folder, join(one.parentPath, one.name)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** What serves each path below /docs/: a page is found without `.html`. */
export function siteFiles(): ReadonlyMap<string, RequestHandler> {
  const files = filesOf(FOLDER).filter((name) => extname(name) in TYPES);
  return new Map(
    files.map((name) => {
      const headers = {
        'cache-control': HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'public, max-age=300',
        'content-type': TYPES[extname(name)] ?? '',
      };
      const path = name.replace(/(?:^index)?\.html$/, '');
      return [`/docs/${path}`, staticFile(() => readFileSync(join(FOLDER, name)), headers)] as const;
    }),
  );
}
