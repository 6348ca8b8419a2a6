import type { Json } from '../../lib/json.ts';
import { unsupported } from './errors/dialect-error.ts';
import { excerpt, optionalString } from './fields.ts';
import type { Part } from './types.ts';

const TEXT_TYPES = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh))(?:;[^,]*)?$/i;
/** SVG is a picture to most, and text. Other images are input_image. */
const DATA_URL = /^data:([^,]*?)(;base64)?,/i;

/** A file that comes as data: a text file becomes text, with its name before it. Throws DialectError for any other. */
export function textFile(part: Json, path: string): Part & { type: 'text' } {
  const data = optionalString(part.file_data);
  if (data === undefined) {
    const given = part.file_id === undefined ? 'file_url' : 'file_id';
    const why =
      given === 'file_id' ? 'Uploaded files are not available.' : 'The gateway does not fetch files from addresses.';
    throw unsupported(`${path}.${given}`, `${why} Send text files as 'file_data', a base64 data URL.`);
  }
  const head = DATA_URL.exec(data);
  if (head === null) throw unsupported(`${path}.file_data`, "Send 'file_data' as a base64 data URL.");
  const [prefix, type = '', base64] = head;
  if (!isTextType(type)) {
    throw unsupported(
      `${path}.file_data`,
      `Files of type '${excerpt(type)}' are not supported, only text files. Extract the text in the client.`,
    );
  }
  const body = data.slice(prefix.length);
  const text = base64 === undefined ? decoded(body, path) : Buffer.from(body, 'base64').toString('utf8');
  const name = optionalString(part.filename);
  return { type: 'text', text: name === undefined ? text : `${name}:\n${text}` };
}

function decoded(body: string, path: string): string {
  try {
    return decodeURIComponent(body);
  } catch {
    throw unsupported(`${path}.file_data`, "Send 'file_data' as a base64 data URL.");
  }
}

/** Whether a data URL is that of a file of text. */
export function isTextData(url: string): boolean {
  return isTextType(DATA_URL.exec(url)?.[1] ?? '');
}

/** Whether files of a media type are text. */
export function isTextType(type: string): boolean {
  return TEXT_TYPES.test(type);
}
