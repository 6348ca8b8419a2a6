import { isObject, type Json } from '../../../lib/json.ts';
import { invalid, unsupported } from '../errors/dialect-error.ts';
import { isFreeData } from './free-data.ts';

/** Fields that name something to fetch, in any of the dialects and at any engine. */
const MEDIA_NAME = /(?:^|_)(?:ur[il]s?|(?:image|video|audio|media|img|picture)(?:s|_data)?)$/;
/** Fields with the data itself, which an engine might take for an address. */
const DATA_NAME = /^(?:data|file|file_data|source)$|(?:^|_)(?:path|src|href|link)$/;
const SCHEME = /^[\s\p{Cc}]*[a-z][a-z0-9+.\p{Cc}-]*:/iu;
const SCHEME_CHARS = 64;
/** Quotations, which say where they are from. */
const QUOTED = /^(?:url_citation|web_search_result|web_search_result_location|web_fetch_result|search_result)$/;
/** https and http at their own ports, in the one spelling that all readers of addresses split in the same way. */
const PLAIN_ADDRESS =
  /^https?:\/\/((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9]))(?:\/[!-[\]-~]*)?$/;
const ADDRESS_MAX = 2048;
/** Images, sounds and films of one call, as data or by address. OpenAI takes 1,500 images, Anthropic 600. */
const MOST_MEDIA = 2048;
/** Each is held against the hosts that each server of the model may fetch from. */
const MOST_HOSTS = 100;

/** Something that the model server would have to fetch, the first from its host. */
export interface RemoteMedia {
  /** Where the body names it (`messages[0].content[1].image_url.url`). */
  path: string;
  host: string;
}

/**
 * What a model server would have to fetch for a body: everything but `data:` in a field that names media. An address is
 * for the operator to allow by its host. Throws DialectError for one that no operator can allow: another scheme, an
 * address in numbers, a port, a user, or a spelling that readers split in different ways. Throws it, too, for more media
 * than any client has: each is work for everybody's gateway and for an engine.
 */
export function remoteMedia(value: unknown, path = ''): RemoteMedia[] {
  const found = new Map<string, RemoteMedia>();
  let count = 0;
  const visit = (value: unknown, path: string, names?: 'media' | 'data'): void => {
    if (typeof value === 'string') {
      const isAddress =
        names === 'data' ? SCHEME.test(value.slice(0, SCHEME_CHARS)) : names === 'media' && value !== '';
      if (!isAddress) return;
      count += 1;
      if (count > MOST_MEDIA) throw invalid(path, `expected at most ${MOST_MEDIA} media in one call`);
      if (value.startsWith('data:')) return;
      const host = hostOf(value, path);
      if (!found.has(host)) found.set(host, { path, host });
      if (found.size > MOST_HOSTS) throw invalid(path, `expected addresses of at most ${MOST_HOSTS} hosts in one call`);
    } else if (Array.isArray(value)) {
      // A prompt may be half a million numbers.
      for (const [index, inner] of value.entries())
        if (typeof inner !== 'number') visit(inner, `${path}[${index}]`, names);
    } else if (isObject(value)) {
      for (const [name, inner] of Object.entries(value))
        if (!isFreeData(name, value, path === ''))
          visit(inner, path === '' ? name : `${path}.${name}`, meaningOf(name, value));
    }
  };
  visit(value, path);
  return [...found.values()];
}

function meaningOf(written: string, { type, modality }: Json): 'media' | 'data' | undefined {
  const name = written.toLowerCase();
  if (typeof type === 'string' && QUOTED.test(type) && (name === 'url' || name === 'source')) return undefined;
  // Infinity takes the texts of embeddings for addresses then.
  const isInput = name === 'input' && typeof modality === 'string' && modality !== 'text';
  if (isInput || MEDIA_NAME.test(name)) return 'media';
  return DATA_NAME.test(name) && type !== 'text' ? 'data' : undefined;
}

function hostOf(address: string, path: string): string {
  const host = address.length > ADDRESS_MAX ? undefined : PLAIN_ADDRESS.exec(address)?.[1];
  if (host !== undefined) return host;
  throw unsupported(
    path,
    `'${path}' is an address that no model server may fetch. Send the data itself as a data: URL, or a plain https address of a host that the operator allows.`,
  );
}

/** Texts of a prompt that Text Generation Inference joins. */
const PROMPT_NAMES: ReadonlySet<string> = new Set([
  'messages',
  'input',
  'output',
  'prompt',
  'system',
  'instructions',
  'content',
  'text',
  'image_url',
  'url',
  'parts',
]);
const IMAGE_IN_TEXT = /!\[\]\(https?:/;

/**
 * Text Generation Inference joins the parts of a message, writes tools, calls and roles into the prompt, and fetches what
 * that names as images of Markdown. Throws DialectError 400 for such a text.
 */
export function refuseImagesInText(body: unknown): void {
  const texts: string[] = [];
  let isNamed = false;
  const visit = (value: unknown, isPrompt: boolean): void => {
    if (typeof value === 'string') {
      isNamed ||= IMAGE_IN_TEXT.test(value);
      if (isPrompt) texts.push(value);
    } else if (Array.isArray(value)) for (const inner of value) visit(inner, isPrompt);
    else if (isObject(value))
      for (const [name, inner] of Object.entries(value)) {
        isNamed ||= IMAGE_IN_TEXT.test(name);
        visit(inner, isPrompt && PROMPT_NAMES.has(name));
      }
  };
  visit(body, true);
  if (isNamed || IMAGE_IN_TEXT.test(texts.join('')))
    throw unsupported(
      'messages',
      "The engine of this model fetches what a text names as '![](http…)'. Take it out, or write it in another way.",
    );
}
