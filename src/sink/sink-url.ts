import type { ClientConfig } from 'pg';

/** The database cannot be used as it is named. The message says what to do, and nothing of a password. */
export class SinkError extends Error {
  override name = 'SinkError';
}

export type Place = Required<Pick<ClientConfig, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl'>>;

const SAMPLE = 'postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full';
const MODES = `Add sslmode=verify-full, so that nobody else can pose as the database; its certificate must be for the host of the URL. Or sslmode=disable, for a database on the same node: then the password and all bills go over the network as they are.`;

function refuse(why: string): never {
  throw new SinkError(`BERTH_SINK_URL ${why}`);
}

/** Whether the certificate of the database is checked; all else that libpq knows lets others in between. */
function sslOf(parameters: URLSearchParams): Place['ssl'] {
  const names = [...parameters.keys()];
  // Not the name of the parameter: it may be the end of a password.
  if (names.some((name) => name !== 'sslmode') || names.length > 1)
    refuse(
      `has other parameters than one sslmode. Write it as ${SAMPLE}, with / ? # @ in a password as %2F %3F %23 %40.`,
    );
  const mode = parameters.get('sslmode');
  if (mode === 'verify-full') return { rejectUnauthorized: true };
  if (mode === 'disable') return false;
  return refuse(mode === null ? `does not say sslmode. ${MODES}` : `has an sslmode that Berth does not use. ${MODES}`);
}

/** Reads the URL of the database. Throws SinkError, whose message repeats nothing of it. */
export function readSinkUrl(text: string | undefined): Place {
  if (!text) refuse(`is not set. Set it to the database: ${SAMPLE}.`);
  const url = URL.parse(text);
  const isRight = url !== null && ['postgresql:', 'postgres:'].includes(url.protocol);
  const database = url?.pathname.slice(1) ?? '';
  // A character of the password that should be encoded ends the host where it must not end.
  const isCut = url?.hash !== '' || /[/@]/.test(database) || url.hostname.includes(',');
  if (!isRight || isCut || url.hostname === '' || url.username === '' || database === '')
    refuse(`is not the URL of a database. Write it as ${SAMPLE}, with / ? # @ in a password as %2F %3F %23 %40.`);
  const ssl = sslOf(url.searchParams);
  try {
    return {
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? 5432 : Number(url.port),
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: decodeURIComponent(database),
      ssl,
    };
  } catch {
    return refuse('has a % that encodes nothing. Write % in a password as %25.');
  }
}
