import { useState } from 'preact/hooks';
import { Help } from '../parts/form.tsx';
import type { Variable } from './order.ts';

/** Environment variables by name. Their values are secrets until somebody asks to see them. */
export function Variables(props: {
  variables: readonly Variable[];
  why: string;
  onChange: (variables: readonly Variable[]) => void;
}) {
  const { variables, why, onChange } = props;
  const [isShown, setShown] = useState(false);
  const change = (at: number, part: Partial<Variable>): void =>
    onChange(variables.map((one, index) => (index === at ? { ...one, ...part } : one)));
  return (
    <fieldset class="variables">
      <legend>Environment variables</legend>
      {variables.map(({ name, value }, at) => (
        <div class="variable" key={at}>
          <input
            aria-label={`Name of variable ${at + 1}`}
            placeholder="HF_TOKEN"
            value={name}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={why !== ''}
            aria-describedby="rent-env-help"
            onInput={(event) => change(at, { name: event.currentTarget.value.trim() })}
          />
          <input
            aria-label={`Value of variable ${at + 1}`}
            {...(isShown ? { type: 'text' } : { type: 'password' })}
            value={value}
            autocomplete="new-password"
            spellcheck={false}
            onInput={(event) => change(at, { value: event.currentTarget.value })}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove variable ${at + 1}`}
            onClick={() => onChange(variables.filter((_, index) => index !== at))}
          >
            Remove
          </button>
        </div>
      ))}
      <div class="buttons">
        <button type="button" class="small" onClick={() => onChange([...variables, { name: '', value: '' }])}>
          Add variable
        </button>
        {variables.length > 0 && (
          <label class="check">
            <input type="checkbox" checked={isShown} onChange={(event) => setShown(event.currentTarget.checked)} />
            <span>Show values</span>
          </label>
        )}
      </div>
      <Help id="rent-env-help" why={why} help="No record shows the values again, and no line to copy has them." />
    </fieldset>
  );
}
