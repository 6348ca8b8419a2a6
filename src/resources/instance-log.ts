import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import type { LogLine } from '../kube/streams/pod-log.ts';
import type { KubeObject } from '../kube/types.ts';
import { AGE_COLUMN, berthType, type CustomResource } from './schema.ts';

/** What is kept of the log of a start: so many of its last lines, and so many bytes of text in them. */
export const KEPT = { lines: 2000, bytes: 64 * 1024 } as const;
/** The same of the container before the last restart. */
export const KEPT_PREVIOUS = { lines: 500, bytes: 16 * 1024 } as const;

/** Annotation: bytes of what is kept, so that a list of metadata says what the logs of a tenant take. */
export const LOG_BYTES = 'berth.dev/bytes';
/** Label: the number of the start. */
export const LOG_OF_START = 'berth.dev/start';

/** Characters of a packed log. What cannot be compressed, with the times of its lines, has fewer. */
const MOST_PACKED = 192 * 1024;
/** Bytes of an unpacked log. */
const MOST_UNPACKED = 1024 * 1024;

const packedSchema = (description: string): z.ZodString => z.string().max(MOST_PACKED).describe(description);

export const instanceLogSpecSchema = z.object({
  instance: z.string().max(253).describe('metadata.name of the instance.'),
  instanceUid: z.string().max(64).describe('metadata.uid of the instance.'),
  start: z.int().min(0).describe('Number of the start.'),
  lines: packedSchema(
    'The last lines of the container, each behind its time in RFC 3339, as UTF-8, gzip and base64: read them with `base64 -d` and `gunzip`.',
  ),
  previous: packedSchema('The same of the container before its last restart.').optional(),
  truncated: z.boolean().describe('Whether older lines were left out.'),
});

export type InstanceLogSpec = z.infer<typeof instanceLogSpecSchema>;
export interface InstanceLog extends KubeObject {
  spec: InstanceLogSpec;
}

export const INSTANCE_LOGS = berthType<InstanceLog>('InstanceLog', 'instancelogs');

/** The name of the log of a start: an instance of the same name later has others. */
export function instanceLogName(uid: string, start: number): string {
  return `l-${uid}-${start}`;
}

export function packLines(lines: readonly LogLine[]): string {
  return gzipSync(lines.map(({ time, text }) => `${time} ${text}\n`).join('')).toString('base64');
}

export function unpackLines(packed: string): LogLine[] {
  const text = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: MOST_UNPACKED }).toString('utf8');
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => {
    const space = line.indexOf(' ');
    return { time: line.slice(0, space), text: line.slice(space + 1) };
  });
}

export const instanceLogResource: CustomResource = {
  ...INSTANCE_LOGS,
  shortNames: ['ilog'],
  description:
    'The end of the log of one start that is over. It stays as long as the history of its instance, and older ones give way to newer ones of the tenant.',
  columns: [
    { name: 'Instance', type: 'string', jsonPath: '.spec.instance' },
    { name: 'Start', type: 'integer', jsonPath: '.spec.start' },
    AGE_COLUMN,
  ],
  spec: instanceLogSpecSchema,
};
