import { isIP } from 'node:net';

/** Characters of an engine's message that are read and shown. Engines repeat what a caller sent. */
const MAX_MESSAGE = 1000;
/** Characters of a name in DNS with its port. A longer word at the cut is none. */
const MAX_NAME = 260;
const ADDRESS = '[address]';

const BRACKETED = /\[[0-9a-f:.%]+\](?::\d{1,5})?/gi;
const WORD = /[^\s[\]"'`<>(){}|,;=@]+/g;
const NAME = /^[a-z0-9][a-z0-9.-]*$/i;
const NAME_BEFORE_PORT = /^[a-z][a-z0-9.-]*$/i;
/** What a line number follows. */
const SOURCE = /\.(?:py|pyx|cu|cc|cpp|h|rs|go|js|ts|jinja2?|json|ya?ml)$/i;
/** An id of a call, as Kimi writes them: `functions.search:12`. */
const CALL = /^functions\./;
/** A member of a body: `tools.0.function.parameters.properties.local`. */
const MEMBER = /^(?:body\.)?(?:messages|tools|input|system|content|choices)\.\d+\.|(?:^|\.)properties\./i;
const VERSION = /^v\d+(?:\.\d+)*$/;
const PORT = /^\d{2,5}$/;
const PATH = /\/(?:usr|opt|app|home|root|workspace|tmp|var|mnt|data|models)\//;
/** A label behind the first that is of a cluster or of an own network. */
const INNER_LABEL = /^(?:svc|pod|internal|local|localdomain|lan|corp|intranet|private)$/i;
const LAST_LABEL = /^(?:com|net|org|io|ai|dev|cloud|arpa|example|test)$/i;
/** Name, Service and namespace of a pod. */
const POD_NAME = /^[a-z0-9]+-[a-z0-9-]*(?:\.[a-z][a-z0-9-]*){2,}$/;
/** What stands before the name of a host. */
const INTRODUCTION =
  /^(?:(?:host|node)(?:name)?|resolve|resolving|lookup|enotfound|eai_again|connect to|connecting to|connection to)$/i;

/** Text without URLs, addresses, names of hosts and file paths, which would show the inside of the cluster. */
export function withoutAddresses(text: string): string {
  const isCut = text.length > MAX_MESSAGE;
  let before = '';
  let last = '';
  let isNamed = false;
  const shown = text
    .slice(0, MAX_MESSAGE)
    .replace(BRACKETED, (found) => (isIP(found.slice(1, found.indexOf(']'))) === 6 ? ADDRESS : found))
    .replace(WORD, (word, at: number, whole: string) => {
      const end = at + word.length;
      const isHost =
        [last, `${before} ${last}`].some((words) => INTRODUCTION.test(words)) && (isNamed || /[\d.-]/.test(word));
      isNamed = word.endsWith(':') || whole[end] === '=';
      [before, last] = [last, word.endsWith(':') ? word.slice(0, -1) : word];
      return isCut && end === whole.length && word.length < MAX_NAME ? '' : withoutAddress(word, isHost);
    });
  return isCut ? `${shown}…` : shown;
}

function withoutAddress(word: string, isHost: boolean): string {
  if (word.includes('://')) return ADDRESS;
  const path = PATH.exec(word)?.index;
  if (path !== undefined) return `${word.slice(0, path)}[path]`;
  return word
    .split('/')
    .map((part) => withoutHost(part, isHost))
    .join('/');
}

/** Of `name`, `address`, `name:port` and more with colons between them. */
function withoutHost(part: string, isHost: boolean): string {
  let end = part.length;
  while (end > 0 && '.:!?'.includes(part.charAt(end - 1))) end -= 1;
  const core = part.slice(0, end);
  if (isIP(core) === 6 || isIP(part) === 6) return ADDRESS;
  const shown: string[] = [];
  const pieces = core.split(':');
  for (let at = 0; at < pieces.length; at += 1) {
    const piece = pieces[at] ?? '';
    const hasPort = PORT.test(pieces[at + 1] ?? '');
    const isAddress =
      (hasPort && isBeforePort(piece, pieces[at + 1] ?? '')) || isIP(piece) !== 0 || isHostName(piece, isHost);
    shown.push(isAddress ? ADDRESS : piece);
    if (isAddress && hasPort) at += 1;
  }
  return shown.join(':') + part.slice(end);
}

/** Whether a name and a number are a host and its port: `vllm.team-a:80`, `gpu-node-3:29500`. Not `line:12`. */
function isBeforePort(name: string, port: string): boolean {
  if (!NAME_BEFORE_PORT.test(name)) return false;
  if (name.includes('.')) return !SOURCE.test(name) && !CALL.test(name);
  return /^localhost$/i.test(name) || (port.length > 3 && name.includes('-') && /\d/.test(name));
}

function isHostName(name: string, isHost: boolean): boolean {
  if (!NAME.test(name) || !/[a-z]/i.test(name)) return false;
  if (MEMBER.test(name) || VERSION.test(name)) return false;
  if (isHost || POD_NAME.test(name)) return true;
  const [, ...labels] = name.split('.');
  return labels.some((label) => INNER_LABEL.test(label)) || LAST_LABEL.test(labels.at(-1) ?? '');
}
