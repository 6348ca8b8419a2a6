import { isObject, type Json } from '../../../lib/json.ts';
import { textValue } from '../fields.ts';
import { isTextData, isTextType } from '../text-files.ts';

/** A message, its parts, and the parts of a tool result. */
const MEDIA_DEPTH = 3;

/** An image, a sound, or a file that is not text, in a prompt. */
export interface Medium {
  kind: 'image' | 'sound' | 'document';
  /** Characters of its data in the body. Zero for one that the server fetches. */
  chars: number;
}

/** The media in messages and items, their parts, and the parts of a tool result. */
export function mediaIn({ messages, input }: Json): Medium[] {
  const found: Medium[] = [];
  addMedia(messages, found, MEDIA_DEPTH);
  addMedia(input, found, MEDIA_DEPTH);
  return found;
}

function addMedia(list: unknown, found: Medium[], depth: number): void {
  if (!Array.isArray(list)) return;
  for (const part of list as unknown[]) {
    if (!isObject(part)) continue;
    const medium = mediumOf(part);
    if (medium !== undefined) found.push(medium);
    else if (depth > 1) {
      addMedia(part.content, found, depth - 1);
      addMedia(part.output, found, depth - 1);
    }
  }
}

function mediumOf(part: Json): Medium | undefined {
  const { type, source, image_url: image, input_audio: audio, file, file_data: data, file_url: address } = part;
  switch (type) {
    case 'image':
    case 'document':
      return isObject(source) ? mediumOfSource(type, source) : undefined;
    case 'input_audio':
      return isObject(audio) ? withData('sound', textValue(audio.data)) : undefined;
    case 'file':
    case 'input_file': {
      const url = textValue(isObject(file) ? file.file_data : data);
      if (typeof address === 'string' && address !== '') return { kind: 'document', chars: 0 };
      return isTextData(url) ? undefined : withData('document', url);
    }
    case 'image_url':
    case 'input_image': {
      const url = textValue(isObject(image) ? image.url : image);
      return url.startsWith('data:') && !url.startsWith('data:image/') ? undefined : fromAddress('image', url);
    }
    case 'audio_url':
    case 'video_url': {
      const named = part[type];
      const url = textValue(isObject(named) ? named.url : named);
      // What an engine makes of a film is more than a sound, and never more than a token of each character.
      return url.startsWith('data:') ? undefined : fromAddress('document', url);
    }
    default:
      return undefined;
  }
}

function mediumOfSource(kind: 'image' | 'document', { type, media_type: mediaType, data, url }: Json) {
  if (type === 'url') return fromAddress(kind, textValue(url));
  return type === 'base64' && !isTextType(textValue(mediaType)) ? withData(kind, textValue(data)) : undefined;
}

function fromAddress(kind: Medium['kind'], url: string): Medium | undefined {
  return url === '' || url.startsWith('data:') ? withData(kind, url) : { kind, chars: 0 };
}

function withData(kind: Medium['kind'], data: string): Medium | undefined {
  return data === '' ? undefined : { kind, chars: data.length };
}
