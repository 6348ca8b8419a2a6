import { expect, test } from 'vitest';
import { provenance } from '../../../../tools/release/sign/provenance.ts';

const HASH = 'ab'.repeat(32);
const GO_SUM = [
  `example.com/mod v1.2.3 h1:${Buffer.from(HASH, 'hex').toString('base64')}`,
  `example.com/mod v1.2.3/go.mod h1:${Buffer.from('cd'.repeat(32), 'hex').toString('base64')}`,
];

test('names the commit, the lock files, and each package with the hash that locks it', () => {
  const commit = 'c'.repeat(40);
  const locks = new Map([['deploy/tools/go.sum', Buffer.from(GO_SUM.join('\n'))]]);
  const components = [
    { purl: 'pkg:npm/a@1.0.0', hashes: [{ alg: 'SHA-512', content: 'ff' }] },
    { purl: 'pkg:golang/example.com/mod@v1.2.3' },
    { purl: 'pkg:deb/debian/libc6@2?arch=amd64' },
  ];
  const source = `git+https://github.com/berth-dev/berth@${commit}`;
  expect(provenance({ commit, locks, bill: { components } })).toMatchObject({
    buildDefinition: {
      externalParameters: { commit },
      resolvedDependencies: [
        { uri: source, digest: { gitCommit: commit } },
        { uri: `${source}#deploy/tools/go.sum`, digest: { sha256: expect.stringMatching(/^[\da-f]{64}$/) } },
        { uri: 'pkg:npm/a@1.0.0', digest: { sha512: 'ff' } },
        { uri: 'pkg:golang/example.com/mod@v1.2.3', digest: { dirHash: HASH } },
        { uri: 'pkg:deb/debian/libc6@2?arch=amd64' },
      ],
    },
  });
});
