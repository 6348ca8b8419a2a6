import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';

/** A document for renters that the server hands out as Markdown, beside /docs. */
export interface Guide {
  /** Path of the file below docs/, and of its address below /docs/. */
  file: string;
  title: string;
  about: string;
}

export const GUIDES: readonly Guide[] = [
  { file: 'use/http.md', title: 'The HTTP interface', about: 'renting, ports, logs, events, limits, with examples' },
  { file: 'use/webhooks.md', title: 'Webhooks', about: 'what they are told, and how to verify it' },
  { file: 'use/cli.md', title: 'The command line', about: '`berth`, and its exit statuses' },
  { file: 'use/ssh.md', title: 'SSH', about: 'logins, copies, forwards and keys' },
  {
    file: 'use/models.md',
    title: 'Models',
    about: 'calls of models by the SDKs of OpenAI and Anthropic, and model servers',
  },
];

/** Inline links and images of Markdown. */
const LINK = /(!?)\[([^[\]]*)\]\(([^()\s]+)\)/g;

function readDocument(file: string): string {
  // In the image they lie beside the code, in a checkout beside src.
  for (const folder of ['../../../docs/', '../../../../docs/']) {
    try {
      return readFileSync(new URL(folder + file, import.meta.url), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`Berth has no docs/${file} next to it.`);
}

/** The text of a guide. Of a link to a file that the server does not hand out the words stay; pictures go. */
export function guideText(file: string): string {
  const served = new Set(GUIDES.map((guide) => guide.file));
  return readDocument(file).replaceAll(LINK, (whole: string, image: string, words: string, target: string) => {
    const [path = ''] = target.split('#');
    if (image !== '') return '';
    return path === '' || path.includes('://') || served.has(join(dirname(file), path)) ? whole : words;
  });
}
