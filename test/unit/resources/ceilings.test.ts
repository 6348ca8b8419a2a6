import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allowsImage, covers, fullImageName } from '../../../src/resources/tenants/ceilings.ts';

describe('the full name of an image', () => {
  // The names that github.com/distribution/reference gives, which containerd uses.
  it.each([
    ['debian', 'docker.io/library/debian'],
    ['debian:12', 'docker.io/library/debian:12'],
    [`debian@sha256:${'a'.repeat(64)}`, `docker.io/library/debian@sha256:${'a'.repeat(64)}`],
    ['acme/app:1', 'docker.io/acme/app:1'],
    ['docker.io/debian:12', 'docker.io/library/debian:12'],
    ['docker.io/acme/app', 'docker.io/acme/app'],
    ['index.docker.io/debian', 'docker.io/library/debian'],
    ['index.docker.io/acme/app', 'docker.io/acme/app'],
    ['localhost/app', 'localhost/app'],
    ['ghcr.io/acme/app:1', 'ghcr.io/acme/app:1'],
    ['registry:5000/app', 'registry:5000/app'],
    ['[fd00::1]:5000/app', '[fd00::1]:5000/app'],
    // A name in capitals is a host, not a user of Docker Hub.
    ['EVIL/app', 'EVIL/app'],
    [`debian:12@sha256:${'a'.repeat(64)}`, `docker.io/library/debian:12@sha256:${'a'.repeat(64)}`],
    ['a.b', 'docker.io/library/a.b'],
  ])('%s is %s', (image, full) => {
    expect(fullImageName(image)).toBe(full);
    expect(fullImageName(full)).toBe(full);
  });

  it('of any text names a registry, once', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9][a-z0-9._/-]{0,40}(:[a-z0-9]{1,5})?$/), (image) => {
        const full = fullImageName(image);
        expect(full).toMatch(/^([^/]*[.:][^/]*|localhost)\//);
        expect(fullImageName(full)).toBe(full);
      }),
    );
  });
});

describe('a pattern', () => {
  it.each([
    ['*', 'anything', true],
    ['ghcr.io/acme/*', 'ghcr.io/acme/app:1', true],
    ['ghcr.io/acme/*', 'ghcr.io/acme-evil/app', false],
    ['ghcr.io/acme/*', 'ghcr.io/acme/team/*', true],
    ['ghcr.io/acme/team/*', 'ghcr.io/acme/*', false],
    ['ghcr.io/acme/app', 'ghcr.io/acme/app:1', false],
    ['ghcr.io/acme/app', 'ghcr.io/acme/app', true],
  ])('%s covers %s: %s', (pattern, other, expected) => {
    expect(covers(pattern, other)).toBe(expected);
  });

  it('that covers another allows every image that the other allows', () => {
    const pattern = fc.stringMatching(/^[ab]{0,3}\*?$/);
    fc.assert(
      fc.property(pattern, pattern, fc.stringMatching(/^[ab]{0,4}$/), (wide, narrow, image) => {
        fc.pre(covers(wide, narrow) && covers(narrow, image));
        expect(covers(wide, image)).toBe(true);
      }),
    );
  });

  it.each([
    [['docker.io/library/*'], 'debian:12', true],
    [['docker.io/acme/*'], 'acme/app', true],
    // An image of Docker Hub does not pass for one of a user whose name begins alike.
    [['docker.io/d*'], 'docker.io/debian', false],
    [['docker.io/acme/*'], 'docker.io.evil.example/acme/app', false],
    // What a registry would read as another path.
    [['docker.io/library/ok*'], 'docker.io/library/ok/../../evil:1', false],
    [['docker.io/acme/*'], 'docker.io/acme//../evil', false],
    [['docker.io/acme/*'], 'acme/./../evil', false],
    [['*'], 'docker.io/library/ok/..', false],
    [[], 'debian:12', false],
    [['*'], 'debian:12', true],
    [['docker.io/*'], 'EVIL/app', false],
    [['registry:5000/team/*'], 'registry:5000/team/app:1', true],
    [['registry:5000/team/*'], 'registry:5001/team/app:1', false],
    [['docker.io/library/debian*'], `debian:12@sha256:${'a'.repeat(64)}`, true],
    [['docker.io/library/ok*'], 'ok/../../evil:1', false],
    [['ghcr.io/ok/*'], 'ghcr.io/ok/../evil', false],
    [['ghcr.io/ok/*'], 'ghcr.io/ok/', false],
    [['ghcr.io/ok/*'], 'ghcr.io/ok/:1', false],
    [['ghcr.io/*'], 'ghcr.io//evil', false],
  ])('list %j allows %s: %s', (patterns, image, expected) => {
    expect(allowsImage(patterns, image)).toBe(expected);
  });
});
