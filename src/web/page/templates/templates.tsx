import { useState } from 'preact/hooks';
import type { TemplateListItem, TemplateRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert, Empty, Link, RowButton, Table, Time } from '../parts/controls.tsx';
import { DeleteDialog } from '../parts/delete-dialog.tsx';
import { sameRemoveTemplate } from '../same/same-lists.ts';
import { useRead } from '../parts/use-read.ts';
import { attempt, mayWrite, tenant } from '../state.ts';
import { TemplateDialog } from './template-dialog.tsx';

const MODES = { ssh: 'SSH', jupyter: 'Jupyter and SSH', args: 'The program of the image' } as const;

function Row(props: { template: TemplateListItem; onEdit: () => void; onDelete: () => void }) {
  const { template, onEdit, onDelete } = props;
  const { id, name, image, runtype, disk_gb: disk, shared, read_only: isForeign, created_at: created } = template;
  return (
    <tr>
      <th scope="row">
        {name} {shared && <span class="chip">{isForeign ? 'shared with you' : 'shared'}</span>}
      </th>
      <td data-label="Image" class="long">
        {image === null ? <span class="soft">default</span> : <code>{image}</code>}
      </td>
      <td data-label="Mode">{runtype === null ? <span class="soft">as asked</span> : MODES[runtype]}</td>
      <td data-label="Disk" class="nowrap">
        {disk === null ? <span class="soft">as asked</span> : `${disk} GB`}
      </td>
      <td data-label="Made" class="minor">
        <Time at={created} absent="" />
      </td>
      <td class="action">
        {mayWrite.value && (
          <div class="buttons">
            <Link class="button" to={`/dashboard/rent/${id}`} label={`Rent with ${name}`}>
              Rent
            </Link>
            {!isForeign && (
              <>
                <button type="button" class="quiet" aria-label={`Edit ${name}`} onClick={onEdit}>
                  Edit
                </button>
                <RowButton verb="Delete" name={name} onClick={onDelete} />
              </>
            )}
          </div>
        )}
      </td>
    </tr>
  );
}

function None() {
  return (
    <Empty title="No templates yet">
      <p>
        A template keeps what you would type each time: the image, the disk, what runs at the start. Make one, and rent
        with it in two clicks, here or with <code>template_id</code> in a call.
      </p>
    </Empty>
  );
}

/** The templates that the tenant may use. */
export function TemplatesView() {
  const { value: list, trouble, change } = useRead<{ data: TemplateListItem[] }>('/templates');
  const [edited, setEdited] = useState<TemplateRecord>();
  const [isMaking, setMaking] = useState(false);
  const [leaving, setLeaving] = useState<TemplateListItem>();
  const [refusal, setRefusal] = useState('');
  async function edit(id: number): Promise<void> {
    // The list has no variables and no script.
    setEdited(await callApi<TemplateRecord>(tenant.value, 'GET', `/templates/${id}`));
  }
  function close(): void {
    setMaking(false);
    setEdited(undefined);
  }
  function show(saved: TemplateListItem): void {
    close();
    change(({ data, ...rest }) => {
      const isKnown = data.some(({ id }) => id === saved.id);
      return { ...rest, data: isKnown ? data.map((one) => (one.id === saved.id ? saved : one)) : [...data, saved] };
    });
  }
  return (
    <section aria-labelledby="templates-title">
      <div class="title">
        <div>
          <h1 id="templates-title">Templates</h1>
          <p>Saved image and settings. You can override them when you rent.</p>
        </div>
        {mayWrite.value && (
          <button class="primary" type="button" onClick={() => setMaking(true)}>
            New template
          </button>
        )}
      </div>
      <Alert text={refusal || trouble} />
      {list !== undefined && (
        <div class="card flush">
          {list.data.length === 0 ? (
            <None />
          ) : (
            <Table title="Templates" columns={['Name', 'Image', 'Mode', 'Disk', 'Made']} minor="Made" actions>
              {list.data.map((template) => (
                <Row
                  key={template.id}
                  template={template}
                  onEdit={() => void attempt(() => edit(template.id), setRefusal)}
                  onDelete={() => setLeaving(template)}
                />
              ))}
            </Table>
          )}
        </div>
      )}
      {isMaking && <TemplateDialog close={close} onSaved={show} />}
      {edited !== undefined && <TemplateDialog template={edited} close={close} onSaved={show} />}
      {leaving !== undefined && (
        <DeleteDialog
          title="Delete this template?"
          path={`/templates/${leaving.id}`}
          same={sameRemoveTemplate(tenant.value, leaving.id)}
          close={() => setLeaving(undefined)}
          onDeleted={() => {
            change(({ data, ...rest }) => ({ ...rest, data: data.filter(({ id }) => id !== leaving.id) }));
            setLeaving(undefined);
          }}
        >
          <p>
            No instance can be rented with <strong>{leaving.name}</strong> any more. Instances that were rented with it
            keep what it said, at every start.
          </p>
        </DeleteDialog>
      )}
    </section>
  );
}
