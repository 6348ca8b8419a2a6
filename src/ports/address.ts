/** A port of one instance, as the name of a host: an origin of its own in browsers. */
export interface PortHost {
  port: number;
  /** metadata.uid of the instance. */
  uid: string;
}

const LABEL = /^(\d{1,5})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const PORT_MAX = 65_535;

/** The port number that a part of a path or host name spells; undefined for any other text. */
export function portOf(text: string): number | undefined {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= PORT_MAX ? port : undefined;
}

/** The origin of a port, for example `http://8080-<uid>.localhost:8080`. `base` has neither path nor query. */
export function originOf({ port, uid }: PortHost, base: URL): string {
  return `${base.protocol}//${port}-${uid}.${base.host}`;
}

/** The port that a Host header names; undefined for hosts that are not under the base. */
export function portHostOf(host: string | undefined, base: URL): PortHost | undefined {
  const name = host?.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase() ?? '';
  if (!name.endsWith(`.${base.hostname}`)) return undefined;
  const [, digits = '', uid] = LABEL.exec(name.slice(0, -base.hostname.length - 1)) ?? [];
  const port = portOf(digits);
  return port === undefined || uid === undefined ? undefined : { port, uid };
}
