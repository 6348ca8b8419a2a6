import { expect, test } from 'vitest';
import { readSinkUrl, SinkError } from '../../../src/sink/sink-url.ts';

const SECRET = 'correct-horse';

function refusalOf(url: string | undefined): string {
  try {
    readSinkUrl(url);
  } catch (error) {
    expect(error).toBeInstanceOf(SinkError);
    return (error as SinkError).message;
  }
  throw new Error('it was taken');
}

test('a URL says where the database is, and whether its certificate is checked', () => {
  expect(readSinkUrl(`postgresql://berth:p%40ss%2Fword@db.example.com/bills?sslmode=verify-full`)).toEqual({
    host: 'db.example.com',
    port: 5432,
    user: 'berth',
    password: 'p@ss/word',
    database: 'bills',
    ssl: { rejectUnauthorized: true },
  });
  const plain = readSinkUrl('postgres://berth@[fd00::1]:6432/bills?sslmode=disable');
  expect(plain).toMatchObject({ host: 'fd00::1', port: 6432, password: '', ssl: false });
});

test('a URL that does not say sslmode is refused, with both words to choose from', () => {
  const message = refusalOf(`postgresql://berth:${SECRET}@db/bills`);
  expect(message).toContain('BERTH_SINK_URL does not say sslmode. Add sslmode=verify-full');
  expect(message).toContain('sslmode=disable, for a database on the same node');
});

test.each(['require', 'verify-ca', 'prefer', ''])(
  'sslmode=%s is refused: it lets others pose as the database',
  (mode) => {
    expect(refusalOf(`postgresql://berth:${SECRET}@db/bills?sslmode=${mode}`)).toContain(
      'sslmode that Berth does not use',
    );
  },
);

test.each([
  [undefined, 'is not set'],
  ['', 'is not set'],
  [SECRET, 'is not the URL of a database'],
  [`mysql://berth:${SECRET}@db/bills?sslmode=disable`, 'is not the URL'],
  [`postgresql://${SECRET}/bills?sslmode=disable`, 'is not the URL'],
  [`postgresql://berth:${SECRET}@db?sslmode=disable`, 'is not the URL'],
  [`postgresql://berth:${SECRET}@one,two/bills?sslmode=disable`, 'is not the URL'],
  // A password with a character that ends a part of a URL.
  [`postgresql://berth:p@w/${SECRET}@db/bills?sslmode=disable`, 'is not the URL'],
  [`postgresql://berth:1#${SECRET}@db/bills?sslmode=disable`, 'is not the URL'],
  [`postgresql://berth:1?${SECRET}@db/bills?sslmode=disable`, 'is not the URL'],
  [`postgresql://u:w@berth/1?${SECRET}@db/bills?sslmode=disable`, 'has other parameters'],
  [`postgresql://berth:${SECRET}@db/bills?sslmode=verify-full&sslmode=disable`, 'has other parameters'],
  [`postgresql://berth:${SECRET}@db/bills?sslmode=verify-full&sslrootcert=/ca`, 'has other parameters'],
  [`postgresql://berth:%zz${SECRET}@db/bills?sslmode=disable`, 'has a % that encodes nothing'],
])('a URL that is none is refused without a word of it: %s', (url, why) => {
  const message = refusalOf(url);
  expect(message).toContain(`BERTH_SINK_URL ${why}`);
  expect(message).not.toContain(SECRET);
});
