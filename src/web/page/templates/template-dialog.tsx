import { useState } from 'preact/hooks';
import type { RegistryRecord, TemplateListItem, TemplateRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { Field, Refused } from '../parts/field.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { useRefusal } from '../parts/use-refusal.ts';
import { sameWriteTemplate } from '../same/same-lists.ts';
import { useRead } from '../parts/use-read.ts';
import { note, tenant } from '../state.ts';
import { bodyOf, type Draft, draftOf, EMPTY, isPlain } from './content.ts';

/** The fields of the body that a part of the form stands for. */
const PATHS = ['name', 'image', 'disk_gb', 'registry', 'env', 'ports', 'command', 'args', 'on_start'];

function RegistryField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { value: list } = useRead<{ data: RegistryRecord[] }>('/registries');
  const names = new Set(list?.data.map(({ name }) => name));
  if (value !== '') names.add(value);
  if (names.size === 0) return null;
  return (
    <div>
      <label for="template-registry">Registry</label>
      <select id="template-registry" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
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

function Program({
  draft,
  set,
  why,
}: {
  draft: Draft;
  set: (part: Partial<Draft>) => void;
  why: (path: string) => string;
}) {
  return (
    <>
      <label for="template-runtype">What it runs</label>
      <select
        id="template-runtype"
        value={draft.runtype}
        onChange={(event) => set({ runtype: event.currentTarget.value as Draft['runtype'] })}
      >
        <option value="">As the renter asks, else a login</option>
        <option value="ssh">A login</option>
        <option value="jupyter">Jupyter and a login</option>
        <option value="args">The program of the image</option>
      </select>
      {draft.runtype === 'args' ? (
        <div class="fields">
          <Field
            rows={3}
            id="template-command"
            label="Command"
            value={draft.command}
            why={why('command')}
            help="One word on each line. Empty: the entrypoint of the image."
            onInput={(command) => set({ command })}
          />
          <Field
            rows={3}
            id="template-args"
            label="Arguments"
            value={draft.args}
            why={why('args')}
            help="One word on each line."
            onInput={(args) => set({ args })}
          />
        </div>
      ) : (
        <Field
          rows={3}
          id="template-script"
          label="Script at the start"
          value={draft.script}
          why={why('on_start')}
          help="Runs after each start, before the first login."
          onInput={(script) => set({ script })}
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
  const set = (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part }));
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
      .map((field) => (field.path === at ? field.expected : `${field.path}: ${field.expected}`))
      .join('; ');
  const others = refusal.fields.filter((field) => !PATHS.some((at) => isAt(field.path, at)));
  return (
    <Dialog id="template" title={template === undefined ? 'New template' : 'Edit template'} onClose={close}>
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void send(save);
        }}
      >
        <Refused refusal={refusal} others={others} />
        {!fits && (
          <p class="warning">
            A value of this template has several lines, which this form would take apart. Change it with the call below.
          </p>
        )}
        <Field id="template-name" label="Name" value={draft.name} why={why('name')} onInput={(name) => set({ name })} />
        <Field
          id="template-image"
          label="Image"
          value={draft.image}
          why={why('image')}
          help="Empty: the default image. For example pytorch/pytorch:latest."
          onInput={(image) => set({ image })}
        />
        <RegistryField value={draft.registry} onChange={(registry) => set({ registry })} />
        <Field
          id="template-disk"
          label="Disk in GB"
          value={draft.disk}
          why={why('disk_gb')}
          help="Empty: as the renter asks."
          onInput={(disk) => set({ disk })}
        />
        <Program draft={draft} set={set} why={why} />
        <details open={draft.env !== '' || draft.ports !== '' || why('env') + why('ports') !== ''}>
          <summary>Variables and ports</summary>
          <Field
            rows={3}
            id="template-env"
            label="Environment variables"
            value={draft.env}
            why={why('env')}
            help="NAME=value, one on each line. Every key of this namespace can read them: put no secret here."
            onInput={(env) => set({ env })}
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
        <SameElsewhere same={sameWriteTemplate(tenant.value, template?.id, body)} />
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" type="submit" disabled={!fits}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
