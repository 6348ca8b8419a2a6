import { pathOf, type Step } from '../../interface/step.ts';

/** As `kubectl` and the pages of Kubernetes hand a token over: browsers give a WebSocket no other header. */
const PREFIX = 'base64url.bearer.authorization.k8s.io.';
const TERMINAL = /^\/instances\/[^/]+\/terminal\/?$/;

/** Whether a path below the API base is that of a terminal. */
export function isTerminal(path: string): boolean {
  return TERMINAL.test(path);
}

/**
 * Takes the token of a terminal out of the sub-protocols that the client offers, into the header of all other calls. Such
 * a token is in no URL, and so in no log, history or Referer.
 */
export const takeProtocolToken: Step = (request, _response, next) => {
  const offered = request.headers['sec-websocket-protocol'];
  if (offered === undefined || !isTerminal(pathOf(request))) return next();
  const protocols = offered.split(',').map((one) => one.trim());
  const token = protocols.find((one) => one.startsWith(PREFIX))?.slice(PREFIX.length);
  if (token === undefined) return next();
  request.headers['sec-websocket-protocol'] = protocols.filter((one) => !one.startsWith(PREFIX)).join(', ');
  request.headers.authorization ??= `Bearer ${Buffer.from(token, 'base64url').toString('latin1')}`;
  next();
};
