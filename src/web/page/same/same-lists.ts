import { toContent } from '../../../wire/to-content.ts';
import type { CreateWebhook, RegistryRecord, TemplateBody } from '../../../wire/records.ts';
import { curl, kubectlById } from './commands.ts';
import { quote } from './quote.ts';
import { berth, creation, type Same } from './same.ts';

/** Stands in a command to copy, where the password would. */
const PLACEHOLDER = 'PASSWORD';

/** Adding the login of a registry. `berth` asks for the password. With kubectl nobody can: the Secret and its owner are one step. */
export function sameAddRegistry(login: Pick<RegistryRecord, 'name' | 'server' | 'username'>): Same {
  const { name, server, username } = login;
  return {
    curl: curl('POST', '/registries', { name, server, username, password: PLACEHOLDER }),
    berth: berth('registries', 'add', name, server, username),
  };
}

export function sameRemoveRegistry(namespace: string, name: string): Same {
  return {
    curl: curl('DELETE', `/registries/${encodeURIComponent(name)}`),
    berth: berth('registries', 'rm', name),
    kubectl: `kubectl delete registrycredential ${name} -n ${namespace}`,
  };
}

/** The spec that POST and PUT of /templates make of the body. */
function specOf(body: TemplateBody): object {
  const { name, image, runtype, disk_gb: diskGb } = body;
  const own = { displayName: name, image, runtype, diskGb };
  return { ...toContent(body), ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) };
}

function kubectlTemplate(namespace: string, id: number | undefined, body: TemplateBody): string {
  const spec = specOf(body);
  if (id === undefined) {
    const metadata = { generateName: 'tpl-', namespace };
    return creation({ apiVersion: 'berth.dev/v1alpha1', kind: 'InstanceTemplate', metadata, spec });
  }
  const patch = quote(JSON.stringify([{ op: 'replace', path: '/spec', value: spec }]));
  return `${kubectlById('patch', 'instancetemplate', { namespace, id })} --type=json -p ${patch}`;
}

/** Making a template, or replacing the one with this id. */
export function sameWriteTemplate(namespace: string, id: number | undefined, body: TemplateBody): Same {
  const file = `printf %s ${quote(JSON.stringify(body))} >template.json; `;
  const words = id === undefined ? ['create'] : ['replace', String(id)];
  return {
    curl: curl(id === undefined ? 'POST' : 'PUT', id === undefined ? '/templates' : `/templates/${id}`, body),
    berth: `${file}${berth('templates', ...words, '--file=template.json')}`,
    kubectl: kubectlTemplate(namespace, id, body),
  };
}

export function sameRemoveTemplate(namespace: string, id: number): Same {
  return {
    curl: curl('DELETE', `/templates/${id}`),
    berth: berth('templates', 'rm', String(id)),
    kubectl: kubectlById('delete', 'instancetemplate', { namespace, id }),
  };
}

/** Making a webhook. With kubectl nobody is told its signing secret. */
export function sameAddWebhook(body: CreateWebhook): Same {
  const { url, events, name } = body;
  const types = (events ?? []).map((type) => `--event=${type}`);
  return {
    curl: curl('POST', '/webhooks', body),
    berth: berth('webhooks', 'add', ...types, ...(name ? [`--name=${name}`] : []), url),
  };
}

export function sameRotateWebhook(id: string): Same {
  return {
    curl: curl('POST', `/webhooks/${encodeURIComponent(id)}/secret`),
    berth: berth('webhooks', 'rotate', id),
  };
}

export function sameRemoveWebhook(namespace: string, id: string): Same {
  return {
    curl: curl('DELETE', `/webhooks/${encodeURIComponent(id)}`),
    berth: berth('webhooks', 'rm', id),
    kubectl: `kubectl delete webhook ${id} -n ${namespace}`,
  };
}
