// Section 2.1 of the specification of the HTTP interface: what it says of the creation payload, and what must come back.

export const INVALID = 'validation_failed';

export interface Line {
  says: string;
  /** Of several values that must all be answered alike, each is a row. A text is the body as it is sent. */
  bodies: readonly unknown[];
  status: number;
  /** `code` of an error. */
  code?: string;
}

/** One row for each body. */
export function rowsOf(lines: readonly Line[]) {
  return lines.flatMap(({ bodies, ...line }) =>
    bodies.map((body) => ({ ...line, body, short: JSON.stringify(body)?.slice(0, 60) })),
  );
}

const FIELDS = [
  'type',
  'ask_id',
  'name',
  'stats',
  'template_image',
  'template_id',
  'template_hash_id',
  'runtype',
  'disk_gb',
  'offer_disk_space',
  'install_monitoring',
  'ssh_key_ids',
];

const SHA = 'a'.repeat(64);
const image = (...names: string[]): { template_image: string }[] => names.map((name) => ({ template_image: name }));

/** Statements on POST /instances. */
export const CREATION: readonly Line[] = [
  { says: 'the body is a JSON object', bodies: ['[]', '1', '"x"', 'true'], status: 422, code: INVALID },
  { says: 'the body itself is optional', bodies: [undefined, '', 'null', ' '], status: 201 },
  {
    says: 'every field is optional and may be null',
    bodies: [{}, Object.fromEntries(FIELDS.map((field) => [field, null])), ...FIELDS.map((one) => ({ [one]: null }))],
    status: 201,
  },
  { says: 'type is 0 or 1', bodies: [{ type: 0 }, { type: 1 }], status: 201 },
  { says: 'type is 0 or 1', bodies: [{ type: 2 }, { type: -1 }, { type: '0' }, { type: true }], status: 422 },
  {
    says: 'ask_id is any integer',
    bodies: [
      ...[-1, 0, 1, 2 ** 31, 2 ** 53].map((ask_id) => ({ ask_id })),
      '{"ask_id":9007199254740993}',
      '{"ask_id":-170141183460469231731687303715884105728}',
      '{"ask_id":1e400}',
      '{"ask_id":1.0}',
      '{"ask_id":1e0}',
      '{"ask_id":-0}',
      '{"ask_id":5.21661997e8}',
    ],
    status: 409,
    code: 'offer_unavailable',
  },
  { says: 'ask_id is an integer', bodies: [{ ask_id: 1.5 }, { ask_id: '1' }, { ask_id: [1] }], status: 422 },
  {
    says: 'name has a maximum length, in characters and not in the units of any encoding',
    bodies: [
      { name: '' },
      { name: 'n'.repeat(128) },
      { name: '\u{1F680}'.repeat(128) },
      { name: '\u8bad'.repeat(128) },
    ],
    status: 201,
  },
  {
    says: 'name has a maximum length, in characters and not in the units of any encoding',
    bodies: [{ name: 'n'.repeat(129) }, { name: '\u{1F680}'.repeat(129) }, { name: 1 }],
    status: 422,
  },
  {
    says: 'of two fields of one name the last one counts',
    bodies: ['{"name":1,"name":"last"}', '{"type":2,"type":1}'],
    status: 201,
  },
  { says: 'of two fields of one name the last one counts', bodies: ['{"name":"first","name":1}'], status: 422 },
  { says: 'stats is a string', bodies: [{ stats: 1 }, { stats: {} }], status: 422 },
  {
    says: 'template_image matches the pattern',
    bodies: image(
      '',
      'a',
      'debian:12',
      'a/b/c.d_e-f:1.2-3_4',
      `a@sha256:${SHA}`,
      `a@sha256:${SHA.toUpperCase()}`,
      'ghcr.io/o/p:latest',
      `${'a'.repeat(500)}:12345678901`,
    ),
    status: 201,
  },
  {
    says: 'template_image matches the pattern',
    bodies: image(
      'Debian',
      '-a',
      'a b',
      'a:',
      'a:.',
      'a\n',
      '\u00e9',
      `a@sha256:${SHA.slice(1)}`,
      `a@sha512:${SHA}`,
      `a:1@sha256:${SHA}x/`,
      'localhost:5000/a',
    ),
    status: 422,
    code: INVALID,
  },
  { says: 'template_image has a maximum length', bodies: image('a'.repeat(513)), status: 422 },
  {
    says: 'template_id is any integer',
    bodies: [{ template_id: -1 }, { template_id: 0 }, '{"template_id":9007199254740993}', '{"template_id":-1e999}'],
    status: 404,
    code: 'template_not_found',
  },
  { says: 'template_id is an integer', bodies: [{ template_id: 0.5 }, { template_id: '1' }], status: 422 },
  { says: 'template_hash_id has a maximum length', bodies: [{ template_hash_id: 'h'.repeat(65) }], status: 422 },
  {
    says: 'template_hash_id is a string',
    bodies: [{ template_hash_id: 'unknown' }, { template_hash_id: 'h'.repeat(64) }],
    status: 404,
    code: 'template_not_found',
  },
  { says: 'template_hash_id is a string', bodies: [{ template_hash_id: '' }], status: 201 },
  { says: 'runtype is a string', bodies: [{ runtype: 1 }, { runtype: [] }], status: 422 },
  {
    says: 'disk_gb has a minimum and a maximum',
    bodies: [{ disk_gb: 1 }, { disk_gb: 20 }, '{"disk_gb":2e1}', '{"disk_gb":20.0}'],
    status: 201,
  },
  {
    says: 'disk_gb has a minimum and a maximum',
    bodies: [{ disk_gb: 0 }, { disk_gb: 16_385 }, { disk_gb: 1e20 }, '{"disk_gb":1e400}', { disk_gb: 1.5 }],
    status: 422,
    code: INVALID,
  },
  {
    says: 'disk_gb may be as large as its maximum, which no offer has',
    bodies: [{ disk_gb: 16_384 }],
    status: 409,
    code: 'offer_unavailable',
  },
  {
    says: 'offer_disk_space is a number with a minimum and a maximum',
    bodies: [{ offer_disk_space: 0 }, { offer_disk_space: 0.5 }],
    status: 201,
  },
  {
    says: 'offer_disk_space is a number with a minimum and a maximum',
    bodies: [{ offer_disk_space: -0.1 }, { offer_disk_space: 1_048_577 }, { offer_disk_space: '1' }],
    status: 422,
    code: INVALID,
  },
  {
    says: 'offer_disk_space may be as large as its maximum, which no offer has',
    bodies: [{ offer_disk_space: 1_048_576 }],
    status: 409,
    code: 'offer_changed',
  },
  {
    says: 'install_monitoring is true or false',
    bodies: [{ install_monitoring: true }, { install_monitoring: false }],
    status: 201,
  },
  {
    says: 'install_monitoring is true or false',
    bodies: [{ install_monitoring: 1 }, { install_monitoring: 'true' }],
    status: 422,
  },
  { says: 'ssh_key_ids is an array of integers', bodies: [{ ssh_key_ids: [] }], status: 201 },
  {
    says: 'ssh_key_ids is an array of integers, each of a stored SSH key',
    bodies: [
      { ssh_key_ids: [1] },
      { ssh_key_ids: [0.5] },
      { ssh_key_ids: ['1'] },
      { ssh_key_ids: [null] },
      { ssh_key_ids: 1 },
      '{"ssh_key_ids":[9007199254740993]}',
    ],
    status: 422,
    code: INVALID,
  },
];
