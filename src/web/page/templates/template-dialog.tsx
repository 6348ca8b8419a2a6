import { useState } from 'preact/hooks';
import type { RegistryRecord, TemplateListItem, TemplateRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { DialogForm, Field, fieldsOf, Refused, useRefusal } from '../parts/form.tsx';
import { sameWriteTemplate } from '../same/same-lists.ts';
import { useRead } from '../parts/use-read.ts';
import { plainly } from '../parts/words.ts';
import { note, tenant } from '../state.ts';
import { bodyOf, type Draft, draftOf, EMPTY, isPlain } from './content.ts';

/** The fields of the body that a part of the form stands for. */
const PATHS = ['name', 'image', 'disk_gb', 'registry', 'env', 'ports', 'command', 'args', 'on_start'];

/** Chooses the credentials that pull the image. Shows nothing where there are none. */
export function RegistryField(props: { id: string; value: string; onChange: (value: string) => void }) {
  const { id, value, onChange } = props;
  const { value: list } = useRead<{ data: RegistryRecord[] }>('/registries');
  const names = new Set(list?.data.map(({ name }) => name));
  if (value !== '') names.add(value);
  if (names.size === 0) return null;
  return (
    <div>
      <label for={id}>Registry</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">None: the image is public</option>
        {[...names].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

type Set = (part: Partial<Draft>) => void;

function Program({ draft, set, why }: { draft: Draft; set: Set; why: (path: string) => string }) {
  const of = fieldsOf('template', draft, set, why);
  return (
    <>
      <label for="template-runtype">Mode</label>
      <select
        id="template-runtype"
        value={draft.runtype}
        onChange={(event) => set({ runtype: event.currentTarget.value as Draft['runtype'] })}
      >
        <option value="">As the renter asks, else SSH</option>
        <option value="ssh">SSH</option>
        <option value="jupyter">Jupyter and SSH</option>
        <option value="args">The program of the image</option>
      </select>
      {draft.runtype === 'args' ? (
        <div class="fields">
          <Field
            rows={3}
            label="Command"
            help="One word on each line. Empty: the entrypoint of the image."
            {...of('command')}
          />
          <Field rows={3} label="Arguments" help="One word on each line." {...of('args')} />
        </div>
      ) : (
        <Field
          rows={3}
          label="Script at the start"
          help="Runs after each start, before the first login."
          {...of('script', 'on_start')}
        />
      )}
    </>
  );
}

/** Makes a template, or changes the one that is given. */
export function TemplateDialog(props: {
  template?: TemplateRecord;
  close: () => void;
  onSaved: (saved: TemplateListItem) => void;
}) {
  const { template, close, onSaved } = props;
  const [draft, setDraft] = useState<Draft>(template === undefined ? EMPTY : draftOf(template));
  const { refusal, send } = useRefusal();
  const set: Set = (part) => setDraft((before) => ({ ...before, ...part }));
  const fits = template === undefined || isPlain(template);
  const body = bodyOf(draft);
  const [method, path] =
    template === undefined ? (['POST', '/templates'] as const) : (['PUT', `/templates/${template.id}`] as const);
  async function save(): Promise<void> {
    onSaved(await callApi<TemplateRecord>(tenant.value, method, path, body));
    note.value = 'Template saved';
  }
  const isAt = (field: string, at: string): boolean =>
    field === at || field.startsWith(`${at}.`) || field.startsWith(`${at}[`);
  const why = (at: string): string =>
    refusal.fields
      .filter((field) => isAt(field.path, at))
      .map(({ path, expected }) =>
        path === at || at === 'env' ? plainly(path, expected) : `${path}: ${plainly(path, expected)}`,
      )
      .join(' ');
  const of = fieldsOf('template', draft, set, why);
  const others = refusal.fields.filter((field) => !PATHS.some((at) => isAt(field.path, at)));
  return (
    <Dialog id="template" title={template === undefined ? 'New template' : 'Edit template'} onClose={close}>
      <DialogForm
        button="Save"
        isOff={!fits}
        same={sameWriteTemplate(tenant.value, template?.id, body)}
        onSubmit={() => send(save)}
        close={close}
      >
        <Refused refusal={refusal} others={others} />
        {!fits && (
          <p class="warning">
            A value of this template has several lines, which this form would take apart. Change it with the call below.
          </p>
        )}
        <Field label="Name" {...of('name')} />
        <Field label="Image" help="Empty: the default image. For example pytorch/pytorch:latest." {...of('image')} />
        <RegistryField id="template-registry" value={draft.registry} onChange={(registry) => set({ registry })} />
        <Field label="Disk in GB" help="Empty: as the renter asks." {...of('disk', 'disk_gb')} />
        <Program draft={draft} set={set} why={why} />
        <details open={draft.env !== '' || draft.ports !== '' || why('env') + why('ports') !== ''}>
          <summary>Variables and ports</summary>
          <Field
            rows={3}
            label="Environment variables"
            help="NAME=value, one on each line. Every key of this namespace can read them: put no secret here."
            {...of('env')}
          />
          <Field
            rows={3}
            id="template-ports"
            label="Ports"
            value={draft.ports}
            why={why('ports')}
            help={
              <>
                One on each line, with a name if you like: <code>8000 api</code> or <code>53/udp</code>
              </>
            }
            onInput={(ports) => set({ ports })}
          />
        </details>
      </DialogForm>
    </Dialog>
  );
}
