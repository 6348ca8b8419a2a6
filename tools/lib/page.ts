import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { LocalFailure } from './failure.ts';
import { ROOT, stateFolder } from './paths.ts';

const BUILT = join(ROOT, 'src/web/public/built');
const STYLE_ELEMENT = join(ROOT, 'src/web/page/terminal/style-element.ts');

/**
 * xterm.js makes `<style>` elements and style attributes from text, which the content policy of the page forbids. The same
 * by script is allowed. Each pattern must be there as often as in the version that was looked at.
 */
const STYLES = [
  { pattern: /[\w$.]+\.createElement\("style"\)/g, by: 'styleElementByScript()', count: 3 },
  { pattern: /([\w$]+)\.setAttribute\("style",(`[^`]*`)\)/g, by: '$1.style.cssText=$2', count: 1 },
];

/** The library with its styles made by script. Throws when it is not as expected: then look at it again. */
function styledByScript(code: string): string {
  let changed = code;
  for (const { pattern, by, count } of STYLES) {
    const found = code.match(pattern)?.length ?? 0;
    if (found !== count) throw new Error(`xterm.js has ${found} times ${pattern.source}, and not ${count} times.`);
    changed = changed.replaceAll(pattern, by);
  }
  return `import { styleElement as styleElementByScript } from ${JSON.stringify(STYLE_ELEMENT)};\n${changed}`;
}

const strictStyles: Plugin = {
  name: 'strict-styles',
  transform: { filter: { id: /@xterm\/xterm\/lib\/xterm\.mjs$/ }, handler: styledByScript },
};

/**
 * Bundles the page of the dashboard beside its styles, where the server finds it: app.js, and screen.js with the terminal,
 * which the page loads on demand. Takes under a second.
 */
export async function buildPage(): Promise<void> {
  const complaints: string[] = [];
  const made = join(stateFolder(), `page-${process.pid}`);
  await build({
    cwd: ROOT,
    input: 'src/web/page/main.tsx',
    platform: 'browser',
    plugins: [strictStyles],
    output: {
      dir: made,
      entryFileNames: 'app.js',
      chunkFileNames: '[name].js',
      format: 'esm',
      minify: true,
    },
    // A busy machine is no fault of the page.
    checks: { bundlerTimings: false },
    // A module of Node in the page, for example, is a warning only.
    onLog: (_level, log) => void complaints.push(log.message),
    logLevel: 'warn',
  });
  if (complaints.length > 0) {
    throw new LocalFailure('The page of the dashboard is not clean.', complaints.join('\n'));
  }
  copyFileSync(join(ROOT, 'node_modules/@xterm/xterm/css/xterm.css'), join(made, 'xterm.css'));
  // Put in place file by file, so that a server that runs beside reads no half of one.
  mkdirSync(BUILT, { recursive: true });
  for (const file of readdirSync(made)) renameSync(join(made, file), join(BUILT, file));
  rmSync(made, { recursive: true });
}
