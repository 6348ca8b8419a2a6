import type { TemplateListItem } from '../../../wire/records.ts';
import { Help } from '../parts/field.tsx';
import { useRead } from '../parts/use-read.ts';

/** Chooses one of the templates that the tenant may use. Says nothing where there is none. */
export function TemplateField({
  value,
  why,
  onChange,
}: {
  value: string;
  why: string;
  onChange: (value: string) => void;
}) {
  const { value: list } = useRead<{ data: TemplateListItem[] }>('/templates');
  if (list === undefined || list.data.length === 0) return null;
  return (
    <div>
      <label for="rent-template">Template</label>
      <select
        id="rent-template"
        value={value}
        aria-describedby="rent-template-help"
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">None</option>
        {list.data.map(({ id, name, shared }) => (
          <option key={id} value={String(id)}>
            {name}
            {shared && ' (shared)'}
          </option>
        ))}
      </select>
      <Help id="rent-template-help" why={why} help="What you fill in below wins over it." />
    </div>
  );
}
