import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LogLine, logLines, stampOf } from '../../../src/kube/streams/pod-log.ts';

async function read(...chunks: (string | Buffer)[]): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const batch of logLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))) lines.push(...batch);
  return lines;
}

const AT = '2026-01-01T00:00:00.000000001Z';

describe('the lines of a log', () => {
  it('are the same however the bytes are cut', async () => {
    const whole = Buffer.from(`${AT} ä\n${AT} \n${AT} b b\n`);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(whole.length)), async (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
        const chunks = at.slice(1).map((end, index) => whole.subarray(at[index], end));
        expect((await read(...chunks)).map(({ text }) => text)).toEqual(['ä', '', 'b b']);
      }),
    );
  });

  it('have times that compare, whatever the zone of the node', () => {
    expect(stampOf('2026-01-01T01:30:00.5+01:30')).toBe('2026-01-01T00:00:00.500000000Z');
    expect(stampOf('2026-01-01T00:00:00Z')).toBe('2026-01-01T00:00:00.000000000Z');
    expect(stampOf('2026-13-01T00:00:00Z')).toBeUndefined();
    expect(stampOf('unable to retrieve')).toBeUndefined();
  });

  it('are what has a time: no words of the kubelet, no end of a line without its begin', async () => {
    const lines = await read(`rest of a line\n${AT} a\nfailed to watch the log\n${AT} b`);
    expect(lines.map(({ text }) => text)).toEqual(['a', 'b']);
  });

  it('come without a last line whose rest may follow, when the stream breaks', async () => {
    const stream = new PassThrough();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const batch of logLines(stream)) seen.push(...batch.map(({ text }) => text));
    })();
    stream.write(`${AT} a\n${AT} hal`);
    setImmediate(() => stream.destroy(new Error('reset')));
    await expect(reading).rejects.toThrow('reset');
    expect(seen).toEqual(['a']);
  });

  it('are cut where a program writes no line break', async () => {
    const [line, next] = await read(`${AT} `, ...Array.from({ length: 100 }, () => 'x'.repeat(10_000)), `\n${AT} b\n`);
    expect(line?.text.length).toBeLessThan(66_000);
    expect(line?.text).toMatch(/x \[line cut by Berth\]$/);
    expect(next?.text).toBe('b');
  });
});
