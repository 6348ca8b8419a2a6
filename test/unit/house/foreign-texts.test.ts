import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { readDcgm } from '../../../src/http/features/metrics/dcgm.ts';
import { readReport } from '../../../src/http/features/metrics/measured.ts';
import { cutList } from '../../../src/http/features/metrics/report-pieces.ts';
import { createSshKeySchema } from '../../../src/http/features/ssh-keys/schema.ts';
import { templateContentSchema } from '../../../src/http/features/templates/schema.ts';
import { createWebhookSchema } from '../../../src/http/features/webhooks/schema.ts';
import { wantsEvents } from '../../../src/http/interface/events/event-stream.ts';
import { toApiError } from '../../../src/http/interface/errors/from-error.ts';
import { idempotencyKey } from '../../../src/http/interface/idempotency.ts';
import { pathOf } from '../../../src/http/interface/step.ts';
import { methodsAt } from '../../../src/http/server/methods.ts';
import { parseLoad } from '../../../src/gateway/balance/load-metrics.ts';
import { readForm } from '../../../src/gateway/calls/multipart.ts';
import { decodeReasoning } from '../../../src/gateway/dialects/encrypted-content.ts';
import { readUpstreamError } from '../../../src/gateway/dialects/errors/upstream-error.ts';
import { SseReader } from '../../../src/gateway/dialects/stream/sse-reader.ts';
import { readServer } from '../../../src/gateway/discovery/server-spec.ts';
import { hasVersion } from '../../../src/lib/etag.ts';
import { readSelectors } from '../../../src/inventory/devices/selectors.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import { parseQuantity } from '../../../src/kube/quantity.ts';
import { rangeOf } from '../../../src/lib/ip-range.ts';
import { readAccessToken } from '../../../src/ports/access-token.ts';
import { portHostOf } from '../../../src/ports/address.ts';
import { parseReport } from '../../../src/resources/activity-lease.ts';
import { parseMoney } from '../../../src/resources/money.ts';
import { parseDuration } from '../../../src/resources/schema.ts';
import { sshKeySpecSchema } from '../../../src/resources/ssh-key.ts';
import { parseSshPublicKey } from '../../../src/resources/ssh-public-key.ts';
import { allowsImage } from '../../../src/resources/tenants/ceilings.ts';
import { readTraceContext } from '../../../src/runtime/tracing/trace-context.ts';
import { parseAuthorizedKey } from '../../../src/ssh/login/authorized-key.ts';
import { readCertificate } from '../../../src/ssh/login/certificate.ts';
import { readMonitorLine } from '../../../src/ssh/session/check-login.ts';
import { parseUserName } from '../../../src/ssh/login/user-name.ts';
import { tokenExpiry } from '../../../src/web/sign-in-token.ts';
import { cpuTime } from '../../support/cpu-time.ts';

const KIB = 1024;
/** Of all headers of a request together, as Node's server takes them. */
const HEADERS = 16 * KIB;
/** Of a body of the HTTP interface. */
const BODY = 1024 * KIB;
/** Of all annotations of an object together, as Kubernetes takes them. */
const ANNOTATIONS = 256 * KIB;

/** Of an expression in a DeviceClass, as Kubernetes takes it. */
const SELECTOR = 10 * KIB;

const ANNOTATION_NAMES = [
  'model-port',
  'model-path-prefix',
  'model-engine',
  'model-dialects',
  'model-aliases',
  'model-names',
  'model-credential',
  'scale-target',
  'scale-idle-seconds',
  'price-input',
  'price-currency',
];
const EVERYWHERE = { own: 'team', find: () => undefined, mayScale: () => true };

function serviceWith(name: string, text: string) {
  const others = { 'berth.dev/scale-target': 'deployments.apps/x', 'berth.dev/price-input': '1' };
  const annotations = { ...others, [`berth.dev/${name}`]: text };
  return { metadata: { name: 's', namespace: 'team', labels: { 'berth.dev/model-server': 'true' }, annotations } };
}

/** Each parser of what a caller, a tenant, an engine or an object of the cluster writes, and the longest text it gets. */
const PARSERS: readonly [name: string, length: number, parse: (text: string) => unknown, start?: string][] = [
  ['a public key', 16 * KIB, parseSshPublicKey, 'ssh-ed25519 A'],
  ['options of a public key', 16 * KIB, parseSshPublicKey, 'cert-authority,principals="'],
  ['a key of an SSHKey', 16 * KIB, (text) => parseAuthorizedKey(text, 'a/k', 1), 'ssh-rsa AAAAB3NzaC1yc2E'],
  ['an SSHKey', 16 * KIB, (publicKey) => sshKeySpecSchema.parse({ publicKey, displayName: '' })],
  [
    'a certificate',
    32 * KIB,
    (text) => readCertificate(Buffer.from(text)),
    '\0\0\0\u001cssh-ed25519-cert-v01@openssh.com',
  ],
  ['the name of a login', 32 * KIB, parseUserName, 'i-1.'],
  ['a quantity', 32 * KIB, parseQuantity, '1'],
  ['a report of activity', ANNOTATIONS, parseReport, '{"since":"'],
  ...ANNOTATION_NAMES.map((name): (typeof PARSERS)[number] => [
    name,
    ANNOTATIONS,
    (text) => readServer(serviceWith(name, text), EVERYWHERE),
    '/',
  ]),
  ['an image of an instance', BODY, (image) => createInstanceSchema.parse({ template_image: image }), 'a'],
  ['an image under a ceiling', 512, (image) => allowsImage(['docker.io/library/*'], image), 'a'],
  ['a run type', BODY, (runtype) => createInstanceSchema.parse({ runtype }), 'ssh'],
  ['the name of a variable', BODY, (key) => templateContentSchema.parse({ name: 't', env: { [key]: 'x' } }), 'A'],
  ['a new SSH key', BODY, (text) => createSshKeySchema.parse({ public_key: text, name: 'n' }), 'ssh-ed25519 '],
  [
    'a report of an instance',
    BODY,
    (text) => void readReport(text, 0).catch(() => undefined),
    '{"gpus":[],"series":[],"totals":{"',
  ],
  ['series of a report', BODY, (text) => cutList(Buffer.from(text), 'series', 528), '{"series":['],
  ['a URL of a webhook', BODY, (url) => createWebhookSchema.parse({ url }), 'https://a.'],
  ['an Idempotency-Key', HEADERS, (text) => idempotencyKey({ 'idempotency-key': text })],
  ['Accept', HEADERS, (accept) => wantsEvents({ headers: { accept } } as never), ','],
  ['traceparent', HEADERS, (traceparent) => readTraceContext({ traceparent, tracestate: traceparent })],
  ['Host', HEADERS, (host) => portHostOf(host, new URL('https://ports.example')), '80-'],
  ['a path', HEADERS, (url) => methodsAt(pathOf({ url })), '/models/'],
  ['a refusal of Kubernetes', ANNOTATIONS, (body) => toApiError(toKubeError('POST /', { status: 403, body }))],
  ['an error of an engine', 64 * KIB, (text) => readUpstreamError(500, text), '{"error":{"message":"'],
  ['a page of an engine', 64 * KIB, (text) => readUpstreamError(500, text), ' '],
  ['metrics of an engine', BODY, (text) => parseLoad('vllm', text, 0), 'vllm:num_requests_waiting{'],
  ['metrics of GPUs', BODY, (text) => readDcgm(text, { namespace: 'a', name: 'pod' }, 0), 'DCGM_FI_X{pod="pod",'],
  ['the type of a form', HEADERS, (type) => readForm(Buffer.from('--b'), type), 'multipart/form-data; '],
  ['a form', 256 * KIB, (text) => readForm(Buffer.from(text), 'multipart/form-data; boundary=b'), '--b\r\n'],
  ['an amount of money', ANNOTATIONS, (text) => parseMoney(text.slice(0, -1))],
  ['a duration', ANNOTATIONS, (text) => parseDuration(text.slice(0, -1))],
  ['a network of a NetworkPolicy', ANNOTATIONS, rangeOf, '::'],
  [
    'a selector of a DeviceClass',
    SELECTOR,
    (expression) => readSelectors({ spec: { selectors: [{ cel: { expression } }] } }),
    "device.attributes['",
  ],
  ['reasoning that a client sends back', BODY, decodeReasoning, 'berth1.'],
  ['what a shell writes before the state of an exporter', 256, readMonitorLine],
  ['a token of a port', HEADERS, (text) => readAccessToken(text, { key: Buffer.alloc(32), kind: 'cookie', now: 0 })],
  ['a token of the dashboard', HEADERS, tokenExpiry, 'a.'],
  ['If-None-Match', HEADERS, (text) => hasVersion(text, 'W/"x"'), 'W/'],
  ['an event of a stream', 256 * KIB, (text) => new SseReader(() => undefined).push(Buffer.from(text)), 'data: '],
];

/**
 * Parsers that need no line of their own. The first ones parse JSON, whose pieces are counted before; the others are parts
 * of parsers that are here, one reads what the operator sets, and one takes a token of a bounded length to a library.
 */
const COVERED = new Set([
  'parseAnswer',
  'parseBody',
  'parseJson',
  'readAnswer',
  'readAnswerExactly',
  'readEvent',
  'readItems',
  'readJson',
  'decodeSummary',
  'parseBalance',
  'parseNetwork',
  'readAmount',
  'readStrings',
  'readSinkUrl',
  'readPersonToken',
]);
/** Programs of the user, and what starts a role. */
const NO_ROLE = /^src\/(?:cli|commands|config|web\/page)\//;
const PARSER = /export (?:async )?function ((?:parse|read|decode|cut)[A-Z]\w*)\(\s*\w+: (?:string|Buffer)\b/g;

const CHARACTERS = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at));
const PIECES = [
  ...CHARACTERS,
  '\n',
  '\r\n',
  '\t',
  '\0',
  'é',
  '😀',
  '\ud800',
  'a-',
  'a.',
  'A1',
  '=A',
  '::',
  'a:80 ',
  '..',
  './',
  '","',
  '\\"',

  '{"',
  '{"a":[',
  'a="',
  '1h',
  '="\\"',
  '-----',
  '; b=',
  ', ',
  '\r\n--b\r\n',
  'vllm:num_requests_waiting 1\n',
  'data: x\n\n',
  'is forbidden: exceeded quota: berth, requested: used: count/a.b=1',
  "ValidatingAdmissionPolicy 'x-ceilings' ",
];

/** A safety property, far from what a text of this length takes, in milliseconds of the thread. */
const MOST_MS = 5;
/**
 * On a slow or busy machine a text may take as long as this many plain passes over the bytes of a body: twice what the
 * costliest takes, because other programs on the same core slow what it does more than a plain pass.
 */
const PASSES = 16;
const BYTES = Buffer.alloc(BODY, 'a');

/** Looks at one text. A busy machine needs more of them, a quiet one takes the first. */
const MOST_LOOKS = 25;
/** Some kernels count the time of a thread in steps of 4 ms. */
const TURNS = 4;

function passes(): number {
  let lines = 0;
  for (let turn = 0; turn < TURNS; turn += 1)
    for (let at = 0; at < BYTES.length; at += 1) if (BYTES[at] === 0x0a) lines += 1;
  return lines;
}

/** A text that is no longer than that where it stands in JSON, in bytes: as it comes in, not put together from parts. */
function longText(start: string, piece: string, length: number): string {
  const bytes = (text: string) => Buffer.byteLength(JSON.stringify(text));
  const pieces = Math.max(1, Math.ceil(length / Math.max(piece.length, bytes(piece) - 2)));
  return JSON.parse(JSON.stringify(`${(start + piece.repeat(pieces)).slice(0, length - 1)}~`)) as string;
}

it('every parser of a text stands here', () => {
  const root = join(import.meta.dirname, '../../..');
  const used = PARSERS.map(({ 2: parse }) => `${parse.name} ${String(parse)}`).join(' ');
  const paths = globSync('src/**/*.ts', { cwd: root }).filter((path) => !NO_ROLE.test(path));
  const names = paths.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(PARSER)].map(([, name = '']) => name),
  );
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !COVERED.has(name) && !used.includes(name))).toEqual([]);
});

describe('texts of others take little of the thread at their greatest length', () => {
  it.each(PARSERS)('%s', async (_name, length, parse, start = '') => {
    const slow: string[] = [];
    const tried = (text: string): void => {
      try {
        parse(text);
      } catch {
        // A refusal is an answer, too.
      }
    };
    for (const piece of PIECES) {
      const text = longText(start, piece, length);
      const timesOf = async (turns: number): Promise<number> => {
        const work = () => {
          for (let turn = 0; turn < turns; turn += 1) tried(text);
        };
        return (await cpuTime(work)) / turns;
      };
      let least = await timesOf(1);
      // The least of several: other threads, the compiler and the collector take their time, too.
      let pass = Number.POSITIVE_INFINITY;
      let most = MOST_MS;
      for (let look = 0; look < MOST_LOOKS && least > most; look += 1) {
        pass = Math.min(pass, (await cpuTime(passes)) / TURNS);
        most = Math.max(MOST_MS, PASSES * pass);
        least = Math.min(least, await timesOf(TURNS));
      }
      if (least > most) slow.push(`${JSON.stringify(piece)}: ${Math.round(least)} ms`);
    }
    expect(slow).toEqual([]);
  });
});
