import { describe, expect, test } from 'vitest';
import { pullProblem } from '../../../src/resources/pod/pull-problem.ts';

/** Words of containerd 2 and CRI-O 1.34. */
const NOT_FOUND = 'failed to resolve reference "r.example/a:1": r.example/a:1: not found';
const DENIED =
  'failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://r.example/token: 401 Unauthorized';
const NETWORK = [
  'failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp 10.0.0.5:443: connect: connection refused',
  'failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp 10.0.0.5:443: i/o timeout',
  'failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp: lookup r.example on 10.96.0.10:53: no such host',
  'failed to do request: Head "https://r.example/v2/a/manifests/1": http: server gave HTTP response to HTTPS client',
  'failed to do request: Head "https://r.example/v2/a/manifests/1": tls: failed to verify certificate: x509: unknown authority',
  'unexpected status from HEAD request to https://r.example/v2/a/manifests/1: 503 Service Unavailable: <html>key=hunter2</html>',
  'Back-off pulling image "r.example/a:1"',
];

const of = (image: string, message: string, reason = 'ErrImagePull'): string =>
  pullProblem(image, { reason, message }).slice(`${image} cannot be pulled: `.length);

describe('what a tenant reads when an image does not come', () => {
  test.each([
    ['no such image', NOT_FOUND],
    ['no such image', 'reading manifest 1 in r.example/a: manifest unknown'],
    ['refuses the credentials', DENIED],
    ['refuses the credentials', 'pull access denied, repository does not exist or may require authorization: x'],
    ['too many requests', 'unexpected status from HEAD request: 429 Too Many Requests'],
    ['disk of the node is full', 'failed to extract layer: write /var/lib: no space left on device: unknown'],
    ['no variant for the processor', 'no match for platform in manifest: not found'],
  ])('is: %s', (words, message) => {
    expect(of('r.example/a:1', message)).toContain(words);
  });

  test('is the same for every failure of the network and every strange answer', () => {
    const told = new Set(NETWORK.map((message) => of('r.example/a:1', message)));
    expect([...told]).toEqual([expect.stringContaining('got no image from its registry')]);
  });

  test.each([
    '10.0.0.5:8080/x',
    '127.0.0.1:10250/x',
    '127.1:80/x',
    '0x7f.1:80/x',
    '169.254.169.254/latest:1',
    '[::1]:8080/x',
    '[fd00:ec2::254]/x',
    '[64:ff9b::a9fe:a9fe]/x',
    'localhost/x',
    'LOCALHOST:5000/x',
    'DB/x',
    'db:5432/x',
    'kubernetes.default.svc/x',
    'kubernetes.default.svc.cluster.local/x',
    'metadata.google.internal/x',
    'internal.corp:443/x',
    'registry.lan./x',
  ])('is one sentence for %s, whatever answers there', (image) => {
    const told = new Set([NOT_FOUND, DENIED, '429 Too Many Requests', ...NETWORK].map((said) => of(image, said)));
    expect(told.size).toBe(1);
  });

  test('is told of images of public registries, by name or address', () => {
    for (const image of ['debian:99', 'team/app', 'ghcr.io/a/b:1', 'r.example:5000/a', '8.8.8.8/a', 'r.example./a'])
      expect(of(image, NOT_FOUND)).toContain('no such image');
  });

  test('names what is no image at all', () => {
    expect(of('a//b', 'x', 'InvalidImageName')).toContain('no name of an image');
    expect(of('a', 'x', 'ErrImageNeverPull')).toContain('pulls no images');
  });

  test('no name of an image chooses its words', () => {
    expect(
      new Set(
        ['unauthorized:1', 'r.example/not-found', 'denied/x:toomanyrequests'].map((i) => of(i, `"${i}": i/o timeout`)),
      ).size,
    ).toBe(1);
  });
});
