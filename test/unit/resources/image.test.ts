import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { hasImage } from '../../../src/inventory/offers.ts';
import { parseBody } from '../../../src/http/interface/validate.ts';
import { IMAGE_PATTERN, isRunnable, REQUESTED_IMAGE_PATTERN } from '../../../src/resources/image.ts';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceTemplateSpecSchema } from '../../../src/resources/instance-template.ts';
import { registryCredentialSpecSchema } from '../../../src/resources/registry-credential.ts';

const DIGEST = `sha256:${'0a'.repeat(32)}`;
const BEYOND_HTTP = [
  'registry.example.com:5000/team/app:1',
  'localhost:5000/x',
  '[fd00::1]:5000/team/app',
  'Registry.example.com/team/app',
  `debian:12@${DIGEST}`,
  `registry.example.com:5000/team/app:1@${DIGEST}`,
  `app@sha512:${'0a'.repeat(64)}`,
  'app:_x',
];

describe('an image that a runtime takes', () => {
  it.each(['debian', 'debian:12', `debian@${DIGEST}`, 'ghcr.io/a/b-c/d_e:V1.2', 'a__b/c--d', ...BEYOND_HTTP])(
    'may be %s',
    (image) => expect(isRunnable(image)).toBe(true),
  );

  it.each([
    'a:@x',
    'a:-x',
    `a:${'t'.repeat(129)}`,
    `a@${DIGEST.toUpperCase().replace('SHA', 'sha')}`,
    'a-',
    'a/b_',
    'a/-b',
    'a.b./c',
    'a//b',
    'a/',
    'a/..',
    `a@sha256:${'a'.repeat(63)}`,
  ])('is not %s, which requests may name', (image) => expect(isRunnable(image)).toBe(false));

  it('is found out about in no time', () => {
    for (const image of ['a-'.repeat(256), 'a.'.repeat(256), `${'a'.repeat(511)}!`, `${'a/'.repeat(255)}!`])
      expect(isRunnable(image)).toBe(false);
  });
});

describe('an image', () => {
  it.each(['', 'debian', 'debian:12', `debian@${DIGEST}`, 'ghcr.io/a/b-c/d_e:V1.2', ...BEYOND_HTTP])(
    'of an instance or a template may be %s, as Kubernetes takes it',
    (image) => {
      expect(gpuInstanceSpecSchema.safeParse({ image }).success).toBe(true);
      expect(instanceTemplateSpecSchema.safeParse({ image }).success).toBe(true);
    },
  );

  it.each([
    'Debian',
    'app:',
    'app@',
    'app@sha256:abc',
    'app 1',
    'https://ghcr.io/app',
    'host:port/app',
    'host:123456/app',
    ':5000/app',
    'app:1:2',
    `app@${DIGEST}@${DIGEST}`,
    '[::1/app',
    'app\n',
  ])('is not %j', (image) => {
    expect(gpuInstanceSpecSchema.safeParse({ image }).success).toBe(false);
  });

  it('of the specification of the HTTP interface is one', () => {
    fc.assert(
      fc.property(fc.stringMatching(new RegExp(REQUESTED_IMAGE_PATTERN.source)), (image) => {
        expect(image).toMatch(IMAGE_PATTERN);
      }),
    );
  });

  it.each(BEYOND_HTTP)('over HTTP is none that the specification refuses, and the answer says why: %s', (image) => {
    expect(() => parseBody(createInstanceSchema, { template_image: image })).toThrow(
      expect.objectContaining({
        extra: {
          fields: [{ path: 'template_image', expected: expect.stringContaining('neither the port of a registry') }],
        },
      }),
    );
  });

  it.each([
    [`debian:12@${DIGEST}`, `docker.io/library/debian@${DIGEST}`, true],
    [`r:5000/a:1@${DIGEST}`, `r:5000/a@${DIGEST}`, true],
    ['r:5000/a', 'r:5000/a:latest', true],
    ['r:5000/a:1', 'r:5001/a:1', false],
  ])('%s is on a node that has %s: %s', (image, there, expected) => {
    expect(hasImage({ images: new Set([there]) }, image)).toBe(expected);
  });
});

it.each([
  ['ghcr.io', true],
  ['registry.example.com:5000', true],
  ['localhost:5000', true],
  ['registry:port', false],
  ['registry:', false],
  ['https://ghcr.io', false],
])('credentials are for the registry %s: %s', (server, expected) => {
  expect(registryCredentialSpecSchema.safeParse({ server, username: 'u' }).success).toBe(expected);
});
