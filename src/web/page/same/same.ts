import type { CreateInstance, UpdateInstance } from '../../../wire/records.ts';
import { toContent } from '../../../wire/to-content.ts';
import { curl, kubectlById, kubectlDelete, kubectlPatch } from './commands.ts';
import { quote } from '../../../lib/quote.ts';

/** The same action with other tools, ready to paste into a shell. A tool that cannot do it is absent. */
export interface Same {
  curl?: string;
  berth?: string;
  kubectl?: string;
}

const PLAIN = /^[\w@%+:,./][\w@%+=:,./-]*$/;

/** A command line of `berth`. Words that a shell would read otherwise are quoted. */
export function berth(...words: readonly string[]): string {
  return [
    'berth',
    ...words.map((word) => (PLAIN.test(word) || /^--?[\w-]+(?:=[\w@%+:,./-]+)?$/.test(word) ? word : quote(word))),
  ].join(' ');
}

/** An option with its value in one word: a value that begins with a dash is no option then. */
function option(name: string, value: string | number | null | undefined): string[] {
  return value === undefined || value === null ? [] : [`--${name}=${value}`];
}

function instancePath(id: string): string {
  return `/instances/${encodeURIComponent(id)}`;
}

function without(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/** Makes an object of Kubernetes. */
export function creation(manifest: object): string {
  return `printf %s ${quote(JSON.stringify(manifest))} | kubectl create -f -`;
}

/** The GPUInstance that POST /instances makes of the body. */
function manifestOf(namespace: string, body: CreateInstance): object {
  const spec = without({
    offerId: body.ask_id,
    type: body.type === 1 ? 'Interruptible' : 'OnDemand',
    displayName: body.name,
    templateId: body.template_id,
    image: body.template_image,
    runtype: body.runtype,
    diskGb: body.disk_gb,
    maxDuration: body.max_duration,
    maxPricePerHour: body.max_price_per_hour,
    ...toContent(body),
    installMonitoring: body.install_monitoring,
    runAsRoot: body.run_as_root,
    sshKeyIds: body.ssh_key_ids,
    idleTimeout: body.idle_timeout,
    onExpiry: body.on_expiry === 'delete' ? 'Delete' : undefined,
    onGPUFailure: body.on_gpu_failure === 'restart' ? 'Restart' : undefined,
    diskPolicy: body.disk_policy === 'retain' ? 'Retain' : undefined,
    onNoCapacity: body.on_no_capacity === 'queue' ? 'Queue' : 'Fail',
  });
  const metadata = { generateName: 'i-', namespace };
  return { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', metadata, spec };
}

/** Stands in a command to copy, where the value of a variable would: it may be a secret. */
const VALUE = 'VALUE';

function withoutValues(body: CreateInstance): CreateInstance {
  if (!body.env) return body;
  return { ...body, env: Object.fromEntries(Object.keys(body.env).map((name) => [name, VALUE])) };
}

/** The command line takes values of variables from its own environment. It cannot replace a command, nor keep a disk. */
function berthRent(body: CreateInstance): string | undefined {
  if (body.command || body.disk_policy === 'retain') return undefined;
  const script = body.on_start ?? '';
  const words = [
    'rent',
    '--yes',
    ...option('offer', body.ask_id),
    ...(body.type === 1 ? ['--interruptible'] : []),
    ...option('name', body.name),
    ...option('template', body.template_id),
    ...option('image', body.template_image),
    ...option('registry', body.registry),
    ...option('runtype', body.args ? undefined : body.runtype),
    ...option('disk', body.disk_gb),
    ...Object.keys(body.env ?? {}).flatMap((name) => option('env', name)),
    ...(body.ports ?? []).flatMap(({ container_port: port, protocol }) =>
      option('port', protocol === 'udp' ? `${port}/udp` : port),
    ),
    ...option('max-duration', body.max_duration),
    ...option('idle-timeout', body.idle_timeout),
    ...option('on-expiry', body.on_expiry),
    ...option('on-gpu-failure', body.on_gpu_failure),
    ...option('max-price', body.max_price_per_hour),
    ...(body.ssh_key_ids ?? []).flatMap((id) => option('key', id)),
    ...(script === '' ? [] : ['--on-start=start.sh']),
    ...(body.install_monitoring === true ? ['--monitoring'] : []),
    ...(body.run_as_root === true ? ['--root'] : []),
    ...(body.on_no_capacity === 'queue' ? ['--queue'] : []),
    ...(body.args ? ['--', ...body.args] : []),
  ];
  return `${script === '' ? '' : `printf %s ${quote(script)} >start.sh; `}${berth(...words)}`;
}

/** Renting what the body of POST /instances asks for. */
export function sameRent(namespace: string, body: CreateInstance): Same {
  const shown = withoutValues(body);
  const line = berthRent(shown);
  return {
    curl: curl('POST', '/instances', shown),
    ...(line !== undefined && { berth: line }),
    kubectl: creation(manifestOf(namespace, shown)),
  };
}

function changeWords(
  id: string,
  { state, name, max_duration: longest, max_price_per_hour: highest }: UpdateInstance,
): string[] {
  if (state !== undefined && state !== null) return [state === 'stopped' ? 'stop' : 'start', id];
  const none = (value: string | null | undefined) => (value === null ? 'none' : value);
  return [
    'set',
    id,
    ...option('name', none(name)),
    ...option('max-duration', none(longest)),
    ...option('max-price', none(highest)),
  ];
}

/** Changing name, end or state. @param now wall time in ms: a start is asked for with a text that was not there before */
export function sameChange(at: { namespace: string; id: string; now: number }, body: UpdateInstance): Same {
  const { namespace, id, now } = at;
  const { state, name, max_duration: longest, max_price_per_hour: highest } = body;
  const spec = {
    ...(name !== undefined && { displayName: name }),
    ...(longest !== undefined && { maxDuration: longest }),
    ...(highest !== undefined && { maxPricePerHour: highest }),
    ...(state && { powerState: state === 'stopped' ? 'Stopped' : 'Running' }),
    ...(state === 'running' && { startRequest: new Date(now).toISOString() }),
  };
  return {
    curl: curl('PATCH', instancePath(id), body),
    berth: berth(...changeWords(id, body)),
    kubectl: kubectlPatch(namespace, id, spec),
  };
}

export function sameDelete(namespace: string, id: string): Same {
  return {
    curl: curl('DELETE', instancePath(id)),
    berth: berth('rm', '--yes', id),
    kubectl: kubectlDelete(namespace, id),
  };
}

export function sameLog(namespace: string, id: string): Same {
  return {
    curl: curl('GET', `${instancePath(id)}/logs?follow=true`),
    berth: berth('logs', '-f', id),
    kubectl: `kubectl logs -f -n ${namespace} -l berth.dev/instance=${id} -c main`,
  };
}

export function sameEvents(namespace: string, id: string): Same {
  return {
    curl: curl('GET', `${instancePath(id)}/events`),
    berth: berth('events', id),
    kubectl: `kubectl get events -n ${namespace} --field-selector involvedObject.name=${id}`,
  };
}

export function samePort(id: string, port: number | null): Same {
  return { curl: curl('POST', `${instancePath(id)}/links`, { port }) };
}

/** Registering the public part of an SSH key. */
export function sameAddKey(namespace: string, body: { public_key: string; name: string }): Same {
  const spec = { publicKey: body.public_key, displayName: body.name };
  const metadata = { generateName: 'key-', namespace };
  const manifest = { apiVersion: 'berth.dev/v1alpha1', kind: 'SSHKey', metadata, spec };
  const file = `printf '%s\\n' ${quote(body.public_key)} >key.pub; `;
  return {
    curl: curl('POST', '/ssh-keys', body),
    kubectl: creation(manifest),
    berth: `${file}${berth('keys', 'add', ...option('name', body.name), 'key.pub')}`,
  };
}

export function sameRemoveKey(namespace: string, id: number): Same {
  return {
    curl: curl('DELETE', `/ssh-keys/${id}`),
    berth: berth('keys', 'rm', String(id)),
    kubectl: kubectlById('delete', 'sshkey', { namespace, id }),
  };
}

/** Making an API key, with the command line of the server and the rights of the person in the cluster: no key makes keys. */
export function sameMakeApiKey(body: {
  namespace: string;
  name: string;
  scopes: readonly string[];
  expires_at: string | null;
}): Same {
  const expires = body.expires_at === null ? [] : [`--expires=${body.expires_at}`];
  const name = body.name === '' ? [] : [`--name=${body.name}`];
  const scopes = `--scopes=${body.scopes.join(',')}`;
  return { berth: berth('keys', 'create', `--namespace=${body.namespace}`, ...name, scopes, ...expires) };
}

export function sameRevokeApiKey(namespace: string, id: string): Same {
  const patch = quote(JSON.stringify({ spec: { revoked: true } }));
  return { kubectl: `kubectl patch apikey ${id} -n ${namespace} --type=merge -p ${patch}` };
}
