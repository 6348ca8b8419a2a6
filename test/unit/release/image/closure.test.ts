import { describe, expect, it } from 'vitest';
import { isRuntimeFile, runtimePackages } from '../../../../tools/release/image/closure.ts';

const LOCK = {
  packages: {
    '': { dependencies: { web: '1', heavy: '1', both: '1' } },
    'node_modules/web': { dependencies: { shared: '1' } },
    'node_modules/web/node_modules/shared': {},
    'node_modules/shared': {},
    'node_modules/heavy': { dependencies: { 'heavy-part': '1', shared: '1', '@types/heavy': '1' } },
    'node_modules/@types/heavy': { dependencies: { 'heavy-types': '1' } },
    'node_modules/heavy-types': {},
    'node_modules/heavy-part': {},
    'node_modules/both': { dependencies: { addon: '1' }, optionalDependencies: { addon: '1' } },
    'node_modules/addon': {},
    'node_modules/dev-only': {},
  },
};

describe('runtimePackages', () => {
  it('follows dependencies the way Node finds them and leaves out what is optional, for development or types', () => {
    expect(runtimePackages(LOCK, [])).toEqual([
      'node_modules/both',
      'node_modules/heavy',
      'node_modules/heavy-part',
      'node_modules/shared',
      'node_modules/web',
      'node_modules/web/node_modules/shared',
    ]);
  });

  it('leaves out what only an excluded package leads to', () => {
    expect(runtimePackages(LOCK, ['heavy'])).toEqual([
      'node_modules/both',
      'node_modules/web',
      'node_modules/web/node_modules/shared',
    ]);
  });

  it('refuses a lock file with a hole', () => {
    expect(() => runtimePackages({ packages: { '': { dependencies: { gone: '1' } } } }, [])).toThrow('gone');
  });
});

describe('isRuntimeFile', () => {
  it.each(['index.js', 'lib/a.cjs', 'dist/doc/document.js', 'package.json', 'LICENSE', 'build/x.node', 'page.css'])(
    'keeps %s',
    (path) => {
      expect(isRuntimeFile(path)).toBe(true);
    },
  );

  it.each(['index.d.ts', 'index.js.map', 'README.md', 'test/a.js', 'docs/a.js', '.claude/LICENSE.md', 'tsconfig.json'])(
    'drops %s',
    (path) => {
      expect(isRuntimeFile(path)).toBe(false);
    },
  );
});
