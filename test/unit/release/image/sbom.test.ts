import { describe, expect, it } from 'vitest';
import { cycloneDx } from '../../../../tools/release/image/sbom.ts';

const lock = {
  version: '1.2.3',
  packages: {
    'node_modules/@scope/a': {
      version: '2.0.0',
      license: 'MIT',
      integrity: `sha512-${Buffer.from('hash').toString('base64')}`,
    },
    'node_modules/b/node_modules/@scope/a': { version: '2.0.0' },
  },
};

describe('cycloneDx', () => {
  it('names each component once by its package URL, in a fixed order, without times', () => {
    const sbom = cycloneDx({
      lock,
      npm: Object.keys(lock.packages),
      nodes: [{ version: '26.0.0', architecture: 'amd64', sha256: 'ab' }],
      debian: [{ name: 'libc6', version: '2.36-9+deb12u1', architecture: 'amd64' }],
      go: [{ path: 'github.com/pkg/sftp', version: 'v1.0.0' }],
    });
    const components = sbom['components'] as { purl: string }[];
    expect(components.map(({ purl }) => purl)).toEqual([
      'pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64',
      'pkg:generic/node@26.0.0?arch=amd64',
      'pkg:golang/github.com/pkg/sftp@v1.0.0',
      'pkg:npm/%40scope/a@2.0.0',
    ]);
    expect(JSON.stringify(sbom)).not.toMatch(/timestamp|serialNumber/);
  });
});
