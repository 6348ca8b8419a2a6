import { LocalFailure } from '../failure.ts';
import { lastLines } from '../shell.ts';

interface Diagnosis {
  pattern: RegExp;
  cause: string;
  remedy: string;
}

const DIAGNOSES: readonly Diagnosis[] = [
  {
    pattern: /no space left on device|disk quota exceeded/i,
    cause: 'the disk is full',
    remedy:
      'Free 8 GB, or set BERTH_CACHE to a folder on a larger disk, and run the command again: it continues from here.',
  },
  {
    pattern: /go: (?:errors parsing|download) .*toolchain|requires go >= |go\.mod requires go|toolchain not available/i,
    cause: 'this Go is too old and may not fetch a newer one',
    remedy: 'Install the Go version named below, or unset GOTOOLCHAIN so that Go 1.21 or newer can fetch it.',
  },
  {
    pattern:
      /dial tcp|lookup .* (?:no such host|server misbehaving)|i\/o timeout|TLS handshake timeout|connection refused|proxyconnect/i,
    cause: 'the Go module proxy cannot be reached',
    remedy:
      'Check the network, or set GOPROXY (and HTTPS_PROXY) to a proxy that can be reached, and run the command again.',
  },
  {
    pattern: /verifying .*: checksum mismatch|SECURITY ERROR/i,
    cause: 'a downloaded module is not the one that go.sum locks',
    remedy: 'Do not use this proxy: set GOPROXY to one you trust, delete the go/mod folder of the cache, try again.',
  },
  {
    pattern: /signal: killed|cannot allocate memory|out of memory/i,
    cause: 'the compiler was killed, usually because memory ran out',
    remedy:
      'Give the machine 4 GB of memory or more, or set GOFLAGS=-p=1, and run the command again: it continues from here.',
  },
];

/** Turns the output of a failed `go` command into a cause and a remedy, with go's own last lines. */
export function diagnoseBuild(program: string, output: string): LocalFailure {
  const found = DIAGNOSES.find(({ pattern }) => pattern.test(output));
  const cause = found?.cause ?? 'the Go compiler reported an error';
  const remedy = found?.remedy ?? 'Read the lines below; run the command again to continue from this program.';
  return new LocalFailure(`Building ${program} failed: ${cause}.`, remedy, lastLines(output, 12));
}
